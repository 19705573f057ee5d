package stmmac_test

import (
	"fmt"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/gmac4"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// gmac4Side is GMAC4. It implements generation.
type gmac4Side struct{}

func (gmac4Side) limits() limits {
	return limits{queues: 4, rxBuf: r4.MaxRBSZ, txBuf: r4.MaxBufLen, rxLen: 1<<15 - 1, tails: true, total: true,
		vectors: true, tags: true, clause45: true, mdio: "MAC_MDIO_Address"}
}

func (gmac4Side) model() sim.Generation { return sim.GMAC4 }

func (gmac4Side) options(sim.Config) stmmac.Option { return stmmac.WithGeneration(stmmac.GMAC4) }

func (gmac4Side) hardware(c *core.Config, csr mmio.Region) core.Hardware { return gmac4.New(c, csr) }

func (gmac4Side) fake() *mmio.Fake { return fakeGMAC4() }

func (gmac4Side) unsized() (list []unsizedFIFO) {
	for _, code := range []uint32{0, 12, 31} { // 12 and 31 are sizes that do not exist
		fake := func() *mmio.Fake {
			f := fakeGMAC4() // with four queues
			f.Set(0x0120, code|code<<6|1<<14|1<<24)
			return f
		}
		list = append(list, unsizedFIFO{fmt.Sprintf("code %d", code), fake, func(queues int) int { return 4 * 2048 / queues }})
	}
	return list
}

func (gmac4Side) fifo(csr mmio.Region, q int) (rx, tx int, divided bool) {
	m := r4.DefaultLayout.MTLQueue(csr, q)
	rx = int(r4.RQS.Get(r4.MTLRxQOperationMode.Load(m))+1) * 256
	tx = int(r4.TQS.Get(r4.MTLTxQOperationMode.Load(m))+1) * 256
	return rx, tx, true
}

func (gmac4Side) list(csr mmio.Region, ch int, d direction) uint64 {
	c := r4.DefaultLayout.DMAChannel(csr, ch)
	if d == sending {
		return uint64(r4.DMACHTxDescListHAddr.Load(c))<<32 | uint64(r4.DMACHTxDescListAddr.Load(c))
	}
	return uint64(r4.DMACHRxDescListHAddr.Load(c))<<32 | uint64(r4.DMACHRxDescListAddr.Load(c))
}

// current has the upper half of the list: no list crosses 4 GiB.
func (g gmac4Side) current(csr mmio.Region, ch int, d direction) uint64 {
	c := r4.DefaultLayout.DMAChannel(csr, ch)
	low := r4.DMACHCurAppRxDesc.Load(c)
	if d == sending {
		low = r4.DMACHCurAppTxDesc.Load(c)
	}
	return g.list(csr, ch, d)>>32<<32 | uint64(low)
}

// given is what lies between the current one and the tail.
func (g gmac4Side) given(r *rig, ch, n int) int {
	csr := r.csr()
	tail := r4.DMACHRxDescTailPointer.Load(r4.DefaultLayout.DMAChannel(csr, ch))
	slot := int(tail-uint32(g.list(csr, ch, receiving))) / r4.DescSize
	return (slot - r.rxCurrent(ch) + n) % n
}

func (gmac4Side) dry(csr mmio.Region, ch int) bool {
	return r4.DMACHStatus.Load(r4.DefaultLayout.DMAChannel(csr, ch))&r4.RBU != 0
}

func (gmac4Side) storesForward(csr mmio.Region, ch int, d direction) bool {
	q := r4.DefaultLayout.MTLQueue(csr, ch)
	if d == sending {
		return r4.MTLTxQOperationMode.Load(q)&r4.TSF != 0
	}
	return r4.MTLRxQOperationMode.Load(q)&r4.RSF != 0
}

func (gmac4Side) threshold(csr mmio.Region) {
	r4.MTLTxQOperationMode.Update(r4.DefaultLayout.MTLQueue(csr, 0), r4.TSF|r4.TTC.Mask(), 0)
}

func (gmac4Side) rxSize(csr mmio.Region, _ *spy) int {
	return int(r4.RBSZ.Get(r4.DMACHRxControl.Load(r4.DefaultLayout.DMAChannel(csr, 0))))
}

func (gmac4Side) skip(csr mmio.Region) uint32 {
	return r4.DSL.Get(r4.DMACHControl.Load(r4.DefaultLayout.DMAChannel(csr, 0)))
}

func (gmac4Side) feature(e engine) (off, bit uint32) {
	return uint32(r4.MACHWFeature0), map[engine]uint32{rxEngine: uint32(r4.RXCOESEL), txEngine: uint32(r4.TXCOESEL)}[e]
}

func (gmac4Side) link(conf uint32, csr mmio.Region) macLink {
	return macLink{
		rx: conf&confRE != 0, tx: conf&confTE != 0, full: conf&confDM != 0,
		speed:   map[uint32]int{0: 1000, confPS: 10, confPS | confFES: 100, confFES: 2500}[conf&(confPS|confFES)],
		rxPause: csr.Load32(offRxFlow)&1 != 0, txPause: csr.Load32(offTxFlow)&2 != 0,
	}
}

func (gmac4Side) owned(d *[4]uint32) bool { return d[3]&uint32(r4.RxOWN) != 0 }

func (gmac4Side) received(d *[4]uint32) (n int, last bool) {
	w := r4.RDES3(d[3])
	return int(r4.RxPL.Get(w)), w&r4.RxLD != 0
}

func (gmac4Side) queued(d *[4]uint32) txDesc {
	d2, d3 := r4.TDES2(d[2]), r4.TDES3(d[3])
	q := txDesc{owned: d3&r4.TxOWN != 0, first: d3&r4.TxFD != 0, last: d3&r4.TxLD != 0, irq: d2&r4.IOC != 0,
		n: int(r4.B1L.Get(d2)), total: int(r4.TxFL.Get(d3))}
	q.other = uint32(d2&^(r4.IOC|r4.B1L.Mask())) | uint32(d3&^(r4.TxOWN|r4.TxFD|r4.TxLD|r4.TxFL.Mask()))
	return q
}

func (gmac4Side) reset(csr mmio.Region) { r4.DMAMode.Store(csr, r4.SWR) }

func (gmac4Side) resetting(csr mmio.Region) bool { return r4.DMAMode.Load(csr)&r4.SWR != 0 }

func (gmac4Side) skips(stride, bus int) (dsl int, ok bool) {
	dsl = (stride - r4.DescSize) / bus
	return dsl, dsl <= int(r4.DSL.Max())
}

func (gmac4Side) setup(b *bare, dsl int) {
	r4.DMASysBusMode.Store(b.csr, r4.EAME)
	r4.DMACHControl.Store(b.ch, r4.DSL.Of(uint32(dsl)))
	q := r4.DefaultLayout.MTLQueue(b.csr, 0)
	r4.MACRxQCtrl0.Store(b.csr, r4.RxQDCB)
	r4.MTLRxQOperationMode.Store(q, r4.RSF|r4.RQS.Of(63))
	r4.MTLTxQOperationMode.Store(q, r4.TSF|r4.TXQEN.Of(r4.TXQENEnabled)|r4.TQS.Of(63))
	r4.DMACHRxControl.Store(b.ch, r4.RBSZ.Of(bareBuf))
	r4.MACPacketFilter.Store(b.csr, r4.PR)
	r4.MACConfiguration.Store(b.csr, r4.DM)
}

// lists programs also the lengths, and empty tails.
func (gmac4Side) lists(b *bare, rx, tx uint64) {
	r4.DMACHRxDescListHAddr.Store(b.ch, uint32(rx>>32))
	r4.DMACHRxDescListAddr.Store(b.ch, uint32(rx))
	r4.DMACHTxDescListHAddr.Store(b.ch, uint32(tx>>32))
	r4.DMACHTxDescListAddr.Store(b.ch, uint32(tx))
	r4.DMACHRxDescRingLength.Store(b.ch, uint32(b.n-1))
	r4.DMACHTxDescRingLength.Store(b.ch, uint32(b.n-1))
	r4.DMACHRxDescTailPointer.Store(b.ch, uint32(rx))
	r4.DMACHTxDescTailPointer.Store(b.ch, uint32(tx))
}

func (gmac4Side) run(b *bare, on bool) {
	if !on {
		r4.DMACHRxControl.Update(b.ch, r4.SR, 0)
		r4.DMACHTxControl.Update(b.ch, r4.ST, 0)
		return
	}
	r4.DMACHRxControl.Update(b.ch, 0, r4.SR)
	r4.DMACHTxControl.Update(b.ch, 0, r4.ST)
	r4.MACConfiguration.Update(b.csr, 0, r4.RE|r4.TE)
}

func (gmac4Side) rxWords(_ *bare, _ int, addr uint64) [4]uint32 {
	return [4]uint32{uint32(addr), uint32(addr >> 32), 0, uint32(r4.RxOWN | r4.RxIOC | r4.RxBUF1V)}
}

func (gmac4Side) txWords(_ *bare, _ int, addr uint64, n int) [4]uint32 {
	return [4]uint32{uint32(addr), uint32(addr >> 32), uint32(n) | uint32(r4.IOC), uint32(r4.TxOWN|r4.TxFD|r4.TxLD) | uint32(n)}
}

func (gmac4Side) own() int { return 3 }

func (gmac4Side) ring(b *bare, d direction, tail uint64) {
	if d == sending {
		r4.DMACHTxDescTailPointer.Store(b.ch, uint32(tail))
		return
	}
	r4.DMACHRxDescTailPointer.Store(b.ch, uint32(tail))
}
