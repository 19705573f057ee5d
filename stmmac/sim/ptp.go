package sim

import (
	"math/bits"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// ptpState is the system time of IEEE 1588 (databook: MAC_Timestamp_Control and the
// registers behind it). It runs with the clock of the model. Timestamps of packets are
// not modelled.
type ptpState struct {
	base   uint64        // ns at time at
	at     time.Duration // of the model's clock
	addend uint32        // as TSADDREG took it
	dueAt  time.Duration // when the commands that are set take effect; 0 is none
}

// ptpAccessTime is how long a command takes to reach the domain of the PTP clock.
const ptpAccessTime = time.Microsecond

const (
	nsPerSecond = uint64(time.Second)
	// The seconds have 32 bits.
	ptpWrap = nsPerSecond << 32

	ptpCommands = r4.TSINIT | r4.TSUPDT | r4.TSADDREG
)

// mulDiv is a*b/c modulo 2^64.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi%c, lo, c)
	return q
}

// ptpControl is MAC_Timestamp_Control.
func (m *Model) ptpControl() r4.TimestampControl {
	return r4.TimestampControl(m.regs.get(uint32(r4.MACTimestampControl)))
}

// binaryNs converts a subsecond part of binary rollover to nanoseconds, and subBinary the
// other way, each to the nearest below.
func binaryNs(v uint64) uint64 { return mulDiv(v, nsPerSecond, 1<<31) }
func subBinary(ns uint64) uint32 {
	// The nearest above, so that a value comes back as it was written.
	return uint32((ns<<31 + nsPerSecond - 1) / nsPerSecond)
}

// ptpNow lets the time run up to now.
func (m *Model) ptpNow(now time.Duration) {
	p := &m.ptp
	elapsed := uint64(max(now-p.at, 0))
	p.at = now
	c := m.ptpControl()
	if c&r4.TSENA == 0 {
		return
	}
	inc := r4.SubSecondIncrement(m.regs.get(uint32(r4.MACSubSecondIncrement)))
	rate := uint64(r4.SSINC.Get(inc)<<8|r4.SNSINC.Get(inc)) * m.cfg.PTPClock // 1/256 of the unit in a second
	if c&r4.TSCFUPDT != 0 {
		rate = mulDiv(rate, uint64(p.addend), 1<<32)
	}
	gain := mulDiv(elapsed, rate, 256*nsPerSecond)
	if c&r4.TSCTRLSSR == 0 {
		gain = mulDiv(elapsed, binaryNs(rate), 256*nsPerSecond)
	}
	p.base = (p.base + gain%ptpWrap) % ptpWrap
}

// updatePTP lets the commands that are due take effect, and the time run up to now.
func (m *Model) updatePTP() {
	p, now := &m.ptp, m.clock.Now()
	if p.dueAt == 0 || now < p.dueAt {
		m.ptpNow(now)
		return
	}
	m.ptpNow(p.dueAt)
	p.dueAt = 0
	c := m.ptpControl()
	sec := uint64(m.regs.get(uint32(r4.MACSystemTimeSecUpdate)))
	up := r4.TimeNsUpdate(m.regs.get(uint32(r4.MACSystemTimeNsUpdate)))
	sub, second := uint64(r4.TSSS.Get(up)), nsPerSecond
	if c&r4.TSCTRLSSR == 0 {
		sub = binaryNs(sub)
	}
	if over := sub >= second; c&(r4.TSINIT|r4.TSUPDT) != 0 && over && (up&r4.ADDSUB == 0 || sub > second) {
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1},
			"MAC_System_Time_Nanoseconds_Update = %#x: a second or more", uint32(up))
	}
	if c&r4.TSADDREG != 0 {
		p.addend = m.regs.get(uint32(r4.MACTimestampAddend))
	}
	switch {
	case c&r4.TSINIT != 0:
		p.base = (sec*nsPerSecond + sub) % ptpWrap
	case c&r4.TSUPDT != 0 && up&r4.ADDSUB != 0:
		// The registers hold 2^32 s and 1 s less what is to be taken off.
		p.base = (p.base + sec*nsPerSecond%ptpWrap + sub + ptpWrap - nsPerSecond) % ptpWrap
	case c&r4.TSUPDT != 0:
		p.base = (p.base + sec*nsPerSecond + sub) % ptpWrap
	}
	m.regs.set(uint32(r4.MACTimestampControl), uint32(c&^ptpCommands))
	m.ptpNow(now)
}

// storePTP is a store to a register on which the time depends.
func (m *Model) storePTP(off uint32, r *register, v uint32) {
	m.updatePTP()
	if off == uint32(r4.MACTimestampControl) {
		pending := m.ptpControl() & ptpCommands
		if asked := r4.TimestampControl(v) & ptpCommands; asked != 0 && pending != 0 {
			m.report(Violation{Kind: ConfigRunning, Channel: -1, Index: -1}, "%s = %#x while %v is set", m.regName(off), v, pending)
		} else if asked != 0 {
			m.ptp.dueAt = m.clock.Now() + ptpAccessTime
		}
		v |= uint32(pending)
	}
	m.regs.set(off, v&r.mask)
}

// loadPTP is the load of the control register or the time.
func (m *Model) loadPTP(id uint32) uint32 {
	m.updatePTP()
	t := m.ptp.base
	switch id {
	case uint32(r4.MACSystemTimeSec):
		return uint32(t / nsPerSecond)
	case uint32(r4.MACSystemTimeNs):
		if m.ptpControl()&r4.TSCTRLSSR == 0 {
			return subBinary(t % nsPerSecond)
		}
		return uint32(t % nsPerSecond)
	}
	return uint32(m.ptpControl())
}
