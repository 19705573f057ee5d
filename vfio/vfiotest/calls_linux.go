package vfiotest

import (
	"fmt"
	"slices"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Call is a call that was made of the kernel.
type Call struct {
	// Name is "open", "close", "mmap", "munmap", "huge" (memory of huge pages),
	// "pread", "pwrite", "write" (of an attribute) or the request as the kernel's
	// headers have it, "VFIO_GROUP_SET_CONTAINER".
	// Successful pread and pwrite are left out.
	Name string
	// Dev is the node or attribute, or what the descriptor stands for: a device's
	// name, "group 7", "container", "iommufd".
	Dev string
	FD  int // -1 for none
	Err error
}

// Calls returns the calls so far, oldest first.
func (k *Kernel) Calls() []Call {
	k.mu.Lock()
	defer k.unlock()
	return slices.Clone(k.calls)
}

// FailNext makes the next call of a name, as in Call.Name, fail with err, which
// should be an errno, before it has an effect. Several calls queue up.
func (k *Kernel) FailNext(call string, err error) {
	k.mu.Lock()
	defer k.unlock()
	k.fail[call] = append(k.fail[call], err)
}

// MaxVectors lets a device have at most n vectors of MSI or MSI-X: SET_IRQS of more
// returns n and changes nothing. 0 is no limit.
func (k *Kernel) MaxVectors(n int) {
	k.mu.Lock()
	defer k.unlock()
	k.maxVectors = n
}

// ShortUnmap makes the next unmapping succeed without effect and say that n bytes
// were unmapped.
func (k *Kernel) ShortUnmap(n uint64) {
	k.mu.Lock()
	defer k.unlock()
	k.short = &n
}

func (k *Kernel) failure(call string) error {
	q := k.fail[call]
	if len(q) == 0 {
		return nil
	}
	k.fail[call] = q[1:]
	return q[0]
}

func (k *Kernel) log(name, dev string, fd int, err error) {
	if err != nil && name == "open" {
		fd = -1
	}
	k.calls = append(k.calls, Call{name, dev, fd, err})
}

// fileName says what a descriptor stands for.
func fileName(f any) string {
	switch f := f.(type) {
	case *container:
		return "container"
	case *group:
		return fmt.Sprintf("group %d", f.num)
	case *deviceFile:
		return f.d.name
	case *iommufd:
		return "iommufd"
	}
	return ""
}

// requestName is the name of a request on a descriptor: some share a number.
func requestName(f any, req uint32) string {
	if _, ok := f.(*container); ok {
		switch req {
		case uapi.IOMMUGetInfo:
			return "VFIO_IOMMU_GET_INFO"
		case uapi.IOMMUMapDMA:
			return "VFIO_IOMMU_MAP_DMA"
		case uapi.IOMMUUnmapDMA:
			return "VFIO_IOMMU_UNMAP_DMA"
		}
	}
	switch req {
	case uapi.GetAPIVersion:
		return "VFIO_GET_API_VERSION"
	case uapi.CheckExtension:
		return "VFIO_CHECK_EXTENSION"
	case uapi.SetIOMMU:
		return "VFIO_SET_IOMMU"
	case uapi.GroupGetStatus:
		return "VFIO_GROUP_GET_STATUS"
	case uapi.GroupSetContainer:
		return "VFIO_GROUP_SET_CONTAINER"
	case uapi.GroupUnsetContainer:
		return "VFIO_GROUP_UNSET_CONTAINER"
	case uapi.GroupGetDeviceFD:
		return "VFIO_GROUP_GET_DEVICE_FD"
	case uapi.DeviceGetInfo:
		return "VFIO_DEVICE_GET_INFO"
	case uapi.DeviceGetRegionInfo:
		return "VFIO_DEVICE_GET_REGION_INFO"
	case uapi.DeviceGetIRQInfo:
		return "VFIO_DEVICE_GET_IRQ_INFO"
	case uapi.DeviceSetIRQs:
		return "VFIO_DEVICE_SET_IRQS"
	case uapi.DeviceReset:
		return "VFIO_DEVICE_RESET"
	case uapi.DeviceGetHotResetInfo:
		return "VFIO_DEVICE_GET_PCI_HOT_RESET_INFO"
	case uapi.DeviceHotReset:
		return "VFIO_DEVICE_PCI_HOT_RESET"
	case uapi.DeviceFeature:
		return "VFIO_DEVICE_FEATURE"
	case uapi.DeviceBindIOMMUFD:
		return "VFIO_DEVICE_BIND_IOMMUFD"
	case uapi.DeviceAttachPT:
		return "VFIO_DEVICE_ATTACH_IOMMUFD_PT"
	case uapi.DeviceDetachPT:
		return "VFIO_DEVICE_DETACH_IOMMUFD_PT"
	case uapi.IOMMUDestroy:
		return "IOMMU_DESTROY"
	case uapi.IOASAlloc:
		return "IOMMU_IOAS_ALLOC"
	case uapi.IOASIOVARanges:
		return "IOMMU_IOAS_IOVA_RANGES"
	case uapi.IOASMap:
		return "IOMMU_IOAS_MAP"
	case uapi.IOASUnmap:
		return "IOMMU_IOAS_UNMAP"
	case uapi.IOASNoIOMMUGetPA:
		return "IOMMU_IOAS_NOIOMMU_GET_PA"
	}
	return fmt.Sprintf("%#x", req)
}
