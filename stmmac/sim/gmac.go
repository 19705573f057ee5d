package sim

import (
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// gmac is what a GMAC 3.x does in its own way: it has one register file for MAC and DMA,
// one channel each way, descriptor lists without a tail and one status register. Its
// channels are those of the model with lists of another kind.
type gmac struct {
	m      *Model
	rx, tx gmacList
	late   gmacLate
	dff    bool      // frames wait in the FIFO for descriptors
	events rg.Status // those that GMAC4 has no bits for
	shown  rg.Status // process states in the status register
}

func newGMAC(m *Model) *gmac {
	g := &gmac{m: m}
	m.onDemand = g.demand
	return g
}

// lists connects the lists with the channels of the model; the model has made these.
func (g *gmac) lists() {
	g.rx.m, g.rx.r = g.m, &g.m.rx[0].ring
	g.tx.m, g.tx.r = g.m, &g.m.tx[0].ring
}

// completeGMAC is complete for a GMAC.
func (c *Config) completeGMAC() error {
	setDefault(&c.Version, 0x37)
	setDefault(&c.RxQueues, 1)
	setDefault(&c.TxQueues, 1)
	setDefault(&c.RxFIFO, 16384)
	setDefault(&c.TxFIFO, 16384)
	setDefault(&c.AddrWidth, 32)
	setDefault(&c.BusBytes, 8)
	setDefault(&c.HashBins, 64)
	setDefault(&c.VLANFilters, 1)
	setDefault(&c.CSRClock, defaultCSRClock)
	setDefault(&c.Layout, gmac4reg.DefaultLayout)
	setDefault(&c.NumInterrupts, 1)
	c.NoVLANInsert, c.NoDoubleVLAN, c.NoVLANHash = true, true, true
	return firstError(
		c.check("Version", int(c.Version), c.Version >= 0x30 && c.Version <= 0x37, "not 3.00 to 3.70"),
		c.check("RxQueues", c.RxQueues, c.RxQueues == 1, "a GMAC has one"),
		c.check("TxQueues", c.TxQueues, c.TxQueues == 1, "a GMAC has one"),
		c.check("RxFIFO", c.RxFIFO, fifoSize(c.RxFIFO), "not a power of two from 256 to 262144"),
		c.check("TxFIFO", c.TxFIFO, fifoSize(c.TxFIFO), "not a power of two from 256 to 262144"),
		c.check("AddrWidth", c.AddrWidth, c.AddrWidth == 32, "a GMAC has 32"),
		c.check("BusBytes", c.BusBytes, c.BusBytes == 4 || c.BusBytes == 8 || c.BusBytes == 16, "not 4, 8 or 16"),
		c.check("HashBins", c.HashBins, c.HashBins == 64 || c.HashBins == 128 || c.HashBins == 256, "not 64, 128 or 256"),
		c.check("VLANFilters", c.VLANFilters, c.VLANFilters == 1, "a GMAC has one"),
		c.check("L3L4Filters", c.L3L4Filters, c.L3L4Filters == 0, "the model of a GMAC has none"),
		c.check("SplitHeader", c.SplitHeader, !c.SplitHeader, "the model of a GMAC has none"),
		c.check("TBS", c.TBS, !c.TBS, "the model of a GMAC has none"),
		c.check("Timestamp", c.Timestamp, !c.Timestamp, "the model of a GMAC has none"),
		c.check("EEE", c.EEE, !c.EEE, "the model of a GMAC has none"),
		c.check("ARPOffload", c.ARPOffload, !c.ARPOffload, "the model of a GMAC has none"),
		c.check("NumInterrupts", c.NumInterrupts, c.NumInterrupts == 1, "a GMAC has one"),
		c.check("Layout", c.Layout, c.Layout == regs.Layout(gmac4reg.DefaultLayout), "the registers of a GMAC lie where they lie"),
		c.check("Profile", int(c.Profile), c.Profile == Strict || c.Profile == Linux, "unknown"),
		c.check("HighIOVA", c.HighIOVA, !c.HighIOVA, "the device has 32 address bits"),
	)
}

func (c *Config) check(field string, value any, ok bool, why string) error {
	if ok {
		return nil
	}
	return &ConfigError{field, value, why}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// places implements generation.
func (g *gmac) places() places {
	p := places{
		mmc:         uint32(gmac4reg.MMCControl) - uint32(rg.MMCControl),
		mdioAddress: uint32(rg.GMIIAddress), mdioData: uint32(rg.GMIIData),
		filter: uint32(rg.MACFrameFilter), flow: uint32(rg.FlowControl),
		address: func(i int) (uint32, uint32) {
			high, low := rg.AddressAt(i)
			return uint32(high), uint32(low)
		},
	}
	for i := range p.hash {
		p.hash[i] = uint32(rg.HashTableReg.At(i, 4))
	}
	if g.m.cfg.HashBins == 64 {
		p.hash = [gmac4reg.HashWords]uint32{uint32(rg.HashTableLow), uint32(rg.HashTableHigh)}
	}
	return p
}

// mapName implements generation.
func (g *gmac) mapName(off uint32) string { return rg.Map.Name(off) }

// mapText implements generation.
func (g *gmac) mapText(off uint32) func(uint32) string { return textOf(rg.Map, off) }

// mdioCommand implements generation: clause 22 is all that there is.
func (g *gmac) mdioCommand(v uint32) gmac4reg.MDIOAddress {
	a := rg.MIIAddress(v)
	goc := uint32(gmac4reg.MDIOGOCRead)
	if a&rg.GW != 0 {
		goc = gmac4reg.MDIOGOCWrite
	}
	c := gmac4reg.MDIOGOC.Of(goc) | gmac4reg.MDIOCR.Of(rg.CR.Get(a)) | gmac4reg.MDIORDA.Of(rg.GR.Get(a)) | gmac4reg.MDIOPA.Of(rg.PA.Get(a))
	if a&rg.GB != 0 {
		c |= gmac4reg.MDIOGB
	}
	return c
}

// txBurst implements generation. The factor of 8xPBL is 4 in cores before 3.50.
func (g *gmac) txBurst(int) int {
	mode := rg.BusMode(g.m.regs.get(uint32(rg.BusModeReg)))
	pbl := int(rg.PBL.Get(mode))
	switch {
	case mode&rg.PBLX8 == 0:
	case g.m.cfg.Version < 0x35:
		pbl *= 4
	default:
		pbl *= 8
	}
	return pbl
}

// dropWindows implements generation.
func (g *gmac) dropWindows() { g.rx.view, g.tx.view = view{}, view{} }

// resetQueues implements generation.
func (g *gmac) resetQueues() {
	g.lists()
	g.rx.reset()
	g.tx.reset()
	g.events, g.shown = 0, 0
	g.late = gmacLate{}
	g.m.rxq[0].enabled, g.m.rxq[0].size = true, g.m.cfg.RxFIFO
	g.m.tx[0].enabled, g.m.tx[0].size = true, g.m.cfg.TxFIFO
	g.modes(0)
}
