// Package ours is the forwarding loop of the side-by-side runs on the driver
// of this module, through its public API.
package ours
