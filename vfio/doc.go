// Package vfio drives devices from a Go process through Linux VFIO.
package vfio
