package qtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ram gives out the board's memory. The bus address of a byte is its offset.
type ram struct {
	mu     sync.Mutex
	mem    []byte
	unmap  func() error
	used   []span // by start
	closed bool   // no more is given out; unmapped with the last span
}

type span struct{ start, n uint64 }

func (s span) end() uint64 { return s.start + s.n }

const pageSize = 4096

// alloc returns n zeroed bytes that start at a multiple of align, 0 for a page.
func (r *ram) alloc(n, align int) ([]byte, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, 0, ErrClosed
	case n <= 0:
		return nil, 0, fmt.Errorf("%w: %d bytes", ErrConfig, n)
	case align < 0 || align&(align-1) != 0:
		return nil, 0, fmt.Errorf("%w: alignment %d is no power of two", ErrConfig, align)
	}
	if uint64(n) > uint64(len(r.mem)) || align > len(r.mem) {
		return nil, 0, fmt.Errorf("%w: %d bytes aligned to %d of %d", ErrNoMemory, n, align, len(r.mem))
	}
	a := uint64(max(align, pageSize))
	up := func(v uint64) uint64 { return (v + a - 1) &^ (a - 1) }
	size := (uint64(n) + pageSize - 1) &^ (pageSize - 1)
	at := up(lowestDMA)
	i := 0
	for ; i < len(r.used) && r.used[i].start < at+size; i++ {
		at = max(at, up(r.used[i].end()))
	}
	if at+size > uint64(len(r.mem)) {
		return nil, 0, fmt.Errorf("%w: %d bytes aligned to %d of %d", ErrNoMemory, n, align, len(r.mem))
	}
	r.used = slices.Insert(r.used, i, span{at, size})
	mem := r.mem[at : at+uint64(n) : at+uint64(n)]
	clear(mem)
	return mem, at, nil
}

// free takes back what alloc gave, exactly.
func (r *ram) free(at uint64, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.used, func(s span) bool { return s.start == at })
	if i < 0 || n <= 0 || (uint64(n)+pageSize-1)&^(pageSize-1) != r.used[i].n {
		return fmt.Errorf("%w: %d bytes at %#x were not allocated", ErrConfig, n, at)
	}
	r.used = slices.Delete(r.used, i, i+1)
	return r.maybeUnmap()
}

// close gives no more out. Memory that is still allocated stays in the process until
// it is freed: whoever has it may be reading.
func (r *ram) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.maybeUnmap()
}

func (r *ram) maybeUnmap() error {
	if !r.closed || len(r.used) > 0 || r.mem == nil {
		return nil
	}
	r.mem = nil
	return r.unmap()
}

// errNoMap is why memory of others cannot be mapped.
var errNoMap = fmt.Errorf("the board reaches its own RAM alone: %w", errors.ErrUnsupported)
