package stmmac_test

import (
	"cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/gmac"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// gmacSide is a GMAC 3.x with normal descriptors. It implements generation.
type gmacSide struct {
	chain bool // of descriptors, and not a ring
}

func (g gmacSide) limits() limits {
	return limits{queues: 1, rxBuf: rg.MaxBufferSize &^ 63, txBuf: rg.MaxBufferSize, rxLen: int(rg.RxFL.Max()), second: !g.chain, mdio: "GMII_Address"}
}

func (gmacSide) model() sim.Generation { return sim.GMAC }

// gmacFIFO is the size of the FIFOs of a model for which sim.Config says nothing, bytes.
const gmacFIFO = 16384

// configure is what no register of the model tells.
func (g gmacSide) configure(o *core.Config, c sim.Config) {
	o.Generation, o.Chain = stmmac.GMAC, g.chain
	o.RxFIFO, o.TxFIFO = cmp.Or(c.RxFIFO, gmacFIFO), cmp.Or(c.TxFIFO, gmacFIFO)
	o.PerfectFilters, o.HashBins = rg.AddressCount-1, cmp.Or(c.HashBins, 64)
}

func (g gmacSide) options(c sim.Config) stmmac.Option {
	return stmmac.WithConfig(func(o *stmmac.Config) { g.configure(o, c) })
}

func (g gmacSide) hardware(c *core.Config, csr mmio.Region) core.Hardware {
	g.configure(c, sim.Config{})
	return gmac.New(c, csr)
}

func (gmacSide) fake() *mmio.Fake { return fakeGMAC() }

// unsized are all that there are: the feature register tells of a receive FIFO of more
// than 2,048 bytes, or not even that.
func (gmacSide) unsized() (list []unsizedFIFO) {
	for name, clear := range map[string]uint32{"more than 2 KiB": 0, "2 KiB": uint32(rg.RXFIFOSIZE), "no feature register": mmio.AllOnes} {
		fake := func() *mmio.Fake {
			f := fakeGMAC()
			f.Set(uint32(rg.HWFeatureReg), f.Peek(uint32(rg.HWFeatureReg))&^clear)
			return f
		}
		list = append(list, unsizedFIFO{name, fake, func(int) int { return 2048 }})
	}
	return list
}

func (gmacSide) fifo(mmio.Region, int) (rx, tx int, divided bool) { return 0, 0, false }

func (gmacSide) list(csr mmio.Region, _ int, d direction) uint64 {
	if d == sending {
		return uint64(rg.TransmitListAddress.Load(csr))
	}
	return uint64(rg.ReceiveListAddress.Load(csr))
}

func (gmacSide) current(csr mmio.Region, _ int, d direction) uint64 {
	if d == sending {
		return uint64(rg.CurrentTxDescriptor.Load(csr))
	}
	return uint64(rg.CurrentRxDescriptor.Load(csr))
}

// given is how many have OWN from the current one on: nothing else tells.
func (g gmacSide) given(r *rig, ch, n int) int {
	at := r.rxCurrent(ch)
	for k := range n {
		if !g.owned(r.desc(receiving, (at+k)%n)) {
			return k
		}
	}
	return n
}

func (gmacSide) dry(csr mmio.Region, _ int) bool { return rg.StatusReg.Load(csr)&rg.RU != 0 }

func (gmacSide) storesForward(csr mmio.Region, _ int, d direction) bool {
	if d == sending {
		return rg.OperationModeReg.Load(csr)&rg.TSF != 0
	}
	return rg.OperationModeReg.Load(csr)&rg.RSF != 0
}

func (gmacSide) threshold(csr mmio.Region) {
	rg.OperationModeReg.Update(csr, rg.TSF|rg.TTC.Mask(), 0)
}

// rxSize is what the first descriptor says: there is no register for it.
func (g gmacSide) rxSize(csr mmio.Region, s *spy) int {
	d := s.descAt(g.list(csr, 0, receiving))
	if d == nil || rg.RxRBS2.Get(rg.RDES1(d[1])) != 0 {
		return -1
	}
	return int(rg.RxRBS1.Get(rg.RDES1(d[1])))
}

func (gmacSide) skip(csr mmio.Region) uint32 { return rg.DSL.Get(rg.BusModeReg.Load(csr)) }

func (gmacSide) feature(e engine) (off, bit uint32) {
	return uint32(rg.HWFeatureReg), map[engine]uint32{rxEngine: uint32(rg.RXTYP2COE), txEngine: uint32(rg.TXCOESEL)}[e]
}

func (gmacSide) link(conf uint32, csr mmio.Region) macLink {
	c, f := rg.Configuration(conf), rg.FlowControl.Load(csr)
	return macLink{
		rx: c&rg.RE != 0, tx: c&rg.TE != 0, full: c&rg.DM != 0,
		speed:   map[rg.Configuration]int{0: 1000, rg.PS: 10, rg.SpeedMask: 100}[c&rg.SpeedMask],
		rxPause: f&rg.RFE != 0, txPause: f&rg.TFE != 0,
	}
}

func (gmacSide) owned(d *[4]uint32) bool { return d[0]&uint32(rg.RxOWN) != 0 }

func (gmacSide) received(d *[4]uint32) (n int, last bool) {
	w := rg.RDES0(d[0])
	return int(rg.RxFL.Get(w)), w&rg.RxLS != 0
}

func (gmacSide) queued(d *[4]uint32) txDesc {
	d0, d1 := rg.TDES0(d[0]), rg.TDES1(d[1])
	q := txDesc{owned: d0&rg.TxOWN != 0, first: d1&rg.TxFS != 0, last: d1&rg.TxLS != 0, irq: d1&rg.TxIC != 0, n: int(rg.TxTBS1.Get(d1))}
	q.other = uint32(d0&^rg.TxOWN) | uint32(d1&^(rg.TxFS|rg.TxLS|rg.TxIC|rg.TxTER|rg.TxTCH|rg.TxTBS1.Mask()))
	return q
}

func (gmacSide) reset(csr mmio.Region) { rg.BusModeReg.Store(csr, rg.SWR) }

func (gmacSide) resetting(csr mmio.Region) bool { return rg.BusModeReg.Load(csr)&rg.SWR != 0 }

// skips is 0 in a chain, which names the next descriptor wherever it lies.
func (g gmacSide) skips(stride, bus int) (dsl int, ok bool) {
	if g.chain {
		return 0, true
	}
	dsl = (stride - rg.DescSize) / bus
	return dsl, dsl <= int(rg.DSL.Max())
}

func (gmacSide) setup(b *bare, dsl int) {
	rg.BusModeReg.Store(b.csr, rg.USP|rg.PBL.Of(8)|rg.RPBL.Of(8)|rg.DSL.Of(uint32(dsl)))
	rg.OperationModeReg.Store(b.csr, rg.RSF|rg.TSF|rg.DFF)
	rg.MACFrameFilter.Store(b.csr, rg.PR)
	rg.MACConfiguration.Store(b.csr, rg.DM)
}

func (gmacSide) lists(b *bare, rx, tx uint64) {
	rg.ReceiveListAddress.Store(b.csr, uint32(rx))
	rg.TransmitListAddress.Store(b.csr, uint32(tx))
}

func (gmacSide) run(b *bare, on bool) {
	if !on {
		rg.OperationModeReg.Update(b.csr, rg.SR|rg.ST, 0)
		return
	}
	rg.OperationModeReg.Update(b.csr, 0, rg.SR|rg.ST)
	rg.MACConfiguration.Update(b.csr, 0, rg.RE|rg.TE)
}

// placed is what descriptor i says of the one behind it: the bits of word 1, which are
// the same in both directions, and word 3.
func (g gmacSide) placed(b *bare, i int, list uint64) (ctrl, next uint32) {
	switch {
	case g.chain:
		return uint32(rg.RxRCH), uint32(list) + uint32((i+1)%b.n*b.stride)
	case i%b.n == b.n-1:
		return uint32(rg.RxRER), 0
	}
	return 0, 0
}

func (g gmacSide) rxWords(b *bare, i int, addr uint64) [4]uint32 {
	ctrl, next := g.placed(b, i, b.rxList.Addr())
	return [4]uint32{uint32(rg.RxOWN), ctrl | bareBuf, uint32(addr), next}
}

func (g gmacSide) txWords(b *bare, i int, addr uint64, n int) [4]uint32 {
	ctrl, next := g.placed(b, i, b.txList.Addr())
	return [4]uint32{uint32(rg.TxOWN), ctrl | uint32(rg.TxFS|rg.TxLS|rg.TxIC) | uint32(n), uint32(addr), next}
}

func (gmacSide) own() int { return 0 }

// ring demands a poll: where the list ends OWN tells.
func (gmacSide) ring(b *bare, d direction, _ uint64) {
	if d == sending {
		rg.TransmitPollDemand.Store(b.csr, 1)
		return
	}
	rg.ReceivePollDemand.Store(b.csr, 1)
}
