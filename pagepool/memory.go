package pagepool

import (
	"errors"
	"fmt"
	"os"
)

// Memory is a piece of memory that one device reaches by DMA, for rings. Its
// methods may be called by one goroutine at a time.
type Memory struct {
	mapper Mapper
	bytes  []byte
	addr   uint64
	local  *reservation // nil when the device brought the memory
}

// NewMemory returns n bytes that m reaches, aligned to align (a power of two,
// at most a page) in the process and on the bus, all zero. It asks m.AllocDMA
// first and maps pages of the process where the device brings no memory.
func NewMemory(m Mapper, n, align int) (*Memory, error) {
	if n <= 0 || align <= 0 || align&(align-1) != 0 || align > os.Getpagesize() {
		return nil, &Error{Op: "new memory", Err: fmt.Errorf("%d bytes aligned to %d: %w", n, align, os.ErrInvalid)}
	}
	mem, addr, err := m.AllocDMA(n, align)
	switch {
	case err == nil:
		if !suits(mem, addr, n, align) {
			return nil, errors.Join(
				&Error{Op: "new memory", Err: misshapen(mem, addr, n, align)},
				m.UnmapDMA(addr, len(mem)))
		}
		clear(mem[:n])
		return &Memory{mapper: m, bytes: mem[:n:n], addr: addr}, nil
	case !errors.Is(err, errors.ErrUnsupported):
		return nil, &Error{Op: "allocate memory of the device", Err: err}
	}
	r, err := reserve(0, roundUp(n, os.Getpagesize()), pagesSmall, !pins(m))
	if err != nil {
		return nil, &Error{Op: "new memory", Err: err}
	}
	addr, err = m.MapDMA(r.payload)
	if err != nil {
		return nil, errors.Join(&Error{Op: "map memory for the device", Err: err}, r.release())
	}
	return &Memory{mapper: m, bytes: r.payload[:n:n], addr: addr, local: r}, nil
}

// Bytes is the memory.
func (m *Memory) Bytes() []byte { return m.bytes }

// Addr is the bus address of its first byte.
func (m *Memory) Addr() uint64 { return m.addr }

// Close unmaps the memory and gives it back. The device must not use it any
// more. It is safe to call twice.
func (m *Memory) Close() error {
	if m.mapper == nil {
		return nil
	}
	n := len(m.bytes)
	if m.local != nil {
		n = len(m.local.payload)
	}
	err := m.mapper.UnmapDMA(m.addr, n)
	m.mapper, m.bytes = nil, nil
	if m.local != nil {
		err = errors.Join(err, m.local.release())
	}
	if err != nil {
		return &Error{Op: "close memory", Err: err}
	}
	return nil
}
