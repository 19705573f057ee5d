package regcheck

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
)

// mode is how descriptors are joined.
type mode int

const (
	ring mode = iota
	chain
)

func (m mode) String() string { return [...]string{"ring", "chain"}[m] }

// descs is a list of descriptors, each with a buffer of maxBuffer bytes.
type descs struct {
	b    *Board
	mode mode
	word []uint32 // four for each
	bus  uint32   // of the first word
	mem  []byte   // of the buffers
	data uint32   // its bus address
	n    int
}

// bufferStride keeps the buffers apart, so that a write behind the end of one is seen.
const bufferStride = 2048

// newDescs makes n descriptors that belong to the CPU.
func newDescs(b *Board, m mode, n int) (*descs, error) {
	mem, bus, err := b.alloc(16 * n)
	if err != nil {
		return nil, err
	}
	data, at, err := b.alloc(bufferStride * n)
	if err != nil {
		return nil, err
	}
	// AllocDMA aligns to a page.
	return &descs{b: b, mode: m, n: n, word: unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), 4*n), bus: bus, mem: data, data: at}, nil
}

func (d *descs) own(i int) *uint32      { return &d.word[4*i] }
func (d *descs) buffer(i int) []byte    { return d.mem[bufferStride*i:][:bufferStride:bufferStride] }
func (d *descs) bufferBus(i int) uint32 { return d.data + uint32(bufferStride*i) }
func (d *descs) owned(i int) bool       { return barrier.LoadOwn(d.own(i))&descOwn != 0 }

// body writes all words but the one with OWN: control with the size of buffer 1, and
// what joins descriptor i with the next. ringEnd and chained are the bits for that.
func (d *descs) body(i int, control, ringEnd, chained uint32) {
	w := d.word[4*i : 4*i+4]
	w[2] = d.bufferBus(i)
	switch {
	case d.mode == chain:
		control |= chained
		w[3] = d.bus + uint32(16*((i+1)%d.n))
	case i == d.n-1:
		control |= ringEnd
		w[3] = 0
	default:
		w[3] = 0
	}
	w[1] = control
}

// postRx gives descriptor i to the device.
func (d *descs) postRx(i int) {
	d.body(i, maxBuffer, rxRER, rxRCH)
	// orders the loads of the last frame and the body before OWN
	barrier.DMARelease()
	barrier.StoreOwn(d.own(i), descOwn)
}

// received waits for the frame that starts in descriptor i, and returns it without the
// four bytes of the check sequence, and the descriptor behind it. The descriptors still
// belong to the CPU.
func (d *descs) received(ctx context.Context, i int) (frame []byte, next int, err error) {
	for first := true; ; first = false {
		var status uint32
		for {
			// The model gives the last descriptor back in two steps, and the first
			// has no LS: a frame is there when its last descriptor has it.
			status = barrier.LoadOwn(d.own(i))
			if status&descOwn == 0 && status&rxLS != 0 {
				break
			}
			if status&descOwn == 0 && !d.owned((i+1)%d.n) {
				// orders OWN of the next descriptor before the status of this one, which was
				// complete by then, and may not have been when it was read above
				barrier.DMARead()
				status = barrier.LoadOwn(d.own(i))
				break
			}
			if err := d.b.pause(ctx); err != nil {
				return nil, i, fmt.Errorf("descriptor %d has %#x: %w", i, status, err)
			}
		}
		// orders OWN before the buffer
		barrier.DMARead()
		if got := status&rxFS != 0; got != first {
			return nil, i, fmt.Errorf("descriptor %d has %#x: first descriptor %v instead of %v", i, status, got, first)
		}
		if status&rxES != 0 {
			return nil, i, fmt.Errorf("descriptor %d has %#x: an error", i, status)
		}
		buffer := d.buffer(i)[:maxBuffer]
		i = (i + 1) % d.n
		if status&rxLS == 0 {
			frame = append(frame, buffer...)
			continue
		}
		n := int(status>>16&0x3fff) - len(frame)
		if n < 0 || n > maxBuffer {
			return nil, i, fmt.Errorf("the last descriptor has %#x: %d bytes in a buffer of %d", status, n, maxBuffer)
		}
		frame = append(frame, buffer[:n]...)
		if len(frame) < 4 {
			return nil, i, fmt.Errorf("a frame of %d bytes with its check sequence", len(frame))
		}
		return frame[:len(frame)-4], i, nil
	}
}

// postTx puts a frame into descriptors from i on and gives them to the device, the first
// last. It returns the descriptor behind the frame. The doorbell is the caller's.
func (d *descs) postTx(i int, frame []byte, per int, flags uint32) (next int) {
	first, control := i, uint32(txFS)|flags
	for len(frame) > 0 {
		n := copy(d.buffer(i)[:per], frame)
		frame = frame[n:]
		if len(frame) == 0 {
			control |= txLS
		}
		d.body(i, control|uint32(n), txTER, txTCH)
		if i != first {
			barrier.StoreOwn(d.own(i), descOwn)
		}
		i, control = (i+1)%d.n, flags&^txIC
	}
	// orders all of the frame before the OWN of its first descriptor
	barrier.DMAWrite()
	barrier.StoreOwn(d.own(first), descOwn)
	return i
}

// sent waits until the device has given back all descriptors from i up to end.
func (d *descs) sent(ctx context.Context, i, end int) error {
	for ; i != end; i = (i + 1) % d.n {
		for d.owned(i) {
			if err := d.b.pause(ctx); err != nil {
				return fmt.Errorf("descriptor %d is not given back: %w", i, err)
			}
		}
	}
	return nil
}
