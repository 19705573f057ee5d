package sim

import (
	"encoding/binary"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// launchWrap is where launch times start again: they have eight bits of the seconds.
const launchWrap = nsPerSecond << 8

// takeLaunch reads the launch time of the fetched descriptor, the first of a frame. It is
// false after a bus error.
func (t *txChan) takeLaunch() bool {
	addr := t.at(t.cur) - uint64(t.front)
	var b [8]byte // words 4 and 5
	if t.m.readDMA(addr, b[:]) != nil {
		t.reportAccess(addr, len(b))
		t.txFrame = txFrame{}
		t.busError(busRead | busDescriptor)
		return false
	}
	d4, d5 := r4.TDES4(binary.LittleEndian.Uint32(b[:])), r4.TDES5(binary.LittleEndian.Uint32(b[4:]))
	t.timed = d4&r4.LTV != 0
	t.launch = uint64(r4.LTSeconds.Get(d4))*nsPerSecond + uint64(d5&r4.LTNanoseconds.Mask())
	return true
}

// early says that the launch time of the frame has not come. Of the two nearest times that
// it may mean, half of the wrap away, that behind the system time is one that has passed.
func (t *txChan) early() bool {
	m := t.m
	if !t.timed || m.ptpControl()&r4.TSENA == 0 {
		return false // without a time that runs there is none to wait for
	}
	m.updatePTP()
	left := (t.launch + launchWrap - m.ptp.base%launchWrap) % launchWrap
	if left == 0 || left >= launchWrap/2 {
		t.timed = false
		return false
	}
	// The system time may run slower than the clock of the model, or stand still.
	m.armTimer(m.clock.Now() + max(time.Duration(left), 10*time.Microsecond))
	return true
}
