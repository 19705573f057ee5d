package vfio

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

const (
	iommuNode = "dev/iommu"
	cdevDir   = "dev/vfio/devices"
)

// ioas is an I/O address space of an iommufd.
type ioas struct {
	k  Kernel
	fd int
	id uint32
	// given says that id is a parent's, which destroys it.
	given bool
}

// openIOAS makes an address space; with fd >= 0 in an iommufd that a parent
// opened, and with id there is one in it already.
func openIOAS(k Kernel, fd int, id uint32) (*ioas, error) {
	s := &ioas{k: k, fd: fd, id: id, given: id != 0}
	if fd < 0 {
		var err error
		if s.fd, err = openNode(k, iommuNode); err != nil {
			return nil, err
		}
	}
	if s.given {
		return s, nil
	}
	arg := uapi.IOASAllocArg{}
	arg.Size = uint32(len(uapi.Bytes(&arg)))
	if _, err := k.Ioctl(s.fd, uapi.IOASAlloc, uapi.Bytes(&arg)); err != nil {
		return nil, errors.Join(&Error{Call: "IOMMU_IOAS_ALLOC", Err: err}, k.Close(s.fd))
	}
	s.id = arg.OutID
	return s, nil
}

func (i *Info) cdevNode() string { return path.Join(cdevDir, i.Cdev) }

func (s *ioas) attach(i *Info, token *VFToken) (int, error) {
	if i.Cdev == "" {
		return -1, fmt.Errorf("the device has no node in /dev/vfio/devices: the kernel has no CONFIG_VFIO_DEVICE_CDEV, or the device is not with a VFIO driver: %w", os.ErrNotExist)
	}
	fd, err := openNode(s.k, i.cdevNode())
	if err != nil {
		return -1, err
	}
	if err := s.adopt(fd, i, token); err != nil {
		return -1, errors.Join(err, s.k.Close(fd))
	}
	return fd, nil
}

// adopt binds an open device to the iommufd, unless a parent did, and puts it into
// the address space.
func (s *ioas) adopt(fd int, i *Info, token *VFToken) error {
	if _, err := deviceInfo(s.k, fd); err != nil {
		// A device answers nothing before it is bound.
		if err := s.bind(fd, i, token); err != nil {
			return err
		}
	}
	arg := uapi.AttachPT{PTID: s.id}
	arg.Argsz = uint32(unsafe.Offsetof(arg.PASID)) // the length before there was a PASID, which all kernels take
	if _, err := s.k.Ioctl(fd, uapi.DeviceAttachPT, uapi.Bytes(&arg)); err != nil {
		return refused("VFIO_DEVICE_ATTACH_IOMMUFD_PT", err, "iommufd")
	}
	return nil
}

func (s *ioas) bind(fd int, i *Info, token *VFToken) error {
	arg := uapi.BindIOMMUFD{IOMMUFD: int32(s.fd)}
	arg.Argsz = uint32(unsafe.Offsetof(arg.TokenUUIDPtr)) // without a token all kernels take it
	var pin runtime.Pinner
	defer pin.Unpin()
	if token != nil {
		// The structure holds an address of Go's memory as a number.
		pin.Pin(token)
		arg.Flags |= uapi.BindFlagToken
		arg.TokenUUIDPtr = uint64(uintptr(unsafe.Pointer(token)))
		arg.Argsz = uint32(len(uapi.Bytes(&arg)))
	}
	if _, err := s.k.Ioctl(fd, uapi.DeviceBindIOMMUFD, uapi.Bytes(&arg)); err != nil {
		e := &Error{Call: "VFIO_DEVICE_BIND_IOMMUFD", Err: err}
		if errors.Is(err, syscall.EACCES) && asleep(s.k, i) {
			e = sleepError("VFIO_DEVICE_BIND_IOMMUFD", i, err)
		} else if errors.Is(err, syscall.EINVAL) {
			e.Remedy = "the IOMMU of the device does not keep caches coherent, another device of its group is with a kernel driver, or it is a VF that needs a token (WithVFToken)"
		}
		return e
	}
	return nil
}

// detach closes the device, which takes it out of the address space.
func (s *ioas) detach(_ *Info, fd int) error { return closeFD(s.k, fd) }

func (s *ioas) limits() (limits, error) {
	arg := uapi.IOASRanges{IOASID: s.id}
	arg.Size = uint32(len(uapi.Bytes(&arg)))
	for n := uint32(8); ; n = arg.NumIOVAs {
		const most = 1 << 16
		if n > most {
			return limits{}, &Error{Call: "IOMMU_IOAS_IOVA_RANGES", Err: fmt.Errorf("%d ranges: %w", n, os.ErrInvalid)}
		}
		ranges := make([]uapi.IOVARange, n)
		var pin runtime.Pinner
		pin.Pin(&ranges[0]) // the structure holds its address as a number
		arg.NumIOVAs = n
		arg.AllowedIOVAs = uint64(uintptr(unsafe.Pointer(&ranges[0])))
		_, err := s.k.Ioctl(s.fd, uapi.IOASIOVARanges, uapi.Bytes(&arg))
		pin.Unpin()
		if errors.Is(err, syscall.EMSGSIZE) && arg.NumIOVAs > n {
			continue
		}
		if err == nil && arg.NumIOVAs > n {
			err = fmt.Errorf("%d ranges in room for %d: %w", arg.NumIOVAs, n, os.ErrInvalid)
		}
		if err != nil {
			return limits{}, &Error{Call: "IOMMU_IOAS_IOVA_RANGES", Err: err}
		}
		return limits{
			ranges: ranges[:arg.NumIOVAs],
			page:   smallestPage(arg.OutIOVAAlignment, s.k.PageSize()),
			left:   -1,
		}, nil
	}
}

func (s *ioas) mapDMA(mem []byte, iova uint64) (uint64, error) {
	arg := uapi.IOASMapArg{
		Flags:  uapi.IOASMapFixedIOVA | uapi.IOASMapWriteable | uapi.IOASMapReadable,
		IOASID: s.id, UserVA: vaddr(mem), Length: uint64(len(mem)), IOVA: iova,
	}
	arg.Size = uint32(len(uapi.Bytes(&arg)))
	_, err := s.k.Ioctl(s.fd, uapi.IOASMap, uapi.Bytes(&arg))
	if err == nil {
		return iova, nil
	}
	e := &Error{Call: "IOMMU_IOAS_MAP", Err: err}
	if errors.Is(err, syscall.ENOMEM) {
		e.Err = fmt.Errorf("%w: %w", ErrMemlock, err)
		e.Remedy = "the limit counts what all processes of the user have mapped: ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit, or CAP_IPC_LOCK"
	}
	return 0, e
}

func (s *ioas) unmapDMA(iova, n uint64) error {
	arg := uapi.IOASUnmapArg{IOASID: s.id, IOVA: iova, Length: n}
	arg.Size = uint32(len(uapi.Bytes(&arg)))
	if _, err := s.k.Ioctl(s.fd, uapi.IOASUnmap, uapi.Bytes(&arg)); err != nil {
		return &Error{Call: "IOMMU_IOAS_UNMAP", Err: err}
	}
	return unmapped("IOMMU_IOAS_UNMAP", n, arg.Length)
}

func (s *ioas) pins() bool     { return true }
func (s *ioas) physical() bool { return false }

func (s *ioas) end() error {
	var err error
	if !s.given {
		arg := uapi.Destroy{ID: s.id}
		arg.Size = uint32(len(uapi.Bytes(&arg)))
		if _, e := s.k.Ioctl(s.fd, uapi.IOMMUDestroy, uapi.Bytes(&arg)); e != nil {
			err = &Error{Call: "IOMMU_DESTROY", Err: e}
		}
	}
	return errors.Join(err, closeFD(s.k, s.fd))
}
