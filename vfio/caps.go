package vfio

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// capability is an element of a chain in the answer to a request.
type capability struct {
	id, version uint16
	data        []byte // behind the header, to the end of the answer
}

const capHeaderLen = 8

// capabilities reads the chain that starts at first in an answer, 0 for none.
// The answer is the kernel's, or that of whoever stands in its place: an offset
// that is outside, or a chain with a loop, is an error.
func capabilities(answer []byte, first uint32) ([]capability, error) {
	var chain []capability
	for next := first; next != 0; {
		if uint64(next)+capHeaderLen > uint64(len(answer)) {
			return nil, fmt.Errorf("a capability at offset %d of %d bytes: %w", next, len(answer), os.ErrInvalid)
		}
		h := answer[next:]
		chain = append(chain, capability{
			id:      binary.NativeEndian.Uint16(h),
			version: binary.NativeEndian.Uint16(h[2:]),
			data:    h[capHeaderLen:],
		})
		if len(chain) > len(answer)/capHeaderLen {
			return nil, fmt.Errorf("the chain of capabilities has a loop: %w", os.ErrInvalid)
		}
		next = binary.NativeEndian.Uint32(h[4:])
	}
	return chain, nil
}

// pairs reads a capability that is a count and as many pairs of 64 bits: IOVA
// ranges, areas that can be mapped.
func (c capability) pairs() ([][2]uint64, error) {
	if len(c.data) < 8 {
		return nil, fmt.Errorf("capability %d has %d bytes: %w", c.id, len(c.data), os.ErrInvalid)
	}
	n, list := uint64(binary.NativeEndian.Uint32(c.data)), c.data[8:]
	if n > uint64(len(list)/16) {
		return nil, fmt.Errorf("capability %d says %d elements and has room for %d: %w", c.id, n, len(list)/16, os.ErrInvalid)
	}
	all := make([][2]uint64, n)
	for i := range all {
		all[i] = [2]uint64{binary.NativeEndian.Uint64(list[16*i:]), binary.NativeEndian.Uint64(list[16*i+8:])}
	}
	return all, nil
}

// query makes a request whose answer grows by capabilities: the kernel says in
// argsz how much room it needs.
func query[T any](k Kernel, fd int, req uint32, call string, head T, argsz func(*T) *uint32) (T, []byte, error) {
	const (
		most  = 1 << 20
		tries = 8 // an answer that grows for ever is none
	)
	room := len(uapi.Bytes(&head))
	for range tries {
		*argsz(&head) = uint32(room)
		buf := make([]byte, room)
		copy(buf, uapi.Bytes(&head))
		if _, err := k.Ioctl(fd, req, buf); err != nil {
			return head, nil, &Error{Call: call, Err: err}
		}
		answer := head
		copy(uapi.Bytes(&answer), buf)
		need := int64(*argsz(&answer))
		switch {
		case need <= int64(room):
			return answer, buf, nil
		case need > most:
			return head, nil, &Error{Call: call, Err: fmt.Errorf("the answer would have %d bytes: %w", need, os.ErrInvalid)}
		}
		room = int(need)
	}
	return head, nil, &Error{Call: call, Err: fmt.Errorf("the answer grows with each request: %w", os.ErrInvalid)}
}
