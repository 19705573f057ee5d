package phy

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

var errBus = errors.New("injected")

// op is one access to the fake bus.
type op struct {
	write     bool
	addr      int
	dev, reg  int // dev -1: clause 22
	val       uint16
	wasFailed bool
}

func (o op) String() string {
	return fmt.Sprintf("{w:%v %d: %d.%d=%#x}", o.write, o.addr, o.dev, o.reg, o.val)
}

// fakeBus is a bus of PHYs made of arrays of registers.
type fakeBus struct {
	phys   [32]*fakePHY
	absent uint16                // what an absent PHY reads
	fail   func(n int, o op) int // by number of the access: see the constants
	log    []op
}

// What fakeBus.fail answers.
const (
	pass      = iota
	lose      // the access fails and does not reach the PHY
	lateFault // the access reaches the PHY and fails
)

func (b *fakeBus) access(o op) (uint16, error) {
	what := pass
	if b.fail != nil {
		what = b.fail(len(b.log), o)
	}
	p, v := b.phys[o.addr], b.absent
	switch {
	case what == lose || p == nil:
	case o.write:
		p.write(o.dev, o.reg, o.val)
	default:
		v = p.read(o.dev, o.reg)
		o.val = v
	}
	o.wasFailed = what != pass
	b.log = append(b.log, o)
	if what != pass {
		return 0xdead, errBus
	}
	return v, nil
}

func (b *fakeBus) Read(addr, reg int) (uint16, error) {
	return b.access(op{addr: addr, dev: -1, reg: reg})
}

func (b *fakeBus) Write(addr, reg int, v uint16) error {
	_, err := b.access(op{write: true, addr: addr, dev: -1, reg: reg, val: v})
	return err
}

func (b *fakeBus) Read45(addr, dev, reg int) (uint16, error) {
	return b.access(op{addr: addr, dev: dev, reg: reg})
}

func (b *fakeBus) Write45(addr, dev, reg int, v uint16) error {
	_, err := b.access(op{write: true, addr: addr, dev: dev, reg: reg, val: v})
	return err
}

// writes returns what was written to a register of clause 22.
func (b *fakeBus) writes(reg int) []uint16 {
	var out []uint16
	for _, o := range b.log {
		if o.write && o.dev == -1 && o.reg == reg {
			out = append(out, o.val)
		}
	}
	return out
}

func (b *fakeBus) wrote() bool {
	return slices.ContainsFunc(b.log, func(o op) bool { return o.write })
}

// fakePHY is a PHY of 10/100/1000 by IEEE 802.3 clauses 22, 28 and 40, with
// what real ones do besides. By clause 45 it holds what is in mmd; the link of
// 1.1 and the state of 7.1 are those of clause 22.
type fakePHY struct {
	regs [32]uint16
	mmd  map[[2]int]uint16 // nil: does not know clause 45
	no22 bool              // does not answer by clause 22

	link     bool // now
	dropped  bool // since the status was read
	complete bool
	fault    bool // MASTER-SLAVE, until it is read

	anMask      uint16 // bits of ANAR that cannot be written
	resetReads  int    // how often a reset is seen
	resetTo     uint16 // BMCR after a reset
	sleepReads  int    // how often power-down is seen after it was cleared
	restarts    int
	noComplete  bool // negotiation never completes
	noDrop      bool // the link stays, and the advertisement over a reset
	pending     int
	sleepy      int
	stuckAsleep bool
}

// newPHY is a PHY with a partner that has everything, whose link is up.
func newPHY() *fakePHY {
	p := &fakePHY{link: true, complete: true, resetTo: 0x1140}
	p.regs = [32]uint16{
		0: 0x1140, 1: 0x7949, 2: 0x0362, 3: 0x5e6a, 4: 0x01e1, 5: 0xcde1, 6: 0x0005,
		9: 0x0300, 10: 0x3800, 15: 0x3000,
	}
	return p
}

// drop takes the link away and gives it back.
func (p *fakePHY) drop() { p.dropped = true }

func (p *fakePHY) status() uint16 {
	v := p.regs[1]
	if p.link && !p.dropped {
		v |= 1 << 2
	}
	if p.complete && p.regs[0]&(1<<12) != 0 {
		v |= 1 << 5
	}
	p.dropped = !p.link
	return v
}

func (p *fakePHY) read(dev, reg int) uint16 {
	switch {
	case dev == -1 && p.no22:
		return 0xffff
	case dev == -1:
		return p.read22(reg)
	case p.mmd == nil:
		return 0xffff
	case dev == 1 && reg == 1:
		return p.status() & (1 << 2)
	case dev == 7 && reg == 1:
		v := p.mmd[[2]int{7, 1}]
		if p.complete {
			v |= 1 << 5
		}
		return v
	}
	return p.mmd[[2]int{dev, reg}]
}

func (p *fakePHY) read22(reg int) uint16 {
	switch reg {
	case 0:
		if p.pending > 0 {
			if p.pending--; p.pending == 0 {
				p.regs[0] = p.resetTo
			}
		}
		v := p.regs[0]
		if p.sleepy > 0 && v&(1<<11) == 0 {
			p.sleepy--
			v |= 1 << 11
		}
		return v
	case 1:
		return p.status()
	case 10:
		v := p.regs[10]
		if p.fault {
			v |= 1 << 15
			p.fault = false
		}
		return v
	}
	return p.regs[reg]
}

func (p *fakePHY) write(dev, reg int, v uint16) {
	switch {
	case dev == -1 && p.no22 || dev >= 0 && p.mmd == nil:
	case dev == 7 && reg == 0:
		if v&(1<<9) != 0 {
			p.negotiate()
		}
		p.mmd[[2]int{7, 0}] = v &^ (1 << 9)
	case dev >= 0:
		p.mmd[[2]int{dev, reg}] = v
	case reg == 0:
		p.control(v)
	case reg == 4:
		p.regs[4] = v&^p.anMask | p.regs[4]&p.anMask
	case reg == 9:
		p.regs[9] = v
	default:
		panic(fmt.Sprintf("write of %#x to register %d, which is read-only or unknown", v, reg))
	}
}

func (p *fakePHY) control(v uint16) {
	old := p.regs[0]
	if v&(1<<15) != 0 {
		p.regs[0], p.pending, p.dropped = 1<<15, p.resetReads+1, !p.noDrop
		if !p.noDrop {
			p.regs[4], p.regs[9] = 0x01e1, 0x0300
		}
		return
	}
	if p.stuckAsleep {
		v |= 1 << 11
	}
	if old&(1<<11) != 0 && v&(1<<11) == 0 {
		p.sleepy = p.sleepReads
	}
	if v&(1<<9) != 0 {
		p.negotiate()
	}
	if (v^old)&0x7d40 != 0 && !p.noDrop {
		p.dropped = true
	}
	p.regs[0] = v &^ (1 << 9)
}

func (p *fakePHY) negotiate() {
	p.restarts++
	p.dropped, p.complete = !p.noDrop, !p.noComplete
}

const allModes = core.Mode10Half | core.Mode10Full | core.Mode100Half | core.Mode100Full |
	core.Mode1000Half | core.Mode1000Full | core.Mode2500Full

// bench is a PHY at address 1 with its driver.
type bench struct {
	*testing.T
	bus   *fakeBus
	fake  *fakePHY
	clock *sim.ManualClock
	phy   *PHY
}

func config(clock core.Clock) Config {
	return Config{PHY: core.PHY{Addr: core.AnyPHY}, Name: "test", Modes: allModes &^ core.Mode2500Full, Clock: clock}
}

// newBench returns a PHY that was found and not started.
func newBench(t *testing.T, fake *fakePHY, set func(*Config)) *bench {
	t.Helper()
	b := &bench{T: t, fake: fake, clock: sim.NewManualClock(), bus: &fakeBus{}}
	b.bus.phys[1] = fake
	cfg := config(b.clock)
	if set != nil {
		set(&cfg)
	}
	var err error
	if b.phy, err = Find(t.Context(), b.bus, cfg); err != nil {
		t.Fatal(err)
	}
	if b.phy.Addr() != 1 {
		t.Fatalf("found at %d", b.phy.Addr())
	}
	return b
}

// started returns a PHY that was started.
func started(t *testing.T, fake *fakePHY, set func(*Config)) *bench {
	t.Helper()
	b := newBench(t, fake, set)
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// poll polls once and checks what it says; reason is a part of the reason.
func (b *bench) poll(want core.Link, changed bool, reason string) {
	b.Helper()
	b.clock.Advance(time.Second)
	l, c, err := b.phy.Poll()
	if err != nil || l != want || c != changed {
		b.Errorf("poll: %v, changed %v, %v; want %v, changed %v", l, c, err, want, changed)
	}
	why := b.phy.Reason()
	if want.Up != (why == "") || !contains(why, reason) {
		b.Errorf("reason %q, want %q", why, reason)
	}
}

var (
	down     core.Link
	gigabit  = core.Link{Up: true, Speed: 1000, FullDuplex: true, RxPause: true, TxPause: true}
	full100  = core.Link{Up: true, Speed: 100, FullDuplex: true}
	half100  = core.Link{Up: true, Speed: 100}
	pause100 = core.Link{Up: true, Speed: 100, FullDuplex: true, RxPause: true, TxPause: true}
)
