package uapi

// Requests of /dev/iommu: _IO(';', 0x80+n).
const (
	IOMMUDestroy     = 0x3b80 // Destroy
	IOASAlloc        = 0x3b81 // IOASAllocArg
	IOASIOVARanges   = 0x3b84 // IOASRanges
	IOASMap          = 0x3b85 // IOASMapArg
	IOASUnmap        = 0x3b86 // IOASUnmapArg
	IOASNoIOMMUGetPA = 0x3b95 // IOASGetPA; Linux 7.3
)

// Destroy is struct iommu_destroy.
type Destroy struct{ Size, ID uint32 }

// IOASAllocArg is struct iommu_ioas_alloc.
type IOASAllocArg struct{ Size, Flags, OutID uint32 }

// IOASRanges is struct iommu_ioas_iova_ranges. AllowedIOVAs points to NumIOVAs
// IOVARange; too few are answered with EMSGSIZE and the number that is needed.
type IOASRanges struct {
	Size, IOASID, NumIOVAs, _ uint32
	AllowedIOVAs              uint64
	OutIOVAAlignment          uint64
}

// Flags of IOASMapArg.
const (
	IOASMapFixedIOVA = 1 << 0
	IOASMapWriteable = 1 << 1
	IOASMapReadable  = 1 << 2
)

// IOASMapArg is struct iommu_ioas_map.
type IOASMapArg struct {
	Size, Flags, IOASID, _ uint32
	UserVA, Length, IOVA   uint64
}

// IOASUnmapArg is struct iommu_ioas_unmap; Length returns what was unmapped.
type IOASUnmapArg struct {
	Size, IOASID uint32
	IOVA, Length uint64
}

// IOASGetPA is struct iommu_ioas_noiommu_get_pa: IOVA is looked up; Length, which is not 0,
// is the most that is asked about and returns how many bytes from there on are contiguous
// in memory; OutPhys is the physical address.
type IOASGetPA struct {
	Size, Flags, IOASID, _ uint32
	IOVA, Length, OutPhys  uint64
}
