package stmmac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Offsets of the registers that say what a GMAC4 makes of a link, and the bits of
// MAC_Configuration.
const (
	offConf   = 0x0000
	offTxFlow = 0x0070
	offRxFlow = 0x0090

	confRE, confTE, confLM, confDM, confFES, confPS = 1 << 0, 1 << 1, 1 << 12, 1 << 13, 1 << 14, 1 << 15
)

// withPHY is a rig whose MAC follows the PHY p of the model.
func withPHY(c rigConfig, p sim.PHYConfig, ask stmmac.PHY) rigConfig {
	c.sim.PHY = &p
	ask.Addr = stmmac.AnyPHY
	c.opts = append([]stmmac.Option{stmmac.WithPHY(ask), stmmac.WithCSRClock(125_000_000)}, c.opts...)
	return c
}

// queues sets the number of queues of model and MAC.
func queues(c rigConfig, n int) rigConfig {
	c.sim.RxQueues, c.sim.TxQueues = n, n
	c.sim.RxFIFO, c.sim.TxFIFO, c.bufs = 32<<10, 32<<10, 4096
	c.opts = append(c.opts, stmmac.WithQueues(n, n))
	return c
}

func (r *rig) reg(off uint32) uint32 {
	r.Helper()
	csr, err := r.dev.Region(0)
	if err != nil {
		r.Fatal(err)
	}
	return csr.Load32(off)
}

// agrees fails unless driver, MAC and PHY have the same link.
func (r *rig) agrees(want stmmac.Link) {
	r.Helper()
	if l := r.mac.Link(); l != want {
		r.Fatalf("link %v (%s), want %v", l, r.mac.LinkReason(), want)
	}
	conf := r.reg(offConf)
	m := r.gen.link(conf, r.csr())
	if m.rx != want.Up || m.tx != want.Up {
		r.Fatalf("MAC_Configuration %#x with the link %v", conf, want)
	}
	if m.rxPause != want.RxPause || m.txPause != want.TxPause {
		r.Errorf("RFE and TFE are %v and %v with the link %v", m.rxPause, m.txPause, want)
	}
	s := r.dev.PHYState()
	if !want.Up {
		if reason := r.mac.LinkReason(); reason == "" {
			r.Error("a link that is down has no reason")
		}
		return
	}
	if reason := r.mac.LinkReason(); reason != "" {
		r.Errorf("a link that is up has the reason %q", reason)
	}
	if m.speed != want.Speed || m.full != want.FullDuplex {
		r.Errorf("MAC_Configuration %#x with the link %v", conf, want)
	}
	if !s.Passing || s.Speed != want.Speed || s.FullDuplex != want.FullDuplex {
		r.Errorf("the PHY has %+v, want %v", s, want)
	}
}

// until lets time go by until the link is as up says, and at most d.
func (r *rig) until(up bool, d time.Duration) {
	r.Helper()
	for end := r.clock.Now() + d; r.mac.Link().Up != up; r.pass(10 * time.Millisecond) {
		if r.clock.Now() >= end {
			r.Fatalf("the link is not %v after %v: %v (%s), %+v", up, d, r.mac.Link(), r.mac.LinkReason(), r.dev.PHYState())
		}
	}
}

// link is a link that is up.
func link(speed int, full bool, pause ...bool) stmmac.Link {
	l := stmmac.Link{Up: true, Speed: speed, FullDuplex: full}
	if len(pause) == 2 {
		l.RxPause, l.TxPause = pause[0], pause[1]
	}
	return l
}

// TestOpenWithPHY opens a MAC on PHYs in the states that a driver may find
// (cases D52, D54, D58): it comes up without a link where there is none yet, says
// why, and has the link soon after there is one.
func TestOpenWithPHY(t *testing.T) { onEach(t, testOpenWithPHY) }

func testOpenWithPHY(t *testing.T) {
	for _, tc := range []struct {
		name   string
		phy    sim.PHYConfig
		plug   bool   // the cable is plugged in after Open
		reason string // what LinkReason says before; "" is not looked at
	}{
		{name: "negotiated"},
		{name: "negotiation takes 3 s", phy: sim.PHYConfig{NegotiationTime: 3 * time.Second}, reason: "negotiation is running"},
		{name: "no cable", phy: sim.PHYConfig{Unplugged: true}, plug: true},
		{name: "no cable and so no clock", phy: sim.PHYConfig{Unplugged: true, ClockNeedsLink: true}, plug: true},
		{name: "powered down", phy: sim.PHYConfig{Control: 0x1800, ClockNeedsPower: true}},
		{name: "powered down, clock with the link", phy: sim.PHYConfig{Control: 0x1800, ClockNeedsPower: true, ClockNeedsLink: true}},
		{name: "isolated", phy: sim.PHYConfig{Control: 0x1540}},
		{name: "in loopback", phy: sim.PHYConfig{Control: 0x5140}},
		{name: "forced by somebody", phy: sim.PHYConfig{Control: 0x2100}},
		{name: "reset released after 30 ms", phy: sim.PHYConfig{ReleaseAfter: 30 * time.Millisecond, ClockNeedsPower: true}},
		{name: "reset released after 200 ms", phy: sim.PHYConfig{ReleaseAfter: 200 * time.Millisecond, ClockNeedsPower: true}},
		{name: "address 31", phy: sim.PHYConfig{Address: 31}},
	} {
		for _, n := range queueCounts(t, 1, 2, 4) {
			for _, reset := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d queues, reset %v", tc.name, n, reset), func(t *testing.T) {
					r := newRig(t, queues(withPHY(rigConfig{}, tc.phy, stmmac.PHY{Reset: reset}), n))
					if tc.reason != "" {
						r.agrees(stmmac.Link{})
						if s := r.mac.LinkReason(); !strings.Contains(s, tc.reason) {
							t.Errorf("reason %q, want %q", s, tc.reason)
						}
					}
					if tc.plug {
						r.pass(6 * time.Second)
						r.agrees(stmmac.Link{})
						if s := r.mac.LinkReason(); !strings.Contains(s, "no partner, or a bad cable") {
							t.Errorf("reason %q", s)
						}
						r.dev.SetCable(true)
					}
					r.until(true, 4*time.Second)
					r.agrees(link(1000, true, true, true))
					r.flows(1)
					r.onlyRx()
				})
			}
		}
	}
}

// TestOpenWithoutPHY refuses buses on which no PHY answers, or none that makes
// sense, with an error that says so, and writes to no PHY (cases D52, D57). Once
// there is one the same device opens.
func TestOpenWithoutPHY(t *testing.T) { onEach(t, testOpenWithoutPHY) }

func testOpenWithoutPHY(t *testing.T) {
	// without45 is the error of what only a MAC with clause 45 could try.
	without45 := func(err error) error {
		if !on(t).limits().clause45 {
			return errors.ErrUnsupported
		}
		return err
	}
	for _, tc := range []struct {
		name   string
		sim    sim.Config
		ask    stmmac.PHY
		clock  uint64 // CSR, Hz
		target error
		words  []string
	}{
		{"no PHY", sim.Config{NoPHY: true}, stmmac.PHY{Addr: stmmac.AnyPHY}, 125e6, stmmac.ErrNoPHY, []string{"0xffffffff at 32 addresses"}},
		{"no PHY at the address", sim.Config{PHY: &sim.PHYConfig{Address: 4}}, stmmac.PHY{Addr: 3}, 125e6, stmmac.ErrNoPHY, []string{"0xffffffff"}},
		{"no PHY, no pull-up", sim.Config{NoPHY: true, Faults: sim.Faults{PHY: sim.PHYFaults{AbsentZero: true}}}, stmmac.PHY{Addr: stmmac.AnyPHY}, 125e6,
			stmmac.ErrNoPHY, []string{"0x00000000 at 32 addresses"}},
		{"all ones", sim.Config{Faults: sim.Faults{PHY: sim.PHYFaults{AllOnes: true}}}, stmmac.PHY{Addr: 1}, 125e6, stmmac.ErrNoPHY, []string{"0xffffffff"}},
		{"bus without clock", sim.Config{Faults: sim.Faults{PHY: sim.PHYFaults{BusGated: true}}}, stmmac.PHY{Addr: 1}, 125e6, stmmac.ErrNoPHY, []string{"clock"}},
		{"busy for ever", sim.Config{Faults: sim.Faults{PHY: sim.PHYFaults{BusyForever: true}}}, stmmac.PHY{Addr: 1}, 125e6,
			os.ErrDeadlineExceeded, []string{on(t).limits().mdio, "GB"}},
		{"reset never released", sim.Config{PHY: &sim.PHYConfig{Address: 1, ReleaseAfter: time.Hour}}, stmmac.PHY{Addr: 1}, 125e6, stmmac.ErrNoPHY, nil},
		{"reset bit never clears", sim.Config{PHY: &sim.PHYConfig{Address: 1, ResetTime: time.Hour}}, stmmac.PHY{Addr: 1, Reset: true}, 125e6,
			stmmac.ErrNoPHY, []string{"BMCR", "in reset"}},
		{"no SMASEL", sim.Config{NoMDIO: true}, stmmac.PHY{Addr: 1}, 125e6, errors.ErrUnsupported, []string{"SMASEL", "WithLink"}},
		{"no CSR clock", sim.Config{}, stmmac.PHY{Addr: 1}, 0, os.ErrInvalid, []string{"CSRClock"}},
		{"clause 45 only", sim.Config{PHY: &sim.PHYConfig{Address: 1, Clause: sim.PHYClause45}}, stmmac.PHY{Addr: 1}, 125e6, stmmac.ErrNoPHY, nil},
		{"clause 22 only", sim.Config{}, stmmac.PHY{Addr: 1, Clause45: true}, 125e6, without45(stmmac.ErrNoPHY), []string{"clause 45"}},
		{"address 32", sim.Config{}, stmmac.PHY{Addr: 32}, 125e6, os.ErrInvalid, []string{"32"}},
		{"2500 at clause 22", sim.Config{}, stmmac.PHY{Addr: 1, Advertise: stmmac.Mode2500Full}, 125e6, without45(os.ErrInvalid), []string{"2500"}},
		{"modes that the PHY lacks", sim.Config{PHY: &sim.PHYConfig{Address: 1, Modes: sim.Mode100Full}}, stmmac.PHY{Addr: 1, Advertise: stmmac.Mode1000Full}, 125e6,
			errors.ErrUnsupported, []string{"1000baseT/Full"}},
		{"no clock from the PHY", sim.Config{PHY: &sim.PHYConfig{Address: 1}, Faults: sim.Faults{ClockGated: true}}, stmmac.PHY{Addr: 1}, 125e6,
			stmmac.ErrNoClock, []string{"receive clock", "SWR"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := sim.NewManualClock()
			tc.sim.Inline, tc.sim.Clock, tc.sim.Generation = true, clock, on(t).model()
			d, err := sim.New(tc.sim, &testWire{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			state := func() sim.PHYState {
				s := d.PHYState()
				s.Passing = false // the MAC has a part in that
				return s
			}
			before := state()
			opts := []stmmac.Option{on(t).options(tc.sim), stmmac.WithName("sim"), stmmac.WithClock(rigClock{clock, d}),
				stmmac.WithCSRClock(tc.clock), noSelfTest}
			m, err := stmmac.Open(t.Context(), d, append(opts, stmmac.WithPHY(tc.ask))...)
			if err == nil {
				m.Close()
				t.Fatal("opened")
			}
			mustFail(t, err, tc.target, append(tc.words, "sim")...)
			var e *stmmac.Error
			if !errors.As(err, &e) || e.Op == "" || e.Dev != "sim" {
				t.Errorf("error %#v", err)
			}
			if took := clock.Now(); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if now := state(); errors.Is(err, stmmac.ErrNoPHY) && !tc.ask.Reset && now != before && tc.sim.PHY == nil {
				t.Errorf("the PHY is in %+v, was in %+v", now, before)
			}
			for _, v := range d.Audit() {
				t.Errorf("audit: %v", v)
			}
			if p := tc.sim.PHY; p != nil && p.ReleaseAfter > 0 {
				clock.Advance(p.ReleaseAfter)
			}
			// With the fault over somebody who knows the link opens it.
			d.SetFaults(func(f *sim.Faults) { *f = sim.Faults{} })
			m, err = stmmac.Open(t.Context(), d, append(opts, stmmac.WithLink(gigabit))...)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenGarbagePHY opens MACs on buses that give random answers. Whatever comes
// of it, it ends, and the errors are typed.
func TestOpenGarbagePHY(t *testing.T) {
	opened := 0
	for seed := range uint64(scale(t, 3000)) {
		for _, c45 := range []bool{false, true} {
			clock := sim.NewManualClock()
			d, err := sim.New(sim.Config{Inline: true, Clock: clock, Faults: sim.Faults{PHY: sim.PHYFaults{Garbage: seed + 1}}}, &testWire{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithName("sim"), stmmac.WithClock(rigClock{clock, d}),
				stmmac.WithCSRClock(125e6), noSelfTest, stmmac.WithRings(4, 4), stmmac.WithPHY(stmmac.PHY{Addr: stmmac.AnyPHY, Clause45: c45}))
			if err == nil {
				opened++
				for range 50 {
					clock.Advance(100 * time.Millisecond)
					m.MonitorPass()
				}
				err = m.Close()
				if err != nil {
					t.Error(err)
				}
			} else if e := (*stmmac.Error)(nil); !errors.As(err, &e) || e.Dev != "sim" {
				t.Errorf("seed %d: error %v", seed+1, err)
			}
			for _, v := range d.Audit() {
				t.Errorf("seed %d: audit: %v", seed+1, v)
			}
			d.Close()
		}
	}
	t.Logf("%d opened", opened)
}

// TestLinkModes negotiates every mode, with all pause modes on both sides (IEEE
// 802.3 table 28B-3), and forces those that can be forced: MAC and PHY agree, and
// frames pass.
func TestLinkModes(t *testing.T) {
	type mode struct {
		partner sim.LinkModes
		want    stmmac.Link
		modes   stmmac.LinkModes
	}
	modes := []mode{
		{sim.Mode10Half, link(10, false), stmmac.Mode10Half},
		{sim.Mode10Full, link(10, true), stmmac.Mode10Full},
		{sim.Mode100Half, link(100, false), stmmac.Mode100Half},
		{sim.Mode100Full, link(100, true), stmmac.Mode100Full},
		{sim.Mode1000Full, link(1000, true), stmmac.Mode1000Full},
	}
	r := newRig(t, withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{}))
	seq := uint64(0)
	check := func(want stmmac.Link) {
		t.Helper()
		r.pass(1200 * time.Millisecond) // a look a second
		r.agrees(want)
		seq++
		r.flows(seq)
	}
	for _, m := range modes {
		t.Logf("negotiated %v", m.want)
		for _, p := range []struct {
			bits   sim.LinkModes
			rx, tx bool
		}{
			{0, false, false}, {sim.ModePause, true, true}, {sim.ModeAsymPause, true, false}, {sim.ModePause | sim.ModeAsymPause, true, true},
		} {
			r.dev.SetPartner(sim.Partner{Modes: m.partner | p.bits})
			want := m.want
			want.RxPause, want.TxPause = p.rx && want.FullDuplex, p.tx && want.FullDuplex
			check(want)
		}
	}
	t.Log("pause modes")
	r.dev.SetPartner(sim.Partner{})
	for _, p := range []struct {
		mode   stmmac.PauseMode
		rx, tx bool
	}{
		{stmmac.PauseOff, false, false}, {stmmac.PauseRx, true, false}, {stmmac.PauseTx, false, true}, {stmmac.PauseRxTx, true, true},
		{stmmac.PauseAuto, true, true},
	} {
		if err := r.mac.SetPause(p.mode); err != nil {
			t.Fatal(err)
		}
		check(link(1000, true, p.rx, p.tx))
	}
	if err := r.mac.SetPause(stmmac.PauseRxTx + 1); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("pause mode 5: %v", err)
	}
	t.Log("advertised")
	for _, m := range modes {
		if err := r.mac.SetAdvertise(m.modes); err != nil {
			t.Fatal(err)
		}
		want := m.want
		want.RxPause, want.TxPause = want.FullDuplex, want.FullDuplex
		check(want)
	}
	t.Log("forced")
	for _, m := range modes {
		// What negotiates finds the speed of one that does not, and takes half duplex.
		partner := sim.Partner{Modes: m.partner, Fixed: true}
		if m.want.Speed == 1000 {
			partner.Fixed = false
		}
		r.dev.SetPartner(partner)
		if err := r.mac.SetForced(m.want); err != nil {
			t.Fatal(err)
		}
		want := m.want
		check(want)
		if m.want.Speed < 1000 {
			mustFail(t, r.mac.Renegotiate(), os.ErrInvalid, "renegotiate", "forced")
		}
	}
	for _, l := range []stmmac.Link{link(40, true), link(2500, true), link(1000, false), {}} {
		err := r.mac.SetForced(l)
		var e *stmmac.Error
		if !errors.As(err, &e) || e.Dev != "sim" || !strings.HasPrefix(e.Op, "set forced mode") {
			t.Errorf("forced %v: %v", l, err)
		}
	}
	r.dev.SetPartner(sim.Partner{})
	if err := r.mac.SetAdvertise(0); err != nil {
		t.Fatal(err)
	}
	check(link(1000, true, true, true))
	mustFail(t, r.mac.SetAdvertise(stmmac.Mode2500Full), os.ErrInvalid, "2500", "set advertise")
	mustFail(t, r.mac.SetLink(gigabit), errors.ErrUnsupported, "set link", "SetForced")
	check(link(1000, true, true, true))
	r.onlyRx()
}

// TestParallelDetection has partners that do not negotiate: the link is half duplex,
// also with several transmit queues.
func TestParallelDetection(t *testing.T) {
	for _, n := range []int{1, 2} {
		r := newRig(t, queues(withPHY(rigConfig{}, sim.PHYConfig{Partner: sim.Partner{Modes: sim.Mode100Full, Fixed: true}}, stmmac.PHY{}), n))
		r.pass(time.Second)
		r.agrees(link(100, false))
		r.flows(1)
	}
}

// TestClause45 follows PHYs that have registers of clause 45, at 2500 Mbit/s where
// that is named.
func TestClause45(t *testing.T) {
	for _, clause := range []sim.PHYClause{sim.PHYClause45, sim.PHYBoth} {
		for _, tc := range []struct {
			ask     stmmac.LinkModes
			partner sim.LinkModes
			want    stmmac.Link
		}{
			{stmmac.Mode2500Full | stmmac.Mode100Full, sim.AllModes, link(2500, true, true, true)},
			{stmmac.Mode2500Full | stmmac.Mode100Full, sim.Mode100Full | sim.ModeAsymPause, link(100, true, true, false)},
			{stmmac.Mode2500Full, sim.Mode1000Full, stmmac.Link{}},
			{0, sim.AllModes, link(map[bool]int{true: 1000, false: 100}[clause == sim.PHYBoth], true, true, true)},
		} {
			t.Run(fmt.Sprintf("%v %v %v", clause, tc.ask, tc.want), func(t *testing.T) {
				r := newRig(t, withPHY(rigConfig{}, sim.PHYConfig{Clause: clause, Partner: sim.Partner{Modes: tc.partner}},
					stmmac.PHY{Clause45: true, Advertise: tc.ask}))
				r.pass(time.Second)
				r.agrees(tc.want)
				if tc.want.Up {
					r.flows(1)
				}
				if err := r.mac.Renegotiate(); err != nil {
					t.Fatal(err)
				}
				r.agrees(stmmac.Link{})
				r.pass(time.Second)
				r.agrees(tc.want)
				// Without a duplex in its registers nothing can be forced.
				err := r.mac.SetForced(link(100, true))
				if clause == sim.PHYClause45 {
					mustFail(t, err, errors.ErrUnsupported, "clause 45")
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestLinksSeesAll follows the iterator over what happens to a cable: nothing is
// missed, not even a link that was lost and is back between two looks.
func TestLinksSeesAll(t *testing.T) { onEach(t, testLinksSeesAll) }

func testLinksSeesAll(t *testing.T) {
	r := newRig(t, withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{}))
	r.until(true, time.Second)
	seen := make(chan stmmac.Link)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l := range r.mac.Links(t.Context()) {
			seen <- l
		}
	}()
	full := link(1000, true, true, true)
	expect := func(want stmmac.Link) {
		t.Helper()
		if l := <-seen; l != want {
			t.Fatalf("link %v, want %v", l, want)
		}
	}
	expect(full)
	r.dev.SetCable(false)
	r.pass(1100 * time.Millisecond)
	expect(stmmac.Link{})
	r.dev.SetCable(true)
	r.pass(200 * time.Millisecond)
	expect(full)
	// Lost and back within one interval of polling.
	before := counter(t, r.mac, "link_changes")
	r.dev.SetCable(false)
	r.pass(20 * time.Millisecond)
	r.dev.SetCable(true)
	r.pass(1100 * time.Millisecond)
	expect(full)
	if n := counter(t, r.mac, "link_changes"); n != before+1 {
		t.Errorf("%d changes of the link, want %d", n, before+1)
	}
	if err := r.mac.Renegotiate(); err != nil {
		t.Fatal(err)
	}
	expect(stmmac.Link{})
	// It is looked for with each tick, not when the next look was due.
	r.pass(120 * time.Millisecond)
	expect(full)
	if err := r.mac.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	r.open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range r.mac.Links(ctx) {
		cancel()
	}
}

// counter returns a count of the MAC.
func counter(t *testing.T, m *stmmac.MAC, name string) uint64 {
	t.Helper()
	for n, v := range m.Counters() {
		if n == name {
			return v
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}

// TestPHYFaults has a PHY that stops answering, a bus that fails, and somebody
// behind the driver's back: the link is down with the reason, or what it was, and
// comes back.
func TestPHYFaults(t *testing.T) { onEach(t, testPHYFaults) }

func testPHYFaults(t *testing.T) {
	fault := func(f func(*sim.PHYFaults)) func(*rig) {
		return func(r *rig) { r.dev.SetFaults(func(all *sim.Faults) { f(&all.PHY) }) }
	}
	for _, tc := range []struct {
		name   string
		do     func(*rig)
		up     bool // the link stays
		reason string
		undo   func(*rig)
		errors bool // phy_errors counts
	}{
		{"all ones", fault(func(f *sim.PHYFaults) { f.AllOnes = true }), false, "does not answer", nil, false},
		{"bus without clock", fault(func(f *sim.PHYFaults) { f.BusGated = true }), false, "does not answer", nil, false},
		{"busy", fault(func(f *sim.PHYFaults) { f.BusyForever = true }), true, "", nil, true},
		{"powered down", func(r *rig) { r.dev.SetPHYControl(0x1940) }, false, "power-down", func(r *rig) { r.dev.SetPHYControl(0x1140) }, false},
		// Case D58: the link bit is set while the PHY is powered down.
		{"powered down with a link", func(r *rig) {
			fault(func(f *sim.PHYFaults) { f.LinkInPowerDown = true })(r)
			r.dev.SetPHYControl(0x1940)
		}, false, "power-down", func(r *rig) { r.dev.SetPHYControl(0x1140) }, false},
		{"isolated", func(r *rig) { r.dev.SetPHYControl(0x1540) }, false, "isolated", func(r *rig) { r.dev.SetPHYControl(0x1140) }, false},
		{"loopback", func(r *rig) { r.dev.SetPHYControl(0x5140) }, false, "loopback", func(r *rig) { r.dev.SetPHYControl(0x1140) }, false},
		{"negotiation off", func(r *rig) { r.dev.SetPHYControl(0x0140) }, false, "lost what it was told", func(r *rig) { r.dev.SetPHYControl(0x1140) }, false},
		{"negotiation hangs", func(r *rig) {
			fault(func(f *sim.PHYFaults) { f.NegotiationHangs = true })(r)
			r.dev.SetPHYControl(0x1340)
		}, false, "negotiation is running", nil, false},
		{"cable flaps", fault(func(f *sim.PHYFaults) { f.Flap = 3 * time.Millisecond }), false, "", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{}))
			r.until(true, time.Second)
			r.flows(1)
			tc.do(r)
			r.pass(2100 * time.Millisecond)
			if l := r.mac.Link(); l.Up != tc.up {
				t.Fatalf("link %v", l)
			}
			if s := r.mac.LinkReason(); !strings.Contains(s, tc.reason) {
				t.Errorf("reason %q, want %q", s, tc.reason)
			}
			if n := counter(t, r.mac, "phy_errors"); tc.errors != (n > 0) {
				t.Errorf("%d errors of the PHY", n)
			}
			if tc.errors {
				err := r.mac.Renegotiate()
				mustFail(t, err, os.ErrDeadlineExceeded, "renegotiate")
			}
			r.dev.SetFaults(func(f *sim.Faults) { f.PHY = sim.PHYFaults{} })
			if tc.undo != nil {
				tc.undo(r)
			}
			if tc.errors {
				// The clocks run: the MAC can be rebuilt all the same, and the reset
				// frees the bus.
				if err := r.mac.SetMTU(t.Context(), 1400); err != nil {
					t.Fatal(err)
				}
			}
			r.until(true, 2*time.Second)
			r.pass(1500 * time.Millisecond)
			r.agrees(link(1000, true, r.mac.Link().RxPause, r.mac.Link().TxPause))
			r.flows(2)
			r.onlyRx()
		})
	}
}

// TestSelfTestSmallRings tries the checksum engines through rings of one frame: they
// work, so nobody complains.
func TestSelfTestSmallRings(t *testing.T) {
	for _, n := range []int{2, 3, 4, 512} {
		var log bytes.Buffer
		newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n), stmmac.WithLogger(zerolog.New(&log)),
			stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = true })}})
		if strings.Contains(log.String(), "self-test") {
			t.Errorf("with rings of %d: %s", n, log.String())
		}
	}
}
