//go:build !linux

package sim

import "unsafe"

// allocMemory returns n zeroed bytes aligned to align.
func allocMemory(n, align int) (mem []byte, free func() error, err error) {
	all := make([]byte, n+align)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (align - 1)
	return all[skip : skip+n : skip+n], func() error { return nil }, nil
}
