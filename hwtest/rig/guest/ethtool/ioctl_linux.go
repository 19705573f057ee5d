package ethtool

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open makes the socket that ioctls go through. It belongs to the network namespace of the
// thread.
func open() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) }

func closeSocket(fd int) error { return unix.Close(fd) }

// request is struct ifreq of netdevice(7) with a pointer.
type request struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // what other uses of it have more
}

// ioctl gives the kernel data, which it changes. The answer is what the ioctl returns.
func ioctl(fd int, name string, data []uint64) (int, error) {
	if len(name) >= unix.IFNAMSIZ {
		return 0, os.ErrInvalid
	}
	r := request{data: unsafe.Pointer(&data[0])}
	copy(r.name[:], name)
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(data)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
