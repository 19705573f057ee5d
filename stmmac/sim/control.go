package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// control is a store to a register that steers the engines.
func (m *Model) control(off uint32, r *register, v uint32) {
	old := m.regs.get(off)
	now := v & r.mask
	ch := int(r.ch)
	switch r.id {
	case uint32(r4.DMAMode):
		if r4.DMAModeVal(v)&r4.SWR != 0 {
			m.startReset()
			return
		}
		m.regs.set(off, now)
		m.setINTM(r4.INTM.Get(r4.DMAModeVal(now)))
		return
	case uint32(r4.DMASysBusMode):
		if (old^now)&uint32(r4.EAME) != 0 {
			m.changedRunning(off, m.anyRunning(), old, now)
		}
		m.regs.set(off, now)
		m.eame = r4.SysBusMode(now)&r4.EAME != 0
		return
	case idDMA + uint32(r4.DMACHControl):
		m.changedRunning(off, m.txRunning(ch) || m.rxRunning(ch), old, now)
		m.regs.set(off, now)
		if ch < len(m.rx) {
			m.rx[ch].sph = r4.CHControl(now)&r4.SPH != 0
		}
		return
	case idDMA + uint32(r4.DMACHTxControl):
		if (old^now)&uint32(r4.TXPBL.Mask()|r4.EDSE) != 0 {
			m.changedRunning(off, m.txRunning(ch), old, now)
		}
		m.regs.set(off, now)
		m.tx[ch].control(r4.CHTxControl(old), r4.CHTxControl(now))
		return
	case idDMA + uint32(r4.DMACHRxControl):
		c := r4.CHRxControl(v)
		if r4.RBSZ.Get(c) != r4.RBSZ.Get(r4.CHRxControl(now)) {
			m.report(Violation{Kind: ConfigInvalid, Channel: ch, Index: -1},
				"RBSZ %d is not a multiple of the bus width %d", r4.RBSZ.Get(c), m.cfg.BusBytes)
		}
		if (old^now)&uint32(r4.RXPBL.Mask()|r4.RBSZ.Mask()) != 0 {
			m.changedRunning(off, m.rxRunning(ch), old, now)
		}
		m.regs.set(off, now)
		m.rx[ch].control(r4.CHRxControl(old), r4.CHRxControl(now))
		return
	case idDMA + uint32(r4.DMACHTxDescListAddr), idDMA + uint32(r4.DMACHTxDescListHAddr), idDMA + uint32(r4.DMACHTxDescRingLength):
		m.list(&m.tx[ch].ring, off, r, old, v)
		return
	case idDMA + uint32(r4.DMACHRxDescListAddr), idDMA + uint32(r4.DMACHRxDescListHAddr), idDMA + uint32(r4.DMACHRxDescRingLength):
		m.list(&m.rx[ch].ring, off, r, old, v)
		return
	case idDMA + uint32(r4.DMACHRxWatchdogTimer):
		m.regs.set(off, now)
		m.rx[ch].setWatchdog(r4.RxWatchdog(now))
		return
	case idMTL + uint32(r4.MTLTxQOperationMode):
		m.txQueueMode(off, ch, r4.MTLTxQMode(old), r4.MTLTxQMode(now))
		return
	case idMTL + uint32(r4.MTLRxQOperationMode):
		m.rxQueueMode(off, ch, r4.MTLRxQMode(old), r4.MTLRxQMode(now))
		return
	case uint32(r4.MACQxTxFlow):
		m.storeTxFlow(off, r4.TxFlow(old), r4.TxFlow(now))
		return
	case uint32(r4.MMCControl):
		m.mmcControl(r4.MMCCtrl(now))
		return
	case uint32(r4.MACMDIOAddress), uint32(r4.MACMDIOData):
		m.storeMDIO(off, r, v)
		return
	case uint32(r4.MACVLANTag), uint32(r4.MACVLANTagData):
		if m.cfg.VLANFilters > 1 {
			m.storeVLANTag(off, r, v)
			return
		}
	case uint32(r4.MACLPIControlStatus), uint32(r4.MACLPITimersControl), uint32(r4.MACLPIEntryTimer), uint32(r4.MAC1USTicCounter):
		m.storeLPI(off, r, v)
		return
	case uint32(r4.MACTimestampControl), uint32(r4.MACSubSecondIncrement), uint32(r4.MACSystemTimeSecUpdate),
		uint32(r4.MACSystemTimeNsUpdate), uint32(r4.MACTimestampAddend):
		m.storePTP(off, r, v)
		return
	case uint32(r4.MACConfiguration):
		m.auditSpeed(r4.Configuration(old), r4.Configuration(now))
	}
	if isL34Control(r.id) {
		m.auditL34(off, r4.L3L4Control(now))
	}
	if i, ok := addressIndex(r.id); ok {
		m.regs.set(off, now|m.regs.get(off)&^r.mask)
		if r.id&4 != 0 { // the pair takes effect with its low half
			m.latchAddress(i)
		}
		return
	}
	m.regs.set(off, now)
	m.derive()
}

// addressIndex says which MAC address a register belongs to.
func addressIndex(id uint32) (int, bool) {
	base := uint32(r4.MACAddressHigh)
	if id < base || id >= base+perfectFilters*r4.AddressStride {
		return 0, false
	}
	return int(id-base) / r4.AddressStride, true
}

// list is a store to one of the registers that describe a descriptor list. While the
// channel runs it has no effect until the next start.
func (m *Model) list(r *ring, off uint32, d *register, old, v uint32) {
	now := v & d.mask
	m.changedRunning(off, r.run, old, now)
	if now != v && d.mask != maxRing-1 && d.mask != 0 {
		r.report(ConfigInvalid, -1, "%s = %#x: the device takes %#x", m.regName(off), v, now)
	}
	m.regs.set(off, now)
	if d.id != idDMA+uint32(r4.DMACHTxDescRingLength) && d.id != idDMA+uint32(r4.DMACHRxDescRingLength) {
		r.rebase = true
		if !r.run {
			r.cur = 0
			r.base = uint64(m.regs.get(chOff(m, r4.DMACHRxDescListAddr, r.ch)))
			if r.tx {
				r.base = uint64(m.regs.get(chOff(m, r4.DMACHTxDescListAddr, r.ch)))
			}
		}
	}
}

// changedRunning reports a change that is only allowed while the channel stands still.
func (m *Model) changedRunning(off uint32, running bool, old, now uint32) {
	if running && old != now {
		m.report(Violation{Kind: ConfigRunning, Channel: -1, Index: -1}, "%s from %#x to %#x", m.regName(off), old, now)
	}
}

func (m *Model) txRunning(ch int) bool { return ch < len(m.tx) && m.tx[ch].run }
func (m *Model) rxRunning(ch int) bool { return ch < len(m.rx) && m.rx[ch].run }

func (m *Model) anyRunning() bool {
	for c := range m.cfg.channels() {
		if m.txRunning(c) || m.rxRunning(c) {
			return true
		}
	}
	return false
}

// auditSpeed: speed and duplex change only while transmitter and receiver are off.
func (m *Model) auditSpeed(old, now r4.Configuration) {
	if old&(r4.TE|r4.RE) != 0 && (old^now)&(r4.SpeedMask|r4.DM) != 0 {
		m.report(Violation{Kind: ConfigRunning, Channel: -1, Index: -1},
			"MAC_Configuration from %#x to %#x: speed or duplex with TE or RE set", uint32(old), uint32(now))
	}
}

// loadLocked is the load of a register that is computed or cleared by it.
func (m *Model) loadLocked(off uint32, r *register) uint32 {
	ch := int(r.ch)
	switch r.id {
	case uint32(r4.DMADebugStatus0), uint32(r4.DMADebugStatus1), uint32(r4.DMADebugStatus2):
		return m.debugStatus(r.id)
	case idDMA + uint32(r4.DMACHCurAppTxDesc):
		return m.tx[ch].current()
	case idDMA + uint32(r4.DMACHCurAppRxDesc):
		return m.rx[ch].low()
	case idDMA + uint32(r4.DMACHCurAppTxBufferH):
		return uint32(m.tx[ch].buffer >> 32)
	case idDMA + uint32(r4.DMACHCurAppTxBuffer):
		return uint32(m.tx[ch].buffer)
	case idDMA + uint32(r4.DMACHCurAppRxBufferH):
		return uint32(m.rx[ch].buffer >> 32)
	case idDMA + uint32(r4.DMACHCurAppRxBuffer):
		return uint32(m.rx[ch].buffer)
	case idDMA + uint32(r4.DMACHMissFrameCnt), idMTL + uint32(r4.MTLRxQMissedOverflow), idMTL + uint32(r4.MTLTxQUnderflow):
		v := m.regs.get(off)
		m.regs.set(off, 0)
		return v
	case idMTL + uint32(r4.MTLTxQDebug):
		return uint32(m.tx[ch].debug() | m.debugPaused())
	case idMTL + uint32(r4.MTLRxQDebug):
		return uint32(m.rxq[ch].debug())
	case uint32(r4.MACDebug):
		for i := range m.tx {
			if m.tx[i].held {
				return uint32(r4.TPESTS)
			}
		}
		return 0
	case uint32(r4.MACMDIOAddress), uint32(r4.MACMDIOData):
		m.runPHY()
		return m.regs.get(off)
	case uint32(r4.MACVLANTag), uint32(r4.MACVLANTagData):
		m.updateVLAN()
		return m.regs.get(off)
	case uint32(r4.MACTimestampControl), uint32(r4.MACSystemTimeSec), uint32(r4.MACSystemTimeNs):
		return m.loadPTP(r.id)
	case uint32(r4.MACLPIControlStatus):
		return m.loadLPI()
	case r4.TxLPIUSEC, r4.RxLPIUSEC:
		m.countLPI()
	}
	return m.loadMMC(off)
}

// States of DMA_Debug_Status0 and 1 (databook: RPSx and TPSx).
const (
	rxStopped      = 0
	rxWaiting      = 3
	rxSuspended    = 4
	rxTransferring = 7
	txStopped      = 0
	txWaiting      = 2 // for the status of the MAC
	txReading      = 3
	txSuspended    = 6
)

// debugStatus composes the states of channels 0 to 2, 3 to 6 or 7.
func (m *Model) debugStatus(id uint32) (v uint32) {
	first, count, shift := 0, 3, 8
	switch id {
	case uint32(r4.DMADebugStatus1):
		first, count, shift = 3, 4, 0
	case uint32(r4.DMADebugStatus2):
		first, count, shift = 7, 1, 0
	}
	for c := first; c < first+count; c++ {
		if c < len(m.rx) {
			v |= m.rx[c].state() << shift
		}
		if c < len(m.tx) {
			v |= m.tx[c].state() << (shift + 4)
		}
		shift += 8
	}
	return v
}
