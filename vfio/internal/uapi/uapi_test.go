package uapi

import (
	"testing"
	"unsafe"
)

// TestSizes holds the sizes that the kernel headers give, and the offsets of the
// 64-bit fields: with argsz they are the ABI.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"vfio_info_cap_header", unsafe.Sizeof(CapHeader{}), 8},
		{"vfio_group_status", unsafe.Sizeof(GroupStatus{}), 8},
		{"vfio_device_info", unsafe.Sizeof(DeviceInfo{}), 24},
		{"vfio_region_info", unsafe.Sizeof(RegionInfo{}), 32},
		{"vfio_region_info.size", unsafe.Offsetof(RegionInfo{}.Size), 16},
		{"vfio_region_sparse_mmap_area", unsafe.Sizeof(SparseArea{}), 16},
		{"vfio_irq_info", unsafe.Sizeof(IRQInfo{}), 16},
		{"vfio_irq_set", unsafe.Sizeof(IRQSet{}), 20},
		{"vfio_pci_hot_reset_info", unsafe.Sizeof(HotResetInfo{}), 12},
		{"vfio_pci_dependent_device", unsafe.Sizeof(DependentDevice{}), 8},
		{"vfio_pci_hot_reset", unsafe.Sizeof(HotReset{}), 12},
		{"vfio_device_feature", unsafe.Sizeof(Feature{}), 8},
		{"vfio_device_bind_iommufd", unsafe.Sizeof(BindIOMMUFD{}), 24},
		{"vfio_device_bind_iommufd.token_uuid_ptr", unsafe.Offsetof(BindIOMMUFD{}.TokenUUIDPtr), 16},
		{"vfio_device_attach_iommufd_pt", unsafe.Sizeof(AttachPT{}), 16},
		{"vfio_device_detach_iommufd_pt", unsafe.Sizeof(DetachPT{}), 12},
		{"vfio_iommu_type1_info", unsafe.Sizeof(Type1Info{}), 24},
		{"vfio_iommu_type1_info.cap_offset", unsafe.Offsetof(Type1Info{}.CapOffset), 16},
		{"vfio_iommu_type1_dma_map", unsafe.Sizeof(Type1Map{}), 32},
		{"vfio_iommu_type1_dma_unmap", unsafe.Sizeof(Type1Unmap{}), 24},
		{"iommu_destroy", unsafe.Sizeof(Destroy{}), 8},
		{"iommu_ioas_alloc", unsafe.Sizeof(IOASAllocArg{}), 12},
		{"iommu_ioas_iova_ranges", unsafe.Sizeof(IOASRanges{}), 32},
		{"iommu_ioas_iova_ranges.allowed_iovas", unsafe.Offsetof(IOASRanges{}.AllowedIOVAs), 16},
		{"iommu_ioas_map", unsafe.Sizeof(IOASMapArg{}), 40},
		{"iommu_ioas_unmap", unsafe.Sizeof(IOASUnmapArg{}), 24},
		{"iommu_ioas_unmap.iova", unsafe.Offsetof(IOASUnmapArg{}.IOVA), 8},
		{"iommu_ioas_noiommu_get_pa", unsafe.Sizeof(IOASGetPA{}), 40},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

// TestBytes says that a structure and its bytes are the same memory.
func TestBytes(t *testing.T) {
	m := Type1Map{Argsz: 32, IOVA: 0x1122334455667788}
	b := Bytes(&m)
	if len(b) != 32 {
		t.Fatalf("%d bytes", len(b))
	}
	b[16] ^= 0xff
	if m.IOVA == 0x1122334455667788 {
		t.Error("a change of the bytes did not change the structure")
	}
}
