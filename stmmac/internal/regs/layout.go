package regs

import "github.com/gostmmac/gostmmac/mmio"

// Layout says where the per-channel and per-queue registers lie, in bytes from
// the base of the CSR space. Some integrations (Qualcomm EMAC) moved them.
type Layout struct {
	DMABase, DMAStride uint32
	MTLBase, MTLStride uint32
}

// DMAChannel returns the registers of DMA channel c of the CSR space r.
func (l Layout) DMAChannel(r mmio.Region, c int) mmio.Region {
	return mmio.Window(r, l.DMABase+uint32(c)*l.DMAStride, 0x80)
}

// MTLQueue returns the registers of MTL queue q of the CSR space r.
func (l Layout) MTLQueue(r mmio.Region, q int) mmio.Region {
	return mmio.Window(r, l.MTLBase+uint32(q)*l.MTLStride, 0x40)
}
