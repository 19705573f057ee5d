package uapi

import "unsafe"

// Requests: _IO(';', 100+n). The type1 container and the device share numbers.
const (
	GetAPIVersion  = 0x3b64 // container: returns APIVersion
	CheckExtension = 0x3b65 // container: argument is an extension; returns > 0 if there is
	SetIOMMU       = 0x3b66 // container: argument is an extension that is an IOMMU type

	GroupGetStatus      = 0x3b67 // GroupStatus
	GroupSetContainer   = 0x3b68 // int32, the container's file descriptor
	GroupUnsetContainer = 0x3b69
	GroupGetDeviceFD    = 0x3b6a // name of the device, 0-terminated; returns a file descriptor

	DeviceGetInfo         = 0x3b6b // DeviceInfo
	DeviceGetRegionInfo   = 0x3b6c // RegionInfo
	DeviceGetIRQInfo      = 0x3b6d // IRQInfo
	DeviceSetIRQs         = 0x3b6e // IRQSet and data
	DeviceReset           = 0x3b6f
	DeviceGetHotResetInfo = 0x3b70 // HotResetInfo and DependentDevice...
	DeviceHotReset        = 0x3b71 // HotReset and int32...
	DeviceFeature         = 0x3b75 // Feature and data
	DeviceBindIOMMUFD     = 0x3b76 // BindIOMMUFD
	DeviceAttachPT        = 0x3b77 // AttachPT
	DeviceDetachPT        = 0x3b78 // DetachPT

	IOMMUGetInfo  = 0x3b70 // container: Type1Info and capabilities
	IOMMUMapDMA   = 0x3b71 // container: Type1Map
	IOMMUUnmapDMA = 0x3b72 // container: Type1Unmap
)

// APIVersion is what GetAPIVersion returns (VFIO_API_VERSION).
const APIVersion = 0

// Extensions of a container.
const (
	Type1IOMMU   = 1
	Type1v2IOMMU = 3
	NoIOMMU      = 8
)

// CapHeader starts an element of a chain of capabilities. Next is an offset from
// the start of the structure that the chain belongs to; 0 ends it.
type CapHeader struct {
	ID, Version uint16
	Next        uint32
}

// Flags of GroupStatus.
const (
	GroupViable       = 1 << 0
	GroupContainerSet = 1 << 1
)

// GroupStatus is struct vfio_group_status.
type GroupStatus struct{ Argsz, Flags uint32 }

// Flags of DeviceInfo.
const (
	DeviceFlagReset    = 1 << 0
	DeviceFlagPCI      = 1 << 1
	DeviceFlagPlatform = 1 << 2
	DeviceFlagCaps     = 1 << 7
)

// DeviceInfo is struct vfio_device_info.
type DeviceInfo struct {
	Argsz, Flags        uint32
	NumRegions, NumIRQs uint32
	CapOffset, _        uint32
}

// Flags of RegionInfo.
const (
	RegionFlagRead  = 1 << 0
	RegionFlagWrite = 1 << 1
	RegionFlagMmap  = 1 << 2
	RegionFlagCaps  = 1 << 3
)

// Capabilities of RegionInfo.
const (
	RegionCapSparseMmap   = 1 // CapHeader, nr_areas uint32, reserved uint32, SparseArea...
	RegionCapType         = 2
	RegionCapMSIXMappable = 3
)

// RegionInfo is struct vfio_region_info.
type RegionInfo struct {
	Argsz, Flags     uint32
	Index, CapOffset uint32
	Size, Offset     uint64
}

// SparseArea is struct vfio_region_sparse_mmap_area.
type SparseArea struct{ Offset, Size uint64 }

// Region indices of PCI devices.
const (
	PCIBAR0       = 0
	PCIROM        = 6
	PCIConfig     = 7
	PCIVGA        = 8
	PCINumRegions = 9
)

// Interrupt indices of PCI devices.
const (
	PCIINTx = iota
	PCIMSI
	PCIMSIX
	PCIERR
	PCIREQ
	PCINumIRQs
)

// Flags of IRQInfo.
const (
	IRQEventfd    = 1 << 0
	IRQMaskable   = 1 << 1
	IRQAutomasked = 1 << 2
	IRQNoResize   = 1 << 3
)

// IRQInfo is struct vfio_irq_info.
type IRQInfo struct{ Argsz, Flags, Index, Count uint32 }

// Flags of IRQSet: one kind of data and one action.
const (
	IRQDataNone      = 1 << 0
	IRQDataBool      = 1 << 1
	IRQDataEventfd   = 1 << 2
	IRQActionMask    = 1 << 3
	IRQActionUnmask  = 1 << 4
	IRQActionTrigger = 1 << 5
)

// IRQSet is struct vfio_irq_set without its data.
type IRQSet struct{ Argsz, Flags, Index, Start, Count uint32 }

// FlagHotResetOwned of HotResetInfo and the device ids that come with it: the
// device belongs to an iommufd.
const (
	HotResetFlagDevID      = 1 << 0
	HotResetFlagDevIDOwned = 1 << 1
)

// Special device ids of DependentDevice.
const (
	DevIDOwned    = 0  // VFIO_PCI_DEVID_OWNED: not opened by the caller, and it need not be
	DevIDNotOwned = -1 // VFIO_PCI_DEVID_NOT_OWNED: keeps the reset from being allowed
)

// HotResetInfo is struct vfio_pci_hot_reset_info without its devices.
type HotResetInfo struct{ Argsz, Flags, Count uint32 }

// DependentDevice is struct vfio_pci_dependent_device. ID is the number of the
// IOMMU group, or the device id with HotResetFlagDevID.
type DependentDevice struct {
	ID      uint32
	Segment uint16
	Bus     uint8
	DevFn   uint8
}

// HotReset is struct vfio_pci_hot_reset without its file descriptors.
type HotReset struct{ Argsz, Flags, Count uint32 }

// Features and flags of Feature.
const (
	FeatureVFToken           = 0 // 16 bytes
	FeatureLowPowerEntry     = 3
	FeatureLowPowerEntryWake = 4 // int32 eventfd, uint32
	FeatureLowPowerExit      = 5
	FeatureGet               = 1 << 16
	FeatureSet               = 1 << 17
	FeatureProbe             = 1 << 18
	FeatureMask              = 0xffff
)

// Feature is struct vfio_device_feature without its data.
type Feature struct{ Argsz, Flags uint32 }

// BindFlagToken of BindIOMMUFD: TokenUUIDPtr points to 16 bytes.
const BindFlagToken = 1 << 0

// BindIOMMUFD is struct vfio_device_bind_iommufd.
type BindIOMMUFD struct {
	Argsz, Flags uint32
	IOMMUFD      int32
	OutDevID     uint32
	TokenUUIDPtr uint64
}

// AttachPT is struct vfio_device_attach_iommufd_pt.
type AttachPT struct{ Argsz, Flags, PTID, PASID uint32 }

// DetachPT is struct vfio_device_detach_iommufd_pt.
type DetachPT struct{ Argsz, Flags, PASID uint32 }

// Flags of Type1Info.
const (
	Type1InfoPageSizes = 1 << 0
	Type1InfoCaps      = 1 << 1
)

// Capabilities of Type1Info.
const (
	Type1CapIOVARange = 1 // CapHeader, nr_iovas uint32, reserved uint32, IOVARange...
	Type1CapMigration = 2
	Type1CapDMAAvail  = 3 // CapHeader, avail uint32
)

// Type1Info is struct vfio_iommu_type1_info without its capabilities.
type Type1Info struct {
	Argsz, Flags uint32
	PageSizes    uint64 // IOVAPgsizes: bit n stands for pages of 1<<n bytes
	CapOffset, _ uint32
}

// IOVARange is struct vfio_iova_range; Last is the last byte.
type IOVARange struct{ Start, Last uint64 }

// Flags of Type1Map.
const (
	MapRead  = 1 << 0 // the device may read
	MapWrite = 1 << 1 // the device may write
)

// Type1Map is struct vfio_iommu_type1_dma_map.
type Type1Map struct {
	Argsz, Flags      uint32
	Vaddr, IOVA, Size uint64
}

// Type1Unmap is struct vfio_iommu_type1_dma_unmap; Size returns what was unmapped.
type Type1Unmap struct {
	Argsz, Flags uint32
	IOVA, Size   uint64
}

// Bytes is the memory of v, which must hold no Go pointer.
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
