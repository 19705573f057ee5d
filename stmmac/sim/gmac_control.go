package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// control implements generation: a store to a register that steers the engines.
func (g *gmac) control(off uint32, r *register, v uint32) {
	m := g.m
	old, now := m.regs.get(off), v&r.mask
	switch off {
	case uint32(rg.BusModeReg):
		g.storeBusMode(off, old, v, now)
		return
	case uint32(rg.OperationModeReg):
		g.operation(rg.Operation(old), rg.Operation(now))
		return
	case uint32(rg.ReceiveListAddress):
		g.rx.setBase(off, old, v, now)
		return
	case uint32(rg.TransmitListAddress):
		g.tx.setBase(off, old, v, now)
		return
	case uint32(rg.ReceiveWatchdog):
		m.regs.set(off, now)
		m.rx[0].setWatchdog(r4.RWTF.Of(rg.RIWT.Get(rg.Watchdog(now))))
		return
	case uint32(rg.FlowControl):
		g.storeFlow(off, rg.Flow(old), rg.Flow(now))
		return
	case uint32(rg.MMCControl):
		m.mmcControl(r4.MMCCtrl(now))
		return
	case uint32(rg.GMIIAddress), uint32(rg.GMIIData):
		m.storeMDIO(off, r, v)
		return
	case uint32(rg.MACConfiguration):
		const steady = uint32(rg.SpeedMask | rg.DM)
		if old&uint32(rg.TE|rg.RE) != 0 && (old^now)&steady != 0 {
			g.misuse(ConfigRunning, "%s from %#x to %#x: speed or duplex with TE or RE set", m.regName(off), old, now)
		}
	}
	if i, low, ok := gmacAddress(off); ok {
		m.regs.set(off, now|old&^r.mask)
		if low { // the pair takes effect with its low half
			m.latchAddress(i)
		}
		return
	}
	m.regs.set(off, now)
	g.derive()
}

// gmacAddress says which MAC address a register belongs to.
func gmacAddress(off uint32) (i int, low, ok bool) {
	first, base := 0, uint32(rg.MACAddressHigh)
	if off >= uint32(rg.MACAddress16High) {
		first, base = rg.AddressBlock, uint32(rg.MACAddress16High)
	}
	if off < base || off >= base+rg.AddressBlock*rg.AddressStride {
		return 0, false, false
	}
	return first + int(off-base)/rg.AddressStride, off&4 != 0, true
}

func (g *gmac) storeBusMode(off, old, v, now uint32) {
	m := g.m
	if rg.BusMode(v)&rg.SWR != 0 {
		m.startReset()
		return
	}
	if rg.BusMode(v)&rg.ATDS != 0 {
		g.misuse(ConfigInvalid, "%s = %#x: ATDS with normal descriptors", m.regName(off), v)
	}
	m.changedRunning(off, m.anyRunning(), old, now)
	m.regs.set(off, now)
}

// operation is a store to Operation_Mode.
func (g *gmac) operation(old, now rg.Operation) {
	m := g.m
	if old&rg.FTF != 0 {
		g.misuse(ConfigRunning, "Operation_Mode = %#x while FTF is set", uint32(now))
		now |= rg.FTF
	}
	m.regs.set(uint32(rg.OperationModeReg), uint32(now))
	g.modes(now)
	if now&rg.EFC != 0 && now != old {
		g.auditFlow(now)
	}
	switch {
	case old&rg.SR == 0 && now&rg.SR != 0:
		g.rx.start()
	case old&rg.SR != 0 && now&rg.SR == 0:
		if g.late.pending { // the frame ends before the channel stops
			g.late.at = 0
			g.writeLate()
		}
		g.rx.r.stop()
		m.rx[0].abandon()
		g.rx.audit.stop()
	}
	switch {
	case old&rg.ST == 0 && now&rg.ST != 0:
		g.startTx()
	case old&rg.ST != 0 && now&rg.ST == 0:
		g.stopTx()
	}
	if now&rg.FTF != 0 && old&rg.FTF == 0 {
		m.tx[0].flushing = true
		g.finishFlushes()
	}
}

// gmacTTC are the values of TTC.
var gmacTTC = [8]int{64, 128, 192, 256, 40, 32, 24, 16}

// modes takes the modes of the queues over.
func (g *gmac) modes(v rg.Operation) {
	const step = 1024
	g.dff = v&rg.DFF != 0
	q, t := &g.m.rxq[0], &g.m.tx[0]
	q.storeForward = v&rg.RSF != 0
	q.fep, q.fup = v&rg.FEF != 0, v&rg.FUF != 0
	q.tcpEF = v&rg.DT != 0
	q.threshold = rxThresholds[rg.RTC.Get(v)]
	q.ehfc = v&rg.EFC != 0
	q.activate = q.size - step*int(1+rg.RFAFrom(v))
	q.deactivate = q.size - step*int(1+rg.RFDFrom(v))
	q.level(g.m)
	t.storeForward = v&rg.TSF != 0
	t.threshold = gmacTTC[rg.TTC.Get(v)]
}

// auditFlow looks at the thresholds of flow control. Code 7 is reserved.
func (g *gmac) auditFlow(now rg.Operation) {
	rfa, rfd := rg.RFAFrom(now), rg.RFDFrom(now)
	switch size := g.m.cfg.RxFIFO; {
	case size < 4096:
		g.misuse(ConfigInvalid, "EFC with a FIFO of %d bytes", size)
	case rfa > rg.MaxThreshold || rfd > rg.MaxThreshold:
		g.misuse(ConfigInvalid, "RFA %d, RFD %d: reserved", rfa, rfd)
	case rfd <= rfa:
		g.misuse(ConfigInvalid, "RFD %d is not more than RFA %d", rfd, rfa)
	case g.m.rxq[0].deactivate <= 0:
		g.misuse(ConfigInvalid, "RFD %d lies below an empty FIFO of %d bytes", rfd, size)
	}
}

// loadLocked implements generation.
func (g *gmac) loadLocked(off uint32, _ *register) uint32 {
	m := g.m
	switch off {
	case uint32(rg.TransmitPollDemand), uint32(rg.CurrentTxDescriptor):
		return g.tx.addr // a read of a poll demand is the current descriptor too
	case uint32(rg.ReceivePollDemand), uint32(rg.CurrentRxDescriptor):
		return g.rx.addr
	case uint32(rg.CurrentTxBuffer):
		return uint32(m.tx[0].buffer)
	case uint32(rg.CurrentRxBuffer):
		return uint32(m.rx[0].buffer)
	case uint32(rg.MissedFrame):
		v := m.regs.get(off)
		m.regs.set(off, 0)
		return v
	case uint32(rg.DebugReg):
		return uint32(g.debug())
	case uint32(rg.GMIIAddress), uint32(rg.GMIIData):
		m.runPHY()
		return m.regs.get(off)
	}
	return m.loadMMC(off + m.at.mmc)
}

func (g *gmac) debug() (v rg.Debug) {
	m := g.m
	if m.tx[0].held {
		v |= rg.TPESTS | rg.TWCSTS | rg.TXFSTS
	}
	if m.debugPaused() != 0 {
		v |= rg.TXPAUSED
	}
	return v | rg.RXFSTS.Of(r4.RXQSTS.Get(m.rxq[0].debug()))
}

// missed and overflow count frames for which there was no descriptor and no room.
func (g *gmac) missed() {
	g.m.stats.RxMissed++
	off := uint32(rg.MissedFrame)
	v := rg.Missed(g.m.regs.get(off))
	if n := rg.MISFRMCNT.Get(v); n == rg.MISFRMCNT.Max() {
		v = rg.MISFRMCNT.Put(v, 0) | rg.MISCNTOVF
	} else {
		v = rg.MISFRMCNT.Put(v, n+1)
	}
	g.m.regs.set(off, uint32(v))
}

func (g *gmac) overflow(int) {
	g.m.stats.RxOverflow++
	off := uint32(rg.MissedFrame)
	v := rg.Missed(g.m.regs.get(off))
	if n := rg.OVFFRMCNT.Get(v); n == rg.OVFFRMCNT.Max() {
		v = rg.OVFFRMCNT.Put(v, 0) | rg.OVFCNTOVF
	} else {
		v = rg.OVFFRMCNT.Put(v, n+1)
	}
	g.m.regs.set(off, uint32(v))
	g.m.countMMC(r4.RxFIFOOverflowPackets, 1)
	g.events |= rg.OVF
}
