package stmmac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestMTUWithPHY is case D49: the MTU is changed under traffic on a PHY that stops its
// clock when it is powered down or has no link, and that somebody powers down in
// between. The PHY is brought up before the reset, and traffic goes on.
func TestMTUWithPHY(t *testing.T) {
	for _, p := range []sim.PHYConfig{{ClockNeedsPower: true}, {ClockNeedsLink: true}, {ClockNeedsPower: true, ClockNeedsLink: true}} {
		for _, n := range []int{1, 2, 4} {
			for _, reset := range []bool{false, true} {
				for _, state := range []string{"up", "powered down", "unplugged", "unplugged and powered down"} {
					t.Run(fmt.Sprintf("power %v, link %v, %d queues, reset %v, %s", p.ClockNeedsPower, p.ClockNeedsLink, n, reset, state), func(t *testing.T) {
						c := queues(withPHY(rigConfig{}, p, stmmac.PHY{Reset: reset}), n)
						c.sim.RxFIFO, c.sim.TxFIFO = 64<<10, 64<<10
						c.opts = append(c.opts, stmmac.WithRings(64, 64))
						r := newRig(t, c)
						r.until(true, time.Second)
						for i, mtu := range []int{9000, 1500, 576} {
							seq := uint64(100 * i)
							r.flows(seq)
							r.wire.deliver(frames(3, 60, seq+10)...)
							r.step()
							switch state {
							case "powered down":
								r.dev.SetPHYControl(0x1940)
							case "unplugged":
								r.dev.SetCable(false)
							case "unplugged and powered down":
								r.dev.SetCable(false)
								r.dev.SetPHYControl(0x1940)
							}
							if err := r.mac.SetMTU(t.Context(), mtu); err != nil {
								t.Fatal(err)
							}
							r.same(r.recv(3), frames(3, 60, seq+10)) // accepted before
							// The MAC has the link that the PHY has now, not the one before.
							if l := r.mac.Link(); l.Up != r.dev.PHYState().Link {
								t.Errorf("link %v, and the PHY has %+v", l, r.dev.PHYState())
							}
							// With or without a link.
							if k, err := r.mac.Tx(n - 1).Send([]*pagepool.Buf{r.buf(frame(mtu, seq+20), 1500)}); k != 1 {
								t.Fatal(err)
							}
							r.dev.SetCable(true)
							r.until(true, time.Second)
							r.step()
							r.same(r.wire.take(), [][]byte{frame(mtu, seq+20)})
							r.wire.deliver(frame(mtu+14, seq+21))
							r.same(r.recv(1), [][]byte{frame(mtu+14, seq+21)})
							r.onlyRx()
						}
						if n := counter(t, r.mac, "faults"); n != 0 {
							t.Errorf("%d faults", n)
						}
					})
				}
			}
		}
	}
}

// noReset is a device that cannot be reset from outside.
type noReset struct{ *sim.Device }

func (noReset) Reset(context.Context) error { return errors.ErrUnsupported }

// TestMTUWithoutClock takes the clocks away for good: the old configuration cannot be
// restored, and the MAC is down and says so; with the clocks back it opens again.
func TestMTUWithoutClock(t *testing.T) {
	for _, wrap := range []func(*sim.Device) stmmac.Device{nil, func(d *sim.Device) stmmac.Device { return noReset{d} }} {
		c := withPHY(rigConfig{wrap: wrap}, sim.PHYConfig{}, stmmac.PHY{})
		r := newRig(t, c)
		r.until(true, time.Second)
		r.send(frames(3, 60, 0)...)
		start := r.clock.Now()
		r.dev.SetClockGated(true)
		mustFail(t, r.mac.SetMTU(t.Context(), 1400), stmmac.ErrNoClock, "set MTU", "sim")
		if took := r.clock.Now() - start; took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
		mustFail(t, r.mac.Err(), stmmac.ErrNoClock)
		if l := r.mac.Link(); l.Up {
			t.Errorf("link %v", l)
		}
		if s := r.mac.LinkReason(); s != r.mac.Err().Error() {
			t.Errorf("reason %q", s)
		}
		mustFail(t, r.mac.Rx(0).Wait(t.Context()), stmmac.ErrNoClock)
		if n := r.pool.InUse(); n != 0 && wrap == nil {
			t.Errorf("%d buffers are in use: %v", n, r.pool.Holders())
		}
		r.dev.SetClockGated(false)
		r.pass(100 * time.Millisecond)
		if err := r.mac.Close(); err != nil {
			t.Fatal(err)
		}
		r.open()
		r.until(true, time.Second)
		r.flows(1)
	}
}

// TestRenegotiateSpeeds is case D53: the speed changes under traffic in both
// directions, and the audit sees no change of it while the MAC is on. One store sets
// speed, duplex and enables.
func TestRenegotiateSpeeds(t *testing.T) { onEach(t, testRenegotiateSpeeds) }

func testRenegotiateSpeeds(t *testing.T) {
	trace := &stores{}
	r := newRig(t, withPHY(rigConfig{wrap: trace.wrap}, sim.PHYConfig{}, stmmac.PHY{}))
	r.until(true, time.Second)
	seq := uint64(0)
	for range scale(t, 300) {
		for _, m := range []struct {
			partner sim.LinkModes
			want    stmmac.Link
		}{
			{sim.Mode100Half, link(100, false)}, {sim.Mode10Half, link(10, false)}, {sim.AllModes, link(1000, true, true, true)},
		} {
			trace.conf = trace.conf[len(trace.conf)-1:] // the state before
			r.dev.SetPartner(sim.Partner{Modes: m.partner})
			for range 120 { // 1.2 s
				seq++
				if r.mac.Tx(0).Space() > 0 {
					r.send(frame(60+int(seq)%1400, seq))
				}
				r.wire.deliver(frame(60, seq))
				r.pass(10 * time.Millisecond)
				r.recv(4)
			}
			r.agrees(m.want)
			r.wire.take()
			r.flows(seq)
			r.onlyRx()
			if len(trace.conf) < 2 {
				t.Fatalf("MAC_Configuration is stored %d times for a new speed", len(trace.conf))
			}
			last := trace.conf[0]
			for _, v := range trace.conf[1:] {
				was, is := r.gen.link(last, r.csr()), r.gen.link(v, r.csr())
				changed := was.speed != is.speed || was.full != is.full
				if is.rx != is.tx {
					t.Errorf("MAC_Configuration = %#x", v)
				}
				if changed && is.rx && was.rx {
					t.Errorf("MAC_Configuration from %#x to %#x", last, v)
				}
				if changed && !is.rx {
					t.Errorf("MAC_Configuration = %#x: speed or duplex without the enables", v)
				}
				last = v
			}
		}
	}
}

// stores are the values that were stored to MAC_Configuration.
type stores struct{ conf []uint32 }

func (s *stores) wrap(d *sim.Device) stmmac.Device { return tracedDevice{d, s} }

type tracedDevice struct {
	*sim.Device
	s *stores
}

func (d tracedDevice) Region(i int) (mmio.Region, error) {
	r, err := d.Device.Region(i)
	return tracedRegion{r, d.s}, err
}

type tracedRegion struct {
	mmio.Region
	s *stores
}

func (r tracedRegion) Store32(off, v uint32) {
	if off == offConf {
		r.s.conf = append(r.s.conf, v)
	}
	r.Region.Store32(off, v)
}

// TestSendBeforeLink is case D54: the transmitter is off until there is a link, and
// what was sent before leaves when there is one, at the speed of that link.
func TestSendBeforeLink(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, count := range []int{1, 3, 600} {
			t.Run(fmt.Sprintf("%d queues, %d frames", n, count), func(t *testing.T) {
				r := newRig(t, queues(withPHY(rigConfig{}, sim.PHYConfig{Unplugged: true, Partner: sim.Partner{Modes: sim.Mode100Full}}, stmmac.PHY{}), n))
				sent := 0
				for i := range count {
					b := r.buf(frame(60, uint64(i)), 60)
					k, err := r.mac.Tx(n - 1).Send([]*pagepool.Buf{b})
					if err != nil {
						t.Fatal(err)
					}
					if k == 0 {
						r.pool.Free(b)
						break
					}
					sent++
				}
				if sent != min(count, 511) {
					t.Fatalf("%d frames were taken", sent)
				}
				r.pass(10 * time.Second)
				r.agrees(stmmac.Link{})
				if s := r.dev.Stats(); s.TxFrames+s.TxLost != 0 || counter(t, r.mac, "faults") != 0 {
					t.Fatalf("%+v", s)
				}
				r.dev.SetCable(true)
				r.until(true, time.Second)
				r.step()
				r.same(r.wire.take(), frames(sent, 60, 0))
				r.agrees(link(100, true))
				if s := r.dev.Stats(); s.TxLost != 0 {
					t.Errorf("%d frames were sent into nothing", s.TxLost)
				}
				r.onlyRx()
			})
		}
	}
}

// TestCSRClocks is case D56 through the whole driver: MDC is within its limit at every
// access, by both clauses, which the audit of the model sees.
func TestCSRClocks(t *testing.T) { onEach(t, testCSRClocks) }

func testCSRClocks(t *testing.T) {
	for _, mhz := range []float64{1, 20, 34.9, 35, 59.9, 60, 99.9, 100, 149.9, 150, 250, 299.9, 300, 499.9, 500, 800} {
		for _, clause := range []sim.PHYClause{sim.PHYClause22, sim.PHYClause45} {
			if clause == sim.PHYClause45 && !on(t).limits().clause45 {
				continue
			}
			hz := uint64(mhz * 1e6)
			r := newRig(t, rigConfig{sim: sim.Config{CSRClock: hz, PHY: &sim.PHYConfig{Clause: clause}}, opts: []stmmac.Option{
				stmmac.WithCSRClock(hz), stmmac.WithPHY(stmmac.PHY{Addr: stmmac.AnyPHY, Clause45: clause == sim.PHYClause45})}})
			r.until(true, time.Second)
			r.pass(2 * time.Second)
			r.flows(1)
			if err := r.mac.Renegotiate(); err != nil {
				t.Fatal(err)
			}
			r.until(true, time.Second)
		}
	}
}

// TestLoopback makes MACs receive what they send, whatever their link is: the cable
// is cut off meanwhile, and back as it was afterwards.
func TestLoopback(t *testing.T) {
	phy := withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{})
	fixed := func(l stmmac.Link) rigConfig {
		return rigConfig{sim: sim.Config{NoPHY: true}, opts: []stmmac.Option{stmmac.WithLink(l)}}
	}
	for _, tc := range []struct {
		name string
		rig  rigConfig
		do   func(*rig)
	}{
		{"PHY", phy, func(r *rig) { r.until(true, time.Second) }},
		{"PHY, half duplex", phy, func(r *rig) {
			r.dev.SetPartner(sim.Partner{Modes: sim.Mode10Half})
			r.pass(1200 * time.Millisecond)
		}},
		{"PHY, no cable", phy, func(r *rig) {
			r.dev.SetCable(false)
			r.until(false, 2*time.Second)
		}},
		{"fixed", fixed(gigabit), nil},
		{"fixed, pause", fixed(link(1000, true, true, true)), nil},
		{"fixed, half duplex", fixed(link(100, false)), nil},
		{"fixed, down", fixed(stmmac.Link{}), nil},
	} {
		for _, n := range []int{1, 2, 4} {
			if n > 1 && bytes.Contains([]byte(tc.name), []byte("half")) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d queues", tc.name, n), func(t *testing.T) {
				c := tc.rig
				c.opts = append([]stmmac.Option{}, c.opts...)
				r := newRig(t, queues(c, n))
				if tc.do != nil {
					tc.do(r)
				}
				was := r.mac.Link()
				back := func(seq uint64) {
					t.Helper()
					for q := range n {
						b := r.buf(frame(100, seq), 100)
						if k, err := r.mac.Tx(q).Send([]*pagepool.Buf{b}); k != 1 {
							t.Fatal(err)
						}
					}
					r.wire.deliver(frame(200, seq)) // nobody hears that
					got := r.recv(n + 1)
					if len(got) != n || !bytes.Equal(got[0], frame(100, seq)) {
						t.Fatalf("%d frames came back", len(got))
					}
					if l := r.wire.take(); len(l) != 0 {
						t.Errorf("%d frames went out on the cable", len(l))
					}
				}
				for i := range uint64(3) {
					if err := r.mac.SetLoopback(true); err != nil {
						t.Fatal(err)
					}
					if conf := r.reg(offConf); conf&confLM == 0 || conf&confDM == 0 {
						t.Errorf("MAC_Configuration %#x", conf)
					}
					if rx, tx := r.reg(offRxFlow), r.reg(offTxFlow); rx&1 != 0 || tx&2 != 0 {
						t.Errorf("pauses in loopback: %#x, %#x", rx, tx)
					}
					back(10 * i)
					// It survives a rebuild.
					if err := r.mac.SetMTU(t.Context(), 1400+int(i)); err != nil {
						t.Fatal(err)
					}
					back(10*i + 1)
					if l := r.mac.Link(); l != was {
						t.Errorf("link %v, was %v", l, was)
					}
					if err := r.mac.SetLoopback(false); err != nil {
						t.Fatal(err)
					}
					if conf := r.reg(offConf); was.Up && conf&confLM != 0 || !was.Up && conf&(confTE|confRE) != 0 {
						t.Errorf("MAC_Configuration %#x behind the loopback", conf)
					}
					if was.Up {
						r.flows(10*i + 2)
					}
				}
				r.onlyRx()
			})
		}
	}
}

// TestFixedLink holds what a MAC without a PHY does with the calls for its link.
func TestFixedLink(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{NoPHY: true}})
	for _, l := range []stmmac.Link{link(10, false), link(10, true), link(100, false), link(100, true, true, false), link(2500, true), {}, gigabit} {
		if err := r.mac.SetLink(l); err != nil {
			t.Fatal(err)
		}
		if got := r.mac.Link(); got != l || r.mac.LinkReason() != "" {
			t.Errorf("link %v, %q", got, r.mac.LinkReason())
		}
		if l.Up {
			r.flows(1)
		}
	}
	for mode, want := range map[stmmac.PauseMode][2]bool{stmmac.PauseOff: {}, stmmac.PauseRx: {true, false}, stmmac.PauseTx: {false, true}, stmmac.PauseRxTx: {true, true}} {
		if err := r.mac.SetPause(mode); err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{r.reg(offRxFlow)&1 != 0, r.reg(offTxFlow)&2 != 0}; got != want {
			t.Errorf("pause mode %d: RFE and TFE are %v", mode, got)
		}
	}
	was := r.mac.Link()
	for what, err := range map[string]error{
		"set link: 40":        r.mac.SetLink(link(40, true)),
		"set link: half":      r.mac.SetLink(link(1000, false)),
		"set pause: auto":     r.mac.SetPause(stmmac.PauseAuto),
		"set pause: 17":       r.mac.SetPause(17),
		"renegotiate":         r.mac.Renegotiate(),
		"set advertise":       r.mac.SetAdvertise(stmmac.Mode100Full),
		"set forced mode: 10": r.mac.SetForced(link(100, true)),
	} {
		mustFail(t, err, errors.ErrUnsupported)
		op, _, _ := bytes.Cut([]byte(what), []byte(":"))
		var e *stmmac.Error
		if !errors.As(err, &e) || e.Dev != "sim" || !bytes.HasPrefix([]byte(e.Op), op) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if l := r.mac.Link(); l != was {
		t.Errorf("link %v after calls that were refused, was %v", l, was)
	}
	r.flows(2)
}

// linkCalls are all calls that change the link.
func linkCalls(m *stmmac.MAC) map[string]func() error {
	return map[string]func() error{
		"set link":        func() error { return m.SetLink(gigabit) },
		"set pause":       func() error { return m.SetPause(stmmac.PauseOff) },
		"renegotiate":     m.Renegotiate,
		"set advertise":   func() error { return m.SetAdvertise(0) },
		"set forced mode": func() error { return m.SetForced(link(100, true)) },
		"set loopback":    func() error { return m.SetLoopback(true) },
		"set MTU":         func() error { return m.SetMTU(context.Background(), 1400) },
		"set rings":       func() error { return m.SetRings(context.Background(), 8, 8) },
	}
}

// TestLinkCallsAtTheEnd makes all calls for the link on MACs that were closed, failed,
// or whose device is gone.
func TestLinkCallsAtTheEnd(t *testing.T) {
	for _, phy := range []bool{false, true} {
		config := func() rigConfig {
			c := rigConfig{wrap: polled}
			if phy {
				return withPHY(c, sim.PHYConfig{}, stmmac.PHY{})
			}
			return c
		}
		r := newRig(t, config())
		if err := r.mac.Close(); err != nil {
			t.Fatal(err)
		}
		for op, call := range linkCalls(r.mac) {
			err := call()
			mustFail(t, err, stmmac.ErrClosed, "sim", op)
		}
		for range r.mac.Links(t.Context()) { // it ends by itself
		}

		c := config()
		c.opts = append(c.opts, stmmac.WithRecovery(stmmac.Recovery{}))
		r = newRig(t, c)
		r.failOnce(func(n int, write bool) bool { return !write && n == 16 })
		links := make(chan stmmac.Link, 10)
		go func() {
			for l := range r.mac.Links(t.Context()) {
				links <- l
			}
			close(links)
		}()
		if !phy {
			if l := <-links; l != gigabit {
				t.Errorf("link %v", l)
			}
		}
		r.send(frame(60, 1))
		r.pass(200 * time.Millisecond)
		r.mac.SetPause(stmmac.PauseOff) // nothing turns it on again
		if conf := r.reg(offConf); conf&(confTE|confRE) != 0 {
			t.Errorf("MAC_Configuration %#x of a MAC that is down", conf)
		}
		for _, call := range linkCalls(r.mac) {
			mustFail(t, call(), stmmac.ErrFatalBus)
		}
		last := stmmac.Link{Up: true}
		for last.Up {
			last = <-links
		}
		if r.mac.Link().Up || r.mac.LinkReason() == "" {
			t.Errorf("link %v, %q", r.mac.Link(), r.mac.LinkReason())
		}

		r = newRig(t, config())
		r.dev.Close()
		for op, call := range linkCalls(r.mac) {
			err := call()
			if !errors.Is(err, stmmac.ErrGone) && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s of a device that is gone: %v", op, err)
			}
		}
		r.pass(1200 * time.Millisecond)
		mustFail(t, r.mac.Err(), stmmac.ErrGone)
	}
}

// TestChangeCanceled ends changes by their context while the device does not obey.
func TestChangeCanceled(t *testing.T) {
	r := newRig(t, rigConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mustFail(t, r.mac.SetMTU(ctx, 1400), context.Canceled, "set MTU")
	if n := r.mac.MTU(); n != 1500 || r.mac.Err() != nil {
		t.Fatalf("MTU %d, %v", n, r.mac.Err())
	}
	r.flows(1)
	mustFail(t, r.mac.SetMTU(ctx, 0), os.ErrInvalid)
}
