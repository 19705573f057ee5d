//go:build !linux

package ixystyle

import "unsafe"

func mapMemory(n int) (mapping, aligned []byte, err error) {
	mapping = make([]byte, n+hugePage)
	start := -int(uintptr(unsafe.Pointer(&mapping[0]))) & (hugePage - 1)
	return mapping, mapping[start : start+n : start+n], nil
}

func unmapMemory([]byte) error { return nil }
