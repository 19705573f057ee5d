// Package fakemac is the device side of the side-by-side loops: DMA channel 0
// of a GMAC4 core over plain memory, stepped by the caller on its own core.
//
// It completes descriptors and nothing else: no wire, no interrupts, one buffer
// per frame. The bits are spelled out here a second time on purpose: a driver
// that took them from this package could not disagree with it.
//
// Sources: DWC Ethernet QoS databook, chapters "Register Descriptions" (EQOS_DMA_CH)
// and "Descriptors"; Linux dwmac4_dma.h and dwmac4_descs.h.
package fakemac

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Registers of DMA channel 0.
const (
	dmaCh0TxControl      = 0x1104
	dmaCh0RxControl      = 0x1108
	dmaCh0TxListHigh     = 0x1110
	dmaCh0TxListLow      = 0x1114
	dmaCh0RxListHigh     = 0x1118
	dmaCh0RxListLow      = 0x111c
	dmaCh0TxTail         = 0x1120
	dmaCh0RxTail         = 0x1128
	dmaCh0TxRingLength   = 0x112c
	dmaCh0RxRingLength   = 0x1130
	barSize              = 0x2000
	startBit             = 1 << 0 // ST and SR
	ringLengthMask       = 0x3ff  // TDRL, RDRL: descriptors - 1
	rbszShift            = 1      // RBSZ 14:1, in bytes
	rbszMask             = 0x3fff
	descriptorSize       = 16
	descOwn              = 1 << 31
	descFirst            = 1 << 29 // FD
	descLast             = 1 << 28 // LD
	rdes3Buffer1Valid    = 1 << 24
	rdes3PacketLength    = 0x7fff
	rdes3Status1Valid    = 1 << 26
	rdes1GoodUDP         = 1<<4 | 1 // IPv4, UDP, no error: the verdict of the checksum engine
	tdes2Buffer1Length   = 0x3fff
	tdes3Context         = 1 << 30
	tdes3FrameLength     = 0x7fff
	frameCheckSequence   = 4 // bytes that PL counts and the memory holds
	maxFrameInDescriptor = rdes3PacketLength - frameCheckSequence
)

// ErrDriver is wrapped by every error that the driver caused: a stopped engine, an
// address outside the memory, a descriptor that no driver may hand over.
var ErrDriver = errors.New("fakemac: driver error")

// Device is one DMA channel. It and the driver take turns: it may not be used while the driver
// runs on another goroutine.
type Device struct {
	bar  []byte
	mem  []byte
	base uint64
	rx   uint64 // index of the next descriptor to fetch
	tx   uint64
}

// New returns a device with registers all zero that sees mem at bus address base.
func New(mem []byte, base uint64) *Device {
	// Words first: the registers are accessed with 32-bit atomics.
	words := make([]uint32, barSize/4)
	bar := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), barSize)
	return &Device{bar: bar, mem: mem, base: base}
}

// BAR returns the registers, in host byte order. It stays valid as long as it is held.
func (d *Device) BAR() []byte { return d.bar }

func (d *Device) register(offset int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&d.bar[offset])))
}

// ring is a descriptor list as the registers describe it at this moment.
type ring struct {
	name   string
	bytes  []byte
	bus    uint64
	length uint64 // descriptors
	tail   uint32
}

func (d *Device) ring(name string, control, high, low, length, tail int) (ring, error) {
	if d.register(control)&startBit == 0 {
		return ring{}, fmt.Errorf("%w: %s engine is stopped", ErrDriver, name)
	}
	r := ring{
		name:   name,
		bus:    uint64(d.register(high))<<32 | uint64(d.register(low)),
		length: uint64(d.register(length)&ringLengthMask) + 1,
		tail:   d.register(tail),
	}
	b, err := d.dma(r.bus, r.length*descriptorSize)
	if err != nil {
		return ring{}, fmt.Errorf("%s ring: %w", name, err)
	}
	r.bytes = b
	return r, nil
}

// descriptor returns the descriptor at index, or nil when the engine has reached
// the tail: the hardware suspends there without looking at OWN.
func (r *ring) descriptor(index uint64) []byte {
	offset := index % r.length * descriptorSize
	if uint32(r.bus+offset) == r.tail {
		return nil
	}
	return r.bytes[offset : offset+descriptorSize : offset+descriptorSize]
}

// dma resolves a bus address.
func (d *Device) dma(addr, n uint64) ([]byte, error) {
	off := addr - d.base
	size := uint64(len(d.mem))
	if addr < d.base || n > size || off > size-n {
		return nil, fmt.Errorf("%w: DMA of %d bytes at %#x outside %#x+%#x", ErrDriver, n, addr, d.base, size)
	}
	return d.mem[off : off+n : off+n], nil
}

func word(desc []byte, n int) uint32       { return binary.LittleEndian.Uint32(desc[4*n:]) }
func setWord(desc []byte, n int, v uint32) { binary.LittleEndian.PutUint32(desc[4*n:], v) }

// Receive completes up to n receive descriptors with frames of size bytes (without FCS) and returns how many;
// it stops where the hardware suspends. fill, if not nil, writes frame i; without it the payload stays untouched.
func (d *Device) Receive(n, size int, fill func(i int, frame []byte)) (int, error) {
	r, err := d.ring("receive", dmaCh0RxControl, dmaCh0RxListHigh, dmaCh0RxListLow, dmaCh0RxRingLength, dmaCh0RxTail)
	if err != nil {
		return 0, err
	}
	limit := uint64(d.register(dmaCh0RxControl) >> rbszShift & rbszMask)
	if size < 0 || size > maxFrameInDescriptor || uint64(size)+frameCheckSequence > limit {
		return 0, fmt.Errorf("fakemac: frame of %d bytes does not fit one buffer of %d", size, limit)
	}
	for i := range n {
		desc := r.descriptor(d.rx)
		if desc == nil {
			return i, nil
		}
		w3 := word(desc, 3)
		if w3&descOwn == 0 {
			return i, nil
		}
		if w3&rdes3Buffer1Valid == 0 {
			return i, fmt.Errorf("%w: receive descriptor %d without BUF1V", ErrDriver, d.rx%r.length)
		}
		addr := uint64(word(desc, 1))<<32 | uint64(word(desc, 0))
		buf, err := d.dma(addr, limit)
		if err != nil {
			return i, fmt.Errorf("receive descriptor %d: %w", d.rx%r.length, err)
		}
		if fill != nil {
			fill(i, buf[:size:size])
		}
		// The write-back covers the buffer address, so a driver has to write it anew.
		setWord(desc, 0, 0)
		setWord(desc, 1, rdes1GoodUDP)
		setWord(desc, 2, 0)
		setWord(desc, 3, descFirst|descLast|rdes3Status1Valid|uint32(size+frameCheckSequence))
		d.rx = (d.rx + 1) % r.length
	}
	return n, nil
}

// Transmit completes every transmit descriptor up to the tail and returns how many frames it
// sent. sink, if not nil, sees each frame; the bytes are the driver's again after it returns.
func (d *Device) Transmit(sink func(frame []byte)) (int, error) {
	r, err := d.ring("transmit", dmaCh0TxControl, dmaCh0TxListHigh, dmaCh0TxListLow, dmaCh0TxRingLength, dmaCh0TxTail)
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		desc := r.descriptor(d.tx)
		if desc == nil {
			return n, nil
		}
		w2, w3 := word(desc, 2), word(desc, 3)
		if w3&descOwn == 0 {
			return n, nil
		}
		const whole = descFirst | descLast
		length := uint64(w2 & tdes2Buffer1Length)
		if w3&(whole|tdes3Context) != whole || length == 0 || uint64(w3&tdes3FrameLength) != length {
			return n, fmt.Errorf("%w: transmit descriptor %d is not one frame in one buffer: TDES2 %#08x TDES3 %#08x",
				ErrDriver, d.tx%r.length, w2, w3)
		}
		buf, err := d.dma(uint64(word(desc, 1))<<32|uint64(word(desc, 0)), length)
		if err != nil {
			return n, fmt.Errorf("transmit descriptor %d: %w", d.tx%r.length, err)
		}
		if sink != nil {
			sink(buf)
		}
		setWord(desc, 0, 0)
		setWord(desc, 1, 0)
		setWord(desc, 2, 0)
		setWord(desc, 3, whole)
		d.tx = (d.tx + 1) % r.length
	}
}
