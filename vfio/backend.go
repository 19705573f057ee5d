package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Backend is a way by which the kernel gives devices to a process.
type Backend uint8

// Backends.
const (
	// Auto takes IOMMUFD where the device and the kernel have it, and Group else.
	Auto Backend = iota
	// Group opens the IOMMU group of the device and puts it into a container
	// (/dev/vfio/vfio): the interface that all kernels with VFIO have.
	Group
	// IOMMUFD opens the character device of the device itself
	// (/dev/vfio/devices) and binds it to /dev/iommu: Linux 6.6 on.
	IOMMUFD
)

// String returns "auto", "group" or "iommufd".
func (b Backend) String() string {
	switch b {
	case Auto:
		return "auto"
	case Group:
		return "group"
	case IOMMUFD:
		return "iommufd"
	}
	return fmt.Sprintf("backend %d", uint8(b))
}

// space is an IOVA space of the kernel and the devices in it. The domain holds its
// lock around all calls.
type space interface {
	// attach opens a device and puts it into the space.
	attach(i *Info, token *VFToken) (fd int, err error)
	// detach closes what attach opened. What else it had to open stays until end.
	detach(i *Info, fd int) error
	// limits says what can be mapped. There must be a device.
	limits() (limits, error)
	// mapDMA maps mem at iova and returns where on the bus the devices see it:
	// at iova, or where it lies in memory under noiommu.
	mapDMA(mem []byte, iova uint64) (bus uint64, err error)
	// unmapDMA undoes mapDMA.
	unmapDMA(iova, n uint64) error
	// pins says whether mapped memory stays where it is.
	pins() bool
	// physical says that there is no IOMMU.
	physical() bool
	// end closes the space, in which there is no device.
	end() error
}

// limits are what a space can map.
type limits struct {
	ranges []uapi.IOVARange
	page   uint64 // bytes, a power of two: of the IOMMU
	left   int    // mappings that can be made; negative: no limit
}

// vaddr is where memory lies in the process.
func vaddr(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// unmapped checks what the kernel says that it has unmapped: a device still
// reaches the rest.
func unmapped(call string, want, got uint64) error {
	if got == want {
		return nil
	}
	return &Error{Call: call, Err: fmt.Errorf("%d of %d bytes were unmapped, and the device may reach the others: %w", got, want, os.ErrInvalid)}
}

// smallestPage is the smallest page of a bitmap of sizes, and at least floor.
func smallestPage(bitmap uint64, floor int) uint64 {
	return max(bitmap&-bitmap, uint64(floor))
}

// refused explains why a device does not go into a space. module is that of the kernel
// which checks that interrupts are isolated.
func refused(call string, err error, module string) *Error {
	e := &Error{Call: call, Err: err}
	switch {
	case errors.Is(err, syscall.EINVAL):
		e.Remedy = "the IOMMU refuses the device: dmesg says why; the firmware may want memory of its own mapped for it (a reserved region of type direct), or it does not snoop caches"
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EADDRINUSE):
		e.Remedy = "memory of the domain is mapped where this device has reserved addresses: open the device first"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = unsafeInterrupts(module)
	}
	return e
}

// unsafeInterrupts is what to do where the platform does not isolate interrupts.
func unsafeInterrupts(module string) string {
	return "the platform does not isolate interrupts: turn on interrupt remapping, or accept the danger with modprobe " + module + " allow_unsafe_interrupts=1"
}
