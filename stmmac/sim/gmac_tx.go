package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// startTx and stopTx are the changes of ST.
func (g *gmac) startTx() {
	t := &g.m.tx[0]
	if t.stopping {
		t.stopping = false
		return
	}
	t.txFrame = txFrame{}
	t.told = false
	g.tx.start()
}

func (g *gmac) stopTx() {
	t := &g.m.tx[0]
	t.cureStall(StallUntilStop)
	if t.held && !t.stalled && !t.hangs() && t.run {
		t.stopping = true // the frame in the FIFO leaves first
		return
	}
	t.txFrame = txFrame{}
	t.stop()
	g.tx.audit.stop()
}

// stepTx implements generation.
func (g *gmac) stepTx(budget int) (used int) {
	t := &g.m.tx[0]
	if !g.tx.look() && !t.held {
		return 0
	}
	for used < budget {
		if t.held {
			status, sent := t.transmit()
			if !sent {
				t.own()
				break
			}
			if !g.finish(status) {
				break
			}
			used++
			continue
		}
		n := g.loadTx(budget - used)
		used += n
		if n == 0 && !t.held {
			break
		}
	}
	return used
}

// loadTx reads descriptors until the frame is complete, up to budget of them. The last of
// a frame is counted when it is given back.
func (g *gmac) loadTx(budget int) (used int) {
	t := &g.m.tx[0]
	for used < budget && !t.held {
		if !t.run || t.stopping || t.suspended || !g.tx.fetch() {
			if t.suspended && t.inFrame && !t.cutTold {
				// The first OWN of a frame comes last, so that this cannot be.
				t.cutTold = true
				t.report(ChainCut, int(t.cur), "the frame so far has %d bytes", t.length)
			}
			break
		}
		if !g.take() {
			break
		}
		if !t.held {
			used++
		}
	}
	return used
}

// take works on the fetched descriptor. It is false after a bus error.
func (g *gmac) take() bool {
	m, t, w := g.m, &g.m.tx[0], &g.m.tx[0].fetched
	d1 := rg.TDES1(w[1])
	switch {
	case d1&rg.TxFS != 0:
		if t.inFrame {
			t.report(ChainBroken, int(t.cur), "FS inside a frame of %d bytes so far", t.length)
		}
		t.txFrame = txFrame{inFrame: true, cpc: gmacCPC(d1), cic: rg.TxCIC.Get(d1)}
	case !t.inFrame:
		t.report(ChainBroken, int(t.cur), "no FS")
		t.txFrame = txFrame{inFrame: true, drop: true}
	}
	n1, n2 := int(rg.TxTBS1.Get(d1)), 0
	if g.tx.second() {
		n2 = int(rg.TxTBS2.Get(d1))
	}
	if n1+n2 == 0 {
		t.report(NoBuffer, int(t.cur), "both buffer sizes are 0")
	}
	whole := d1&(rg.TxFS|rg.TxLS) == rg.TxFS|rg.TxLS && (n1 == 0 || n2 == 0)
	if !t.gather(uint64(w[2]), n1, whole) || !t.gather(uint64(w[3]), n2, whole) {
		return false
	}
	if d1&rg.TxLS == 0 {
		return g.tx.writeBack(0, nil)
	}
	t.held, t.field = true, t.length
	t.n = 0 // the length of a list is not known, but for one that ends where it begins
	if g.tx.following() == g.tx.addr {
		t.n = 1
	}
	t.events |= r4.ETI
	if t.cpc == cpcNone && d1&rg.TxDP == 0 && t.length < minWire {
		t.cpc = cpcPadFCS // padding brings the FCS with it
	}
	if t.drop {
		return true
	}
	if !m.audit.off {
		t.auditFrame()
	}
	if t.cic != rg.CICNone && len(t.data) > 0 {
		t.insertChecksums()
	}
	return true
}

// gmacCPC is the control of padding and FCS in the values of CPC.
func gmacCPC(d1 rg.TDES1) uint32 {
	switch {
	case d1&rg.TxDC != 0:
		return cpcNone
	case d1&rg.TxDP != 0:
		return cpcFCS
	}
	return cpcPadFCS
}

// gmacTDES0 says the status of a frame in the bits of TDES0. Bits 8 to 15 are the same,
// the collision count and what lies below it are one bit lower, IHE is elsewhere.
func gmacTDES0(s r4.TDES3) rg.TDES0 {
	d := rg.TDES0(s&0xff00) | rg.TxCC.Of(r4.TxCC.Get(s))
	for _, b := range [...]struct {
		gmac4 r4.TDES3
		gmac  rg.TDES0
	}{{r4.TxIHE, rg.TxIHE}, {r4.TxDB, rg.TxDB}, {r4.TxUF, rg.TxUF}, {r4.TxED, rg.TxED}} {
		if s&b.gmac4 != 0 {
			d |= b.gmac
		}
	}
	return d
}

// finish gives the last descriptor of the frame back.
func (g *gmac) finish(status r4.TDES3) bool {
	m, t := g.m, &g.m.tx[0]
	ic := rg.TDES1(t.fetched[1])&rg.TxIC != 0
	d0 := gmacTDES0(status)
	if len(t.data) >= headerLen && m.mac.isTag(binary.BigEndian.Uint16(t.data[headerLen-2:])) {
		d0 |= rg.TxVF
	}
	if status&r4.TxES != 0 {
		m.stats.TxErrors++
	}
	if status&r4.TxJT != 0 {
		g.events |= rg.TJT
	}
	t.txFrame = txFrame{}
	if !g.tx.writeBack(uint32(d0), nil) {
		return false
	}
	if ic {
		t.events |= r4.TI
	}
	if t.stopping {
		t.stopping = false
		t.stop()
		g.tx.audit.stop()
	}
	return true
}

// finishFlushes implements generation: FTF needs the clock of the transmitter. A frame that
// was complete is given back as flushed.
func (g *gmac) finishFlushes() {
	m, t := g.m, &g.m.tx[0]
	if !t.flushing || m.clockGated() || m.faults.FlushHangs {
		return
	}
	t.flushing = false
	if t.stalled {
		t.txFrame = txFrame{} // the DMA does not give it back
	}
	if t.held {
		g.finish(r4.TxES | r4.TxFF)
	}
	t.drop = t.inFrame
	off := uint32(rg.OperationModeReg)
	m.regs.set(off, m.regs.get(off)&^uint32(rg.FTF))
}
