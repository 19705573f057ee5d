package sim

import (
	"encoding/binary"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// flowState is PAUSE flow control (IEEE 802.3, annex 31B; databook: MAC_Rx_Flow_Ctrl,
// MAC_Q0_Tx_Flow_Ctrl, MTL_RxQx_Operation_Mode). The fill level of any receive queue
// with EHFC works on the one PAUSE of the link, with the time in the register of
// queue 0: those of the other queues are for priority flow control, which the model
// does not have.
//
// PAUSE is made and obeyed on any wire. On an elastic one it has little to do, as
// frames wait outside until there is room, but the MAC cannot tell the wires apart.
type flowState struct {
	rfe, up   bool
	tfe, dzpq bool
	pt        uint32 // slots
	ahead     uint32 // slots before the end at which PAUSE is repeated

	until time.Duration // the peer wants silence until then; 0 is none

	above  int           // receive queues that filled up and have not emptied again
	told   bool          // the peer was told to pause
	again  time.Duration // when to tell it again; 0 is never
	manual bool          // FCB_BPA is set
	denied bool          // the audit has told of back pressure
	frame  [minPadded]byte
}

// slotBits is the unit of pause times (IEEE 802.3, annex 31B.2: pause_quantum).
const slotBits = 512

// pltSlots are the values of PLT; the codes behind them are reserved.
var pltSlots = [8]uint32{4, 28, 36, 144, 256, 512, 512, 512}

// mbps is the speed that MAC_Configuration selects.
func (s *macState) mbps() int {
	switch s.conf & r4.SpeedMask {
	case r4.PS:
		return 10
	case r4.PS | r4.FES:
		return 100
	case r4.FES:
		return 2500
	}
	return 1000
}

// slotTime is how long n slots take at the present speed.
func (s *macState) slotTime(n uint32) time.Duration {
	return time.Duration(n) * slotBits * 1000 / time.Duration(s.mbps())
}

// deriveFlow takes over the registers of flow control.
func (m *Model) deriveFlow() {
	f := &m.flow
	f.denied = false
	rx := r4.RxFlow(m.regs.get(uint32(r4.MACRxFlow)))
	f.rfe, f.up = rx&r4.RFE != 0, rx&r4.UP != 0
	if !f.rfe || m.mac.conf&r4.DM == 0 {
		f.until = 0
	}
	tx := r4.TxFlow(m.regs.get(uint32(r4.MACQxTxFlow)))
	f.tfe, f.dzpq = tx&r4.TFE != 0, tx&r4.DZPQ != 0
	f.pt, f.ahead = r4.PT.Get(tx), pltSlots[r4.PLT.Get(tx)]
	if !f.tfe {
		f.told, f.again = false, 0
	}
}

// storeTxFlow is a store to MAC_Q0_Tx_Flow_Ctrl.
func (m *Model) storeTxFlow(off uint32, old, now r4.TxFlow) {
	if old&r4.FCBBPA != 0 {
		m.report(Violation{Kind: ConfigRunning, Channel: -1, Index: -1},
			"%s = %#x while FCB_BPA is set", m.regName(off), uint32(now))
	}
	if now&r4.TFE != 0 && r4.PT.Get(now) <= pltSlots[r4.PLT.Get(now)] {
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1},
			"PT %d is not more than the %d slots of PLT", r4.PT.Get(now), pltSlots[r4.PLT.Get(now)])
	}
	if now&r4.TFE == 0 {
		now &^= r4.FCBBPA
	}
	m.flow.manual = now&r4.FCBBPA != 0
	m.regs.set(off, uint32(now))
	m.derive()
}

// auditFlow looks at the thresholds of a receive queue that asks for PAUSE.
func (m *Model) auditFlow(q int, now r4.MTLRxQMode) {
	// Frames that are on their way when PAUSE leaves find room: at least one of the
	// longest that is not a jumbo, with a tag.
	const oneFrame = maxWithFCS + vlanLen
	bad := func(format string, args ...any) {
		m.report(Violation{Kind: ConfigInvalid, Channel: q, Index: -1}, format, args...)
	}
	x := &m.rxq[q]
	switch {
	case x.size < 4096:
		bad("EHFC with a queue of %d bytes", x.size)
	case r4.RFD.Get(now) <= r4.RFA.Get(now):
		bad("RFD %d is not more than RFA %d", r4.RFD.Get(now), r4.RFA.Get(now))
	case x.deactivate <= 0:
		bad("RFD %d lies below an empty queue of %d bytes", r4.RFD.Get(now), x.size)
	case x.size-x.activate < oneFrame:
		bad("RFA %d leaves %d bytes behind the threshold", r4.RFA.Get(now), x.size-x.activate)
	}
}

// flowMode takes over the thresholds of MTL_RxQx_Operation_Mode.
func (q *rxQueue) flowMode(v r4.MTLRxQMode) {
	const step, first = 512, 1024
	q.ehfc = v&r4.EHFC != 0
	q.activate = q.size - first - step*int(r4.RFA.Get(v))
	q.deactivate = q.size - first - step*int(r4.RFD.Get(v))
}

// level follows the fill level of a queue over the thresholds.
func (q *rxQueue) level(m *Model) {
	was := q.above
	switch {
	case !q.ehfc || q.used < q.deactivate || q.used == 0:
		q.above = false
	case q.used >= q.activate:
		q.above = true
	}
	switch {
	case q.above && !was:
		m.flow.above++
	case was && !q.above:
		m.flow.above--
	}
}

// busy says whether stepFlow has something to look at.
func (f *flowState) busy() bool { return f.above > 0 || f.told || f.manual }

// stepFlow sends the PAUSE that is due, in front of the data, and returns 1 if it did.
func (m *Model) stepFlow() int {
	f := &m.flow
	if !f.busy() || !f.tfe || m.mac.conf&r4.TE == 0 || m.faults.ClockGated {
		return 0
	}
	if m.mac.conf&r4.DM == 0 {
		m.backPressure()
		return 0
	}
	if (f.manual || f.above > 0 || !f.dzpq) && m.lpiSilent() {
		return 0
	}
	switch {
	case f.manual:
		if !m.sendPause(f.pt) {
			return 0
		}
		f.manual = false
		off := m.at.flow
		m.regs.set(off, m.regs.get(off)&^uint32(r4.FCBBPA))
		return 1
	case f.above > 0 && (!f.told || f.again != 0 && m.time() >= f.again):
		if !m.sendPause(f.pt) {
			return 0
		}
		f.told, f.again = true, 0
		if f.pt > 0 {
			// With a PLT that leaves nothing the databook does not say when.
			f.again = m.time() + m.mac.slotTime(max(f.pt, f.ahead+1)-f.ahead)
			m.armTimer(f.again)
		}
		return 1
	case f.above > 0:
		if f.again != 0 {
			m.armTimer(f.again)
		}
	case f.told:
		if !f.dzpq && !m.sendPause(0) {
			return 0
		}
		f.told, f.again = false, 0
		if !f.dzpq {
			return 1
		}
	}
	return 0
}

// backPressure is what flow control is in half duplex; the model refuses it.
func (m *Model) backPressure() {
	f := &m.flow
	if !f.denied {
		f.denied = true
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1}, "TFE in half duplex: there is no back pressure")
	}
	f.manual, f.told, f.again = false, false, 0
	off := m.at.flow
	m.regs.set(off, m.regs.get(off)&^uint32(r4.FCBBPA))
}

// sendPause puts a PAUSE of n slots on the wire. It is false when the wire is full.
func (m *Model) sendPause(n uint32) bool {
	b := &m.flow.frame
	clear(b[:])
	putAddr(b[0:], pauseAddr)
	putAddr(b[6:], m.mac.slots[0].addr)
	binary.BigEndian.PutUint16(b[12:], typeControl)
	binary.BigEndian.PutUint16(b[14:], opPause)
	binary.BigEndian.PutUint16(b[16:], uint16(n))
	if sent, _ := m.emit(Frame{Data: b[:]}); !sent {
		return false
	}
	m.countTx(b[:], len(b)+fcsLen, true)
	m.stats.TxPause++
	return true
}

// putAddr writes an address in the order of transmission.
func putAddr(b []byte, a uint64) {
	binary.LittleEndian.PutUint32(b, uint32(a))
	binary.LittleEndian.PutUint16(b[4:], uint16(a>>32))
}

// pauseForUs says whether the MAC takes a control frame for a PAUSE: one to the
// reserved address or, with UP, to MAC address 0.
func (m *Model) pauseForUs(data []byte) bool {
	if len(data) < minPadded || binary.BigEndian.Uint16(data[14:]) != opPause {
		return false
	}
	dst := macAddr(data)
	return dst == pauseAddr || m.flow.up && m.mac.slots[0].mask != 0 && dst == m.mac.slots[0].addr
}

// obeyPause lets a good PAUSE stop the transmitter, or start it again.
func (m *Model) obeyPause(data []byte) {
	f := &m.flow
	m.stats.RxPause++
	if !f.rfe || m.mac.conf&r4.DM == 0 {
		return
	}
	f.until = 0
	if n := uint32(binary.BigEndian.Uint16(data[16:])); n != 0 {
		f.until = m.time() + m.mac.slotTime(n)
	}
}

// paused says whether the transmitter is silent because the peer asked for it.
func (m *Model) paused() bool {
	f := &m.flow
	if f.until == 0 {
		return false
	}
	if m.time() >= f.until {
		f.until = 0
		return false
	}
	m.armTimer(f.until)
	return true
}

// debugPaused is TXQPAUSED of MTL_TxQx_Debug, the same for all queues.
func (m *Model) debugPaused() r4.MTLTxQDbg {
	if m.clock.Now() < m.flow.until {
		return r4.TXQPAUSED
	}
	return 0
}
