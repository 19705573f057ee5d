// Package uapi has the numbers and structures of the kernel interfaces that
// VFIO is made of: include/uapi/linux/vfio.h and include/uapi/linux/iommufd.h of
// Linux 7.3. Names are those of the headers without VFIO_ and IOMMU_, in Go's
// spelling. All 64-bit fields lie at multiples of 8, so that the structures are
// the same on 32-bit machines; a test holds sizes and offsets.
//
// Start reading at vfio.go. The package imports the standard library alone.
package uapi
