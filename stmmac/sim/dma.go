package sim

import (
	"errors"
)

// errBus is a DMA access that the model refuses by itself: beyond the address
// width, or by the BusError fault.
var errBus = errors.New("sim: bus error")

// dmaFault says that an access fails before it reaches a mapping.
func (m *Model) dmaFault(addr uint64, n int, write bool) bool {
	m.refused = false
	end := addr + uint64(n-1)
	if end < addr || end>>m.cfg.AddrWidth != 0 {
		return true
	}
	m.refused = m.faults.BusError != nil && m.faults.BusError(addr, n, write)
	return m.refused
}

// window is DMA.Window for what the device can address; n is at least 1.
func (m *Model) window(addr uint64, n int) []byte {
	if end := addr + uint64(n-1); end < addr || end>>m.cfg.AddrWidth != 0 {
		return nil
	}
	return m.dma.Window(addr, n)
}

// readDMA and writeDMA copy with or without a window.
func (m *Model) readDMA(addr uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if m.dmaFault(addr, len(p), false) {
		return errBus
	}
	return m.readMapped(addr, p)
}

// readMapped and writeMapped are for an access that dmaFault let through.
func (m *Model) readMapped(addr uint64, p []byte) error {
	if w := m.window(addr, len(p)); w != nil {
		copy(p, w)
		return nil
	}
	return m.dma.Read(addr, p)
}

func (m *Model) writeDMA(addr uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if m.dmaFault(addr, len(p), true) {
		return errBus
	}
	return m.writeMapped(addr, p)
}

func (m *Model) writeMapped(addr uint64, p []byte) error {
	if w := m.window(addr, len(p)); w != nil {
		copy(w, p)
		return nil
	}
	return m.dma.Write(addr, p)
}
