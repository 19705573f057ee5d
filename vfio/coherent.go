package vfio

import (
	"io/fs"
	"path"
	"strings"
)

// isCoherent says whether a device without an IOMMU sees the caches of the CPU, by the
// device tree: the node of the device, or of the nearest above it that has one, as a
// PCI host bridge (Linux of_dma_is_coherent). Without a device tree it does, as on
// machines with ACPI. Behind an IOMMU nobody asks, since VFIO refuses others.
func isCoherent(k Kernel, i *Info, goarch string) bool {
	dir := i.dir()
	if to, err := fs.ReadLink(k.FS(), dir); err == nil {
		dir = path.Join(path.Dir(dir), to)
	}
	for ; dir == i.dir() || strings.HasPrefix(dir, "sys/devices/"); dir = path.Dir(dir) {
		if node := treeNode(k, dir); node != "" {
			return dmaCoherent(k, node, goarch)
		}
	}
	return true
}
