package ixystyle

import "fmt"

// maxBufferSize is the largest multiple of 64 that B1L (TDES2 13:0) can express, in bytes.
const maxBufferSize = 16320

// PktBuf is one packet buffer.
type PktBuf struct {
	// Pkt is the frame without FCS. It always begins at the first byte of the buffer;
	// its length is what TxBatch sends.
	Pkt []byte

	mem   []byte // the whole buffer
	bus   uint64 // its bus address
	pool  *Mempool
	index uint32 // its number in the pool
}

// Free gives the buffer back to its pool.
func (b *PktBuf) Free() { b.pool.free(b) }

// Mempool is a fixed set of buffers of one size with a stack of the free ones.
// It is not safe for concurrent use.
type Mempool struct {
	buffers []*PktBuf
	stack   []uint32 // numbers of the free buffers
	top     uint32   // entries in use of stack
}

// NewMempool cuts n buffers, at most 65536, of size bytes from mem. size must be a multiple of 64, up to 16320.
func NewMempool(mem *Memory, n, size int) (*Mempool, error) {
	if n <= 0 || n > 1<<16 || size < 64 || size > maxBufferSize || size%64 != 0 {
		return nil, fmt.Errorf("ixystyle: pool of %d buffers of %d bytes", n, size)
	}
	block, bus, err := mem.alloc(n*size, size&-size)
	if err != nil {
		return nil, err
	}
	p := &Mempool{buffers: make([]*PktBuf, n), stack: make([]uint32, n), top: uint32(n)}
	for i := range p.buffers {
		b := block[i*size : (i+1)*size : (i+1)*size]
		p.buffers[i] = &PktBuf{Pkt: b, mem: b, bus: bus + uint64(i*size), pool: p, index: uint32(i)}
		p.stack[i] = uint32(i)
	}
	return p, nil
}

// Alloc takes one buffer, or returns nil when all are in use. Its Pkt has the length of its last use and the
// capacity of the buffer. Alloc is a call per packet, as in ixy.go, where the
// pool shows up in profiles as a function of its own; left alone the compiler would inline it into RxBatch.
//
//go:noinline
func (p *Mempool) Alloc() *PktBuf {
	if p.top == 0 {
		return nil
	}
	p.top--
	return p.buffers[p.stack[p.top]]
}

func (p *Mempool) free(b *PktBuf) {
	// Only a buffer freed twice can find the stack full.
	if int(p.top) >= len(p.stack) {
		return
	}
	p.stack[p.top] = b.index
	p.top++
}

// Available returns the number of free buffers.
func (p *Mempool) Available() int { return int(p.top) }
