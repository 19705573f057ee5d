// Package said is what the command station says of what it did in a guest: one value as JSON
// on its standard output. Both the command and the rig use it. It imports nothing but the
// standard library.
package said
