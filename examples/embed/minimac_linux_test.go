package main

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// Registers and descriptor bits of a GMAC4 (DesignWare Cores Ethernet
// Quality-of-Service databook): only what miniMAC looks at.
const (
	regMACConfiguration = 0x0000
	regMACVersion       = 0x0110
	regMACHWFeature1    = 0x0120
	regDMAMode          = 0x1000
	regTxControl        = 0x1104 // of DMA channel 0, as the others
	regRxControl        = 0x1108
	regTxListHigh       = 0x1110
	regTxList           = 0x1114
	regRxListHigh       = 0x1118
	regRxList           = 0x111c
	regTxRingLength     = 0x112c
	regRxRingLength     = 0x1130

	bitRE  = 1 << 0  // MAC_Configuration
	bitSWR = 1 << 0  // DMA_Mode
	bitGo  = 1 << 0  // ST and SR
	bitOWN = 1 << 31 // TDES3 and RDES3
	bitFD  = 1 << 29
	bitLD  = 1 << 28

	descSize = 16
	fcsLen   = 4
)

// miniMAC is just enough of a MAC, on the files of a board, to receive and send
// frames of one buffer on one channel. It judges nothing but that every address
// lies in the reserved memory; the model of the driver's own tests does.
type miniMAC struct {
	t         *testing.T
	regs, mem []byte
	rx, tx    uint64 // the descriptors that are next

	hold atomic.Bool // nothing that is posted to send is finished

	mu       sync.Mutex
	in       [][]byte // frames to receive
	received []uint64 // the bus addresses of those that were
	out      [][]byte // frames that were sent
	sent     []uint64 // the bus addresses of their buffers
}

func newMiniMAC(t *testing.T, b *board) *miniMAC {
	m := &miniMAC{t: t, regs: b.view(t, b.uio, boardRegs), mem: b.view(t, b.dmabuf, boardMem)}
	m.word(m.regs, regMACVersion).Store(0x1052)              // 5.20
	m.word(m.regs, regMACHWFeature1).Store(7 | 7<<6 | 1<<14) // FIFOs of 16 KiB, 40 address bits
	return m
}

// word is a word that the driver accesses too.
func (m *miniMAC) word(p []byte, off uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&p[off : off+4][0]))
}

// memory returns n bytes at a bus address.
func (m *miniMAC) memory(addr uint64, n int) []byte {
	if addr < boardBus || addr-boardBus > boardMem-uint64(n) {
		m.t.Errorf("access to %d bytes at the bus address %#x", n, addr)
		return make([]byte, n)
	}
	return m.mem[addr-boardBus:][:n]
}

// start runs the device until stop is called.
func (m *miniMAC) start() (stop func()) {
	var ended atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !ended.Load() {
			m.step()
			runtime.Gosched()
		}
	})
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

func (m *miniMAC) step() {
	if mode := m.word(m.regs, regDMAMode); mode.Load()&bitSWR != 0 {
		m.rx, m.tx = 0, 0
		m.word(m.regs, regTxControl).Store(0)
		m.word(m.regs, regRxControl).Store(0)
		mode.Store(0)
	}
	if m.word(m.regs, regMACConfiguration).Load()&bitRE != 0 && m.word(m.regs, regRxControl).Load()&bitGo != 0 {
		m.receive()
	}
	if !m.hold.Load() && m.word(m.regs, regTxControl).Load()&bitGo != 0 {
		m.send()
	}
}

// desc returns descriptor i of a ring, and the index of the one behind it.
func (m *miniMAC) desc(i, high, low, length uint64) (d []byte, next uint64) {
	list := uint64(m.word(m.regs, high).Load())<<32 | uint64(m.word(m.regs, low).Load())
	return m.memory(list+i*descSize, descSize), (i + 1) % (uint64(m.word(m.regs, length).Load()) + 1)
}

func (m *miniMAC) receive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.in) == 0 {
		return
	}
	d, next := m.desc(m.rx, regRxListHigh, regRxList, regRxRingLength)
	own := m.word(d, 12)
	if own.Load()&bitOWN == 0 {
		return
	}
	addr := binary.LittleEndian.Uint64(d)
	n := len(m.in[0]) + fcsLen
	copy(m.memory(addr, n), m.in[0])
	m.received = append(m.received, addr)
	m.in = m.in[1:]
	clear(d[:12])
	own.Store(bitFD | bitLD | uint32(n))
	m.rx = next
}

func (m *miniMAC) send() {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, next := m.desc(m.tx, regTxListHigh, regTxList, regTxRingLength)
	own := m.word(d, 12)
	if own.Load()&bitOWN == 0 {
		return
	}
	addr := binary.LittleEndian.Uint64(d)
	n := int(binary.LittleEndian.Uint32(d[8:]) & 0x3fff)
	m.out = append(m.out, bytes.Clone(m.memory(addr, n)))
	m.sent = append(m.sent, addr)
	clear(d[:12])
	own.Store(bitFD | bitLD)
	m.tx = next
}

// posted counts the descriptors that wait to be sent.
func (m *miniMAC) posted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.word(m.regs, regTxControl).Load()&bitGo == 0 {
		return 0
	}
	n := 0
	for i := range uint64(m.word(m.regs, regTxRingLength).Load()) + 1 {
		d, _ := m.desc(i, regTxListHigh, regTxList, regTxRingLength)
		if m.word(d, 12).Load()&bitOWN != 0 {
			n++
		}
	}
	return n
}

// feed gives the device frames to receive.
func (m *miniMAC) feed(frames ...[]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.in = append(m.in, frames...)
}

// done returns what was sent, and the buffers of what was received and sent.
func (m *miniMAC) done() (out [][]byte, received, sent []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.out), slices.Clone(m.received), slices.Clone(m.sent)
}

// until runs other goroutines until cond holds. The deadline is that of the
// test run alone.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}
