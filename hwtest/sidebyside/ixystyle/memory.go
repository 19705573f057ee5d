package ixystyle

import (
	"errors"
	"fmt"
)

// hugePage is the alignment that lets the kernel back DMA memory with huge pages.
const hugePage = 2 << 20

// busBase is where the device sees the memory. It is above 4 GiB so that a lost high address word is noticed.
const busBase = 0x1_4000_0000

// ErrNoMemory is returned when a Memory has no room for a ring or a pool.
var ErrNoMemory = errors.New("ixystyle: DMA memory exhausted")

// Memory is what a device can reach by DMA: one block outside the Go heap, cut from front to back.
// It is not safe for concurrent use.
type Memory struct {
	mapping []byte // what was mapped
	bytes   []byte // the aligned part of it
	used    int
}

// NewMemory maps n bytes, zeroed and aligned to 2 MiB.
func NewMemory(n int) (*Memory, error) {
	if n <= 0 {
		return nil, fmt.Errorf("ixystyle: memory of %d bytes", n)
	}
	mapping, bytes, err := mapMemory(n)
	if err != nil {
		return nil, fmt.Errorf("ixystyle: map %d bytes: %w", n, err)
	}
	return &Memory{mapping: mapping, bytes: bytes}, nil
}

// Bytes returns all of the memory. It must not be used after Close.
func (m *Memory) Bytes() []byte { return m.bytes }

// Bus returns the bus address of the first byte.
func (m *Memory) Bus() uint64 { return busBase }

// alloc cuts n bytes, aligned to a power of two, and returns them with their bus address.
func (m *Memory) alloc(n, align int) ([]byte, uint64, error) {
	start := (m.used + align - 1) &^ (align - 1)
	if start > len(m.bytes) || n > len(m.bytes)-start {
		return nil, 0, fmt.Errorf("%w: %d bytes at %d of %d", ErrNoMemory, n, start, len(m.bytes))
	}
	m.used = start + n
	return m.bytes[start:m.used:m.used], busBase + uint64(start), nil
}

// Close unmaps the memory. Every slice into it is invalid afterwards. A second Close does nothing.
func (m *Memory) Close() error {
	mapping := m.mapping
	m.mapping, m.bytes = nil, nil
	if mapping == nil {
		return nil
	}
	return unmapMemory(mapping)
}
