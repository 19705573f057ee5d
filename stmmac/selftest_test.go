package stmmac_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// selfTested turns the self-test on.
var selfTested = with(func(c *stmmac.Config) { c.SelfTest = true })

// passer is a program that lets all pass and counts.
type passer struct{ seen int }

func (p *passer) Run(bufs []*pagepool.Buf, v []stmmac.Verdict) {
	p.seen += len(bufs)
	for i := range v {
		v[i] = stmmac.VerdictPass
	}
}

// untouched fails if anything of the self-test is left.
func (r *rig) untouched() {
	r.Helper()
	for name, v := range r.mac.Counters() {
		if v != 0 {
			r.Errorf("%s is %d after Open", name, v)
		}
	}
	rx, tx := r.mac.NumQueues()
	for q := range rx {
		for name, v := range r.mac.Rx(q).Stats().All() {
			if v != 0 {
				r.Errorf("receive queue %d: %s is %d after Open", q, name, v)
			}
		}
	}
	for q := range tx {
		for name, v := range r.mac.Tx(q).Stats().All() {
			if v != 0 {
				r.Errorf("transmit queue %d: %s is %d after Open", q, name, v)
			}
		}
		if r.mac.Tx(q).Inflight() != 0 || r.mac.Tx(q).Reap(make([]*pagepool.Buf, 8)) != 0 {
			r.Errorf("transmit queue %d holds something after Open", q)
		}
	}
	if got := r.wire.take(); len(got) != 0 {
		r.Errorf("%d frames of the self-test are on the wire", len(got))
	}
	r.onlyRx()
}

// TestD37 opens MACs whose transmit checksum engine is right, wrong, or not there
// though the device says so: no wrong checksum leaves, and nothing of the
// self-test is left.
func TestD37(t *testing.T) { onEach(t, testD37) }

func testD37(t *testing.T) {
	engines := []struct {
		name   string
		sim    sim.Config
		wrap   func(*sim.Device) stmmac.Device
		off    bool // by the configuration, as for a device that is known for it
		device bool // does the checksums in the end
		misuse bool // what the self-test does to find out
	}{
		{name: "right", device: true},
		{name: "every second is wrong", sim: sim.Config{Faults: sim.Faults{TxChecksumCorrupts: 2}}},
		{name: "every fourth is wrong", sim: sim.Config{Faults: sim.Faults{TxChecksumCorrupts: 4}}},
		{name: "missing", sim: sim.Config{Faults: sim.Faults{TxChecksumMissing: true}}},
		{name: "its feature bit lies", sim: sim.Config{NoTxChecksum: true}, misuse: true,
			wrap: claims(t, txEngine)},
		{name: "known to be wrong", sim: sim.Config{Faults: sim.Faults{TxChecksumCorrupts: 1}}, off: true},
		{name: "no feature", sim: sim.Config{NoTxChecksum: true}},
		{name: "no engine at all", sim: sim.Config{NoTxChecksum: true, NoRxChecksum: true}},
	}
	prog := &passer{}
	for _, e := range engines {
		for _, o := range []struct {
			name string
			n    int // queues, or as many as there are
			opts []stmmac.Option
			tags bool // that the device takes off
		}{
			{name: "1 queue", n: 1}, {name: "2 queues", n: 2}, {name: "4 queues", n: 4},
			{name: "completions", n: 2, opts: []stmmac.Option{stmmac.WithTxCompletions()}},
			{name: "program", n: 1, opts: []stmmac.Option{stmmac.WithProgram(prog)}},
			{name: "MTU 9000", n: 1, opts: []stmmac.Option{stmmac.WithMTU(9000)}},
			{name: "choosy", n: 4, opts: []stmmac.Option{with(choosy)}},
			{name: "rings of 2", n: 2, opts: []stmmac.Option{stmmac.WithRings(2, 2)}},
			{name: "rings of 3, completions", n: 1, opts: []stmmac.Option{stmmac.WithRings(3, 3), stmmac.WithTxCompletions()}},
			{name: "link down", n: 1, opts: []stmmac.Option{stmmac.WithLink(stmmac.Link{})}},
			{name: "half duplex", n: 1, opts: []stmmac.Option{stmmac.WithLink(stmmac.Link{Up: true, Speed: 100})}},
			{name: "tags", n: 4, opts: []stmmac.Option{with(doubleTags)}, tags: true},
			{name: "FCS taken off", n: 1, opts: []stmmac.Option{with(func(c *stmmac.Config) { c.StripFCS = true })}},
		} {
			if o.tags && !on(t).limits().tags {
				continue
			}
			o.n = min(o.n, on(t).limits().queues)
			t.Run(e.name+", "+o.name, func(t *testing.T) {
				*prog = passer{}
				c := queued(o.n, rigConfig{sim: e.sim, wrap: e.wrap})
				c.sim.TxFIFO, c.sim.RxFIFO = 1<<16, 1<<16
				c.opts = append(append(c.opts, o.opts...), selfTested)
				if e.off {
					c.opts = append(c.opts, stmmac.WithChecksums(true, false))
				}
				r := newRig(t, c)
				if e.misuse {
					r.tolerate = []sim.ViolationKind{sim.ChecksumMisuse}
					if n := len(r.dev.Audit()); n != 1 {
						t.Errorf("the self-test is found in %d violations", n)
					}
				}
				r.untouched()
				if prog.seen != 0 {
					t.Errorf("the program saw %d frames of the self-test", prog.seen)
				}
				if took := r.clock.Now(); took > 100*time.Millisecond {
					t.Errorf("Open took %v", took)
				}
				if !r.mac.Link().Up {
					r.must(r.mac.SetLink(gigabit))
				}
				r.clean(o.n, e.device)
				r.must(r.mac.SetMTU(t.Context(), 1400))
				r.clean(o.n, e.device)
				// its own frames come in and others do not, as before
				r.wire.deliver(to(ownMAC, 1), to(otherMAC, 2))
				r.step()
				want := 2
				if o.name == "choosy" {
					want = 1
				}
				if got := r.recv(4); len(got) != want {
					t.Errorf("%d frames came in, want %d", len(got), want)
				}
				r.onlyRx()
			})
		}
	}
}

// clean sends frames of all kinds and fails unless their checksums are right on
// the wire, and the device, or nobody but the driver, has made them.
func (r *rig) clean(queues int, device bool) {
	r.Helper()
	before := r.txStats()
	const n = 24
	for i := range n {
		f := ofLen(i, 120+i, uint64(i))
		r.leaves(i%queues, r.asked(f, 1<<12), fixed(f), "frame %d", i)
		b := make([]*pagepool.Buf, 4)
		r.pool.FreeBatch(b[:r.mac.Tx(i%queues).Reap(b)])
	}
	after := r.txStats()
	if by := after["csum_device"] - before["csum_device"]; device && by != n || !device && by != 0 || after["csum_none"] != 0 {
		r.Errorf("the device did %d of %d checksums", by, n)
	}
}

// TestSelfTestShort opens MACs with MTUs that most frames of the self-test are too long
// for: engines that are right are used, and engines that are wrong are found.
func TestSelfTestShort(t *testing.T) {
	for _, mtu := range []int{46, 47, 60, 68, 72, 73, 90, 100, 124, 125, 140, 200} {
		for _, bad := range []bool{false, true} {
			t.Run(fmt.Sprintf("MTU %d, bad %v", mtu, bad), func(t *testing.T) {
				c := queued(1, rigConfig{opts: []stmmac.Option{selfTested, stmmac.WithMTU(mtu)}})
				if bad {
					c.sim.Faults.TxChecksumMissing = true
					c.sim.Faults.RxChecksumLies = sim.RxChecksumStaleGood
				}
				r := newRig(t, c)
				r.untouched()
				f := ofLen(0, mtu+14, 1)
				r.leaves(0, r.asked(f, 1<<12), fixed(f), "a frame of the longest length")
				if n := r.txStats()["csum_device"]; (n != 0) == bad {
					t.Errorf("the device did %d checksums", n)
				}
				r.dev.SetFaults(func(f *sim.Faults) { f.RxChecksumLies = sim.RxChecksumHonest })
				r.wire.deliver(fixed(f))
				b := r.takeOne(0)
				if got := verdict(b); (got == "good") == bad {
					t.Errorf("verdict %s", got)
				}
				r.pool.Free(b)
				r.onlyRx()
			})
		}
	}
}

// TestSelfTestSmallFIFO has a transmit FIFO that leaves less than the shortest frame to
// the checksum engine: nothing of it can be tried, and it is left alone.
func TestSelfTestSmallFIFO(t *testing.T) {
	c := queued(1, rigConfig{opts: []stmmac.Option{selfTested, stmmac.WithMTU(100)}})
	c.sim.TxFIFO = 256
	r := newRig(t, c)
	r.untouched()
	for n := 42; n <= 114; n++ { // from an empty datagram on
		f := ofLen(0, n, 1)
		r.leaves(0, r.asked(f, 1<<12), fixed(f), "%d bytes", n)
	}
	if n := r.txStats()["csum_device"]; n != 0 {
		t.Errorf("the device did %d checksums", n)
	}
}

// TestSelfTestRx: a receive engine that says nothing, or the wrong thing, is left
// alone from then on; the transmit engine is not blamed for it.
func TestSelfTestRx(t *testing.T) {
	for _, lie := range []sim.RxChecksumLies{sim.RxChecksumHonest, sim.RxChecksumStaleError, sim.RxChecksumStaleGood, sim.RxChecksumBypassError} {
		for _, n := range []int{1, 2, 4} {
			r := newRig(t, queued(n, rigConfig{sim: sim.Config{Faults: sim.Faults{RxChecksumLies: lie}}, opts: []stmmac.Option{selfTested}}))
			r.untouched()
			r.clean(n, true)
			r.dev.SetFaults(func(f *sim.Faults) { f.RxChecksumLies = sim.RxChecksumHonest })
			r.wire.deliver(fixed(ofLen(0, 100, 1)))
			b := r.takeOne(0)
			want := "unknown"
			if lie == sim.RxChecksumHonest {
				want = "good"
			}
			if got := verdict(b); got != want {
				t.Errorf("lie %d: %s, want %s", lie, got, want)
			}
			r.pool.Free(b)
			r.onlyRx()
		}
	}
}

// TestSelfTestNothingReturns: when no frame comes back the MAC opens without the
// engines, in bounded time.
func TestSelfTestNothingReturns(t *testing.T) {
	for name, faults := range map[string]sim.Faults{
		"receive errors":  {RxError: func(uint64) r4.RDES3 { return r4.RxCE }},
		"nothing is sent": {TxNeverCompletes: true},
	} {
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d queues", name, n), func(t *testing.T) {
				r := newRig(t, queued(n, rigConfig{sim: sim.Config{Faults: faults}, opts: []stmmac.Option{selfTested}}))
				if took := r.clock.Now(); took > 300*time.Millisecond {
					t.Errorf("Open took %v", took)
				}
				r.untouched()
				r.dev.SetFaults(func(f *sim.Faults) { *f = sim.Faults{} })
				r.clean(n, false)
				r.flows(1)
				r.onlyRx()
			})
		}
	}
}

// TestSelfTestShortPool: without a buffer for its frames there is no self-test,
// and so no engine, and the MAC works all the same.
func TestSelfTestShortPool(t *testing.T) {
	r := newRig(t, rigConfig{bufs: 8, opts: []stmmac.Option{stmmac.WithRings(16, 16), selfTested}})
	r.wire.deliver(fixed(ofLen(0, 100, 1)))
	b := r.takeOne(0)
	if got := verdict(b); got != "unknown" {
		t.Errorf("%s", got)
	}
	f := ofLen(1, 130, 2)
	b.SetData(f)
	b.Flags = pagepool.TxCsum
	r.leaves(0, b, fixed(f), "its buffer")
	r.counted(0, 1, 0)
	r.onlyRx()
}

// TestSelfTestCancelled: Open ends when its context does, with nothing left.
func TestSelfTestCancelled(t *testing.T) {
	w, clock := &testWire{}, sim.NewManualClock()
	d, err := sim.New(sim.Config{Inline: true, Clock: clock, Faults: sim.Faults{TxNeverCompletes: true}}, w)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pagepool.New(d, 64)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	clock.AfterFunc(selfTestBegins, cancel)
	_, err = stmmac.Open(ctx, d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(rigClock{clock, d}),
		stmmac.WithRings(8, 8), stmmac.WithPool(pool))
	mustFail(t, err, context.Canceled, "open")
	if n := pool.InUse(); n != 0 {
		t.Errorf("%d buffers in use: %v", n, pool.Holders())
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	for _, v := range d.Audit() {
		t.Error(v)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// selfTestBegins is a time at which nothing but the self-test makes Open wait.
const selfTestBegins = 5 * time.Millisecond

// TestSelfTestOnBusyWire opens a MAC into traffic: frames of the wire are no
// frames of the self-test, and those that can wait are received after it.
func TestSelfTestOnBusyWire(t *testing.T) {
	for _, elastic := range []bool{false, true} {
		for _, n := range []int{1, 4} {
			r := newRig(t, queued(n, rigConfig{opts: []stmmac.Option{selfTested}}))
			r.must(r.mac.Close())
			r.wire.elastic = elastic
			list := frames(20, 139, 0)
			r.wire.deliver(list...)
			r.open()
			got := r.recv(20)
			if elastic {
				r.same(got, list)
			} else if len(got) > 0 && !slices.EqualFunc(got, list[len(list)-len(got):], slices.Equal) {
				t.Error("other frames came")
			}
			r.clean(n, true)
			r.onlyRx()
		}
	}
}
