// Package initrd writes the archives that a kernel unpacks as its first file system:
// cpio with new ASCII headers ("newc", see cpio(5) and
// Documentation/driver-api/early-userspace/buffer-format.rst of Linux), without compression.
//
// Start reading at [Writer]. The package imports only the standard library.
package initrd
