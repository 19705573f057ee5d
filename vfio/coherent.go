package vfio

import (
	"io/fs"
	"path"
	"strings"
)

// isCoherent reads from the device tree whether a device sees the caches of the CPU:
// dma-coherent and dma-noncoherent at the nearest node of the device or above it
// (Linux of_dma_is_coherent). Without a device tree it does, as the firmware of
// machines with ACPI says. It is only asked where no IOMMU stands before the device,
// since VFIO refuses others.
func isCoherent(k Kernel, i *Info, goarch string) bool {
	fsys := k.FS()
	dir := i.dir()
	if to, err := fs.ReadLink(fsys, dir); err == nil {
		dir = path.Join(path.Dir(dir), to)
	}
	tree := false
	for ; strings.HasPrefix(dir, "sys/devices/") || dir == i.dir(); dir = path.Dir(dir) {
		node := path.Join(dir, "of_node")
		if _, err := fs.Stat(fsys, node); err != nil {
			continue
		}
		tree = true
		if exists(fsys, path.Join(node, "dma-coherent")) {
			return true
		}
		if exists(fsys, path.Join(node, "dma-noncoherent")) {
			return false
		}
	}
	// CONFIG_ARCH_DMA_DEFAULT_COHERENT: not on ARM.
	return !tree || goarch != "arm64" && goarch != "arm"
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}
