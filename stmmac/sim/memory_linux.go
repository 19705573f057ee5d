package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// allocMemory returns n zeroed bytes aligned to align, outside the Go heap: there
// the race detector does not take the engine's accesses for races.
func allocMemory(n, align int) (mem []byte, free func() error, err error) {
	all, err := unix.Mmap(-1, 0, n+align, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (align - 1)
	return all[skip : skip+n : skip+n], func() error { return unix.Munmap(all) }, nil
}
