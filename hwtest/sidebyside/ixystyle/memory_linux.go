package ixystyle

import (
	"syscall"
	"unsafe"
)

func mapMemory(n int) (mapping, aligned []byte, err error) {
	mapping, err = syscall.Mmap(-1, 0, n+hugePage, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	start := -int(uintptr(unsafe.Pointer(&mapping[0]))) & (hugePage - 1)
	aligned = mapping[start : start+n : start+n]
	// ixy keeps its pool in huge pages; where the kernel refuses, the loop only gets slower.
	_ = syscall.Madvise(aligned, syscall.MADV_HUGEPAGE)
	return mapping, aligned, nil
}

func unmapMemory(mapping []byte) error { return syscall.Munmap(mapping) }
