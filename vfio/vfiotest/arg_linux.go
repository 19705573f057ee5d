package vfiotest

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// readArg copies a structure that starts with its size. least is what the kernel
// needs of it; a smaller size is EINVAL. A size that goes beyond the caller's
// memory, which the kernel could not know, is EFAULT.
func readArg[T any](arg []byte, least int) (v T, err error) {
	if len(arg) < 4 {
		return v, unix.EFAULT
	}
	argsz := binary.NativeEndian.Uint32(arg)
	if argsz < uint32(least) {
		return v, unix.EINVAL
	}
	if uint64(argsz) > uint64(len(arg)) {
		return v, unix.EFAULT
	}
	copy(uapi.Bytes(&v), arg[:min(int(argsz), int(unsafe.Sizeof(v)))])
	return v, nil
}

// writeArg gives n bytes of a structure back.
func writeArg[T any](arg []byte, v *T, n int) { copy(arg[:min(n, len(arg))], uapi.Bytes(v)) }

// capability is an element of a chain before it is laid out.
type capability struct {
	id, version uint16
	body        []byte
}

// chain lays capabilities out behind a structure of base bytes.
func chain(base int, caps []capability) []byte {
	const header = 8
	var out []byte
	for i, c := range caps {
		n := int(roundUp(uint64(header+len(c.body)), 8))
		h := uapi.CapHeader{ID: c.id, Version: c.version}
		if i+1 < len(caps) {
			h.Next = uint32(base + len(out) + n)
		}
		e := make([]byte, n)
		copy(e, uapi.Bytes(&h))
		copy(e[header:], c.body)
		out = append(out, e...)
	}
	return out
}

// body is the memory of values one after the other.
func body(values ...any) []byte {
	var b []byte
	for _, v := range values {
		b, _ = binary.Append(b, binary.NativeEndian, v)
	}
	return b
}
