package ixystyle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Registers of DMA channel 0 (databook EQOS_DMA_CH, Linux dwmac4_dma.h).
const (
	dmaCh0TxControl    = 0x1104
	dmaCh0RxControl    = 0x1108
	dmaCh0TxListHigh   = 0x1110
	dmaCh0TxListLow    = 0x1114
	dmaCh0RxListHigh   = 0x1118
	dmaCh0RxListLow    = 0x111c
	dmaCh0TxTail       = 0x1120
	dmaCh0RxTail       = 0x1128
	dmaCh0TxRingLength = 0x112c
	dmaCh0RxRingLength = 0x1130
	barSize            = 0x1180 // end of channel 0

	rxControlStart = 1 << 0 // SR
	rxControlRBSZ  = 1      // shift of RBSZ 14:1, bytes
	txControlStart = 1 << 0 // ST

	maxRing = 1024 // TDRL and RDRL have 10 bits
)

// Driver is what an application sees of any device. Both calls never block and are for one goroutine.
type Driver interface {
	// RxBatch fills bufs with received packets and returns how many there were. They belong to the caller.
	RxBatch(queue uint16, bufs []*PktBuf) uint32
	// TxBatch sends a prefix of bufs and returns its length. The rest stays with the caller.
	TxBatch(queue uint16, bufs []*PktBuf) uint32
}

// Device is a GMAC4 with one receive and one transmit queue.
type Device struct {
	bar      []byte
	rxQueues []rxQueue
	txQueues []txQueue
}

var _ Driver = (*Device)(nil)

// Config says how large the rings and the buffers are.
type Config struct {
	RingSize   int // descriptors per ring: a power of two from 64 to 1024
	BufferSize int // bytes per buffer of the pool: the receive buffer size
}

// Open programs DMA channel 0 behind bar, fills the receive ring from pool and starts both engines. bar must be aligned to
// 4 bytes. The rings come from mem. On a big-endian host it returns errors.ErrUnsupported.
func Open(bar []byte, mem *Memory, pool *Mempool, cfg Config) (*Device, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("ixystyle: big-endian host: %w", errors.ErrUnsupported)
	}
	if len(bar) < barSize || uintptr(unsafe.Pointer(&bar[0]))%4 != 0 {
		return nil, fmt.Errorf("ixystyle: register window of %d bytes is too short or not aligned", len(bar))
	}
	n := cfg.RingSize
	if n < 2*txCleanBatch || n > maxRing || n&(n-1) != 0 {
		return nil, fmt.Errorf("ixystyle: ring of %d descriptors", n)
	}
	if pool.Available() < n || len(pool.buffers[0].mem) != cfg.BufferSize {
		return nil, fmt.Errorf("ixystyle: pool has %d buffers of %d bytes, the ring needs %d of %d",
			pool.Available(), len(pool.buffers[0].mem), n, cfg.BufferSize)
	}
	rxRing, rxBus, err := makeRing(mem, n)
	if err != nil {
		return nil, err
	}
	txRing, txBus, err := makeRing(mem, n)
	if err != nil {
		return nil, err
	}
	d := &Device{
		bar:      bar,
		rxQueues: []rxQueue{{descriptors: rxRing, bus: rxBus, buffers: make([]*PktBuf, n), pool: pool}},
		txQueues: []txQueue{{descriptors: txRing, bus: txBus, buffers: make([]*PktBuf, n)}},
	}

	d.setReg32(dmaCh0TxListHigh, uint32(txBus>>32))
	d.setReg32(dmaCh0TxListLow, uint32(txBus))
	d.setReg32(dmaCh0TxRingLength, uint32(n-1))
	d.setReg32(dmaCh0TxTail, uint32(txBus))
	d.setReg32(dmaCh0TxControl, txControlStart)

	d.setReg32(dmaCh0RxListHigh, uint32(rxBus>>32))
	d.setReg32(dmaCh0RxListLow, uint32(rxBus))
	d.setReg32(dmaCh0RxRingLength, uint32(n-1))
	d.setReg32(dmaCh0RxControl, uint32(cfg.BufferSize)<<rxControlRBSZ|rxControlStart)
	q := &d.rxQueues[0]
	for i := range q.descriptors {
		buf := pool.Alloc()
		q.buffers[i] = buf
		setAddress(q.descriptors[i], buf.bus)
		setControl(q.descriptors[i], 0, rdes3Own|rdes3Buffer1Valid)
	}
	// The tail is the last filled descriptor: the engine stops in front of it and can never lap the driver.
	d.setReg32(dmaCh0RxTail, descriptorAddress(rxBus, uint16(n-1)))
	return d, nil
}

// setReg32 is the doorbell as ixy.go writes it: an atomic store into the mapped BAR.
func (d *Device) setReg32(offset int, value uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&d.bar[offset])), value)
}

// descriptorAddress returns the low half of a descriptor's bus address, which is what a tail register holds.
func descriptorAddress(ring uint64, index uint16) uint32 {
	return uint32(ring) + uint32(index)*descriptorSize
}
