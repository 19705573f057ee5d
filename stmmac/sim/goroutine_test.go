package sim

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestDoorbellDoesNotWait: tails, status and enables are reached while the engines
// hold their lock.
func TestDoorbellDoesNotWait(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		g := newRig(t, withConfig(func(c *Config) { c.Inline, c.NoAudit = false, quiet }))
		g.open()
		g.d.Model.mu.Lock()
		done := make(chan struct{})
		go func() {
			defer close(done)
			r4.DMACHRxDescTailPointer.Store(g.ch(0), uint32(g.rxBase))
			r4.DMACHTxDescTailPointer.Store(g.ch(0), uint32(g.txBase))
			r4.DMACHTxDescTailPointer.Load(g.ch(0))
			r4.DMACHStatus.Store(g.ch(0), r4.DMACHStatus.Load(g.ch(0)))
			r4.DMACHInterruptEnable.Store(g.ch(0), r4.NIE|r4.TIE)
			r4.DMAInterruptStatus.Load(g.r)
			g.d.RaiseStatus(0, r4.TI)
		}()
		<-done // a deadlock would end the test by its timeout
		g.d.Model.mu.Unlock()
	}
}

// station is a driver in a goroutine of its own, with a device at one end of a cable.
type station struct {
	*rig
	ctx context.Context
}

// newStation opens a device that is not inline at the end w of a cable.
func newStation(t testing.TB, ctx context.Context, w Wire, quiet bool) *station {
	g := newRig(t, withRing(64), withConfig(func(c *Config) { c.Inline, c.NoAudit, c.RxFIFO = false, quiet, 256<<10 }))
	g.d.Model.mu.Lock()
	g.d.Model.wire = w
	g.d.Model.mu.Unlock()
	w.Notify(g.d.kick)
	g.open()
	r4.DMACHInterruptEnable.Store(g.ch(0), r4.NIE|r4.TIE|r4.RIE)
	return &station{g, ctx}
}

// wait blocks until an interrupt, if there is nothing to do after look cleared the
// status.
func (s *station) wait(look func() bool) bool {
	s.status()
	// The store and the load order what the device does from here on.
	r4.DMACHStatus.Load(s.ch(0))
	if look() {
		return true
	}
	v, err := s.d.Interrupt(0)
	if err == nil {
		_, err = v.Wait(s.ctx)
	}
	return err == nil
}

// echo sends every frame back; source counts to n with a window of outstanding frames.
func (s *station) echo(n int) error {
	for k := 0; k < n; {
		f, _, ok := s.recv()
		if !ok {
			if !s.wait(func() bool { return s.ready() }) {
				return s.ctx.Err()
			}
			continue
		}
		for s.txTail-s.txHead >= s.n-1 {
			if m, _ := s.reap(); m == 0 && !s.wait(func() bool { return s.sent() }) {
				return s.ctx.Err()
			}
		}
		s.send(f)
		s.post(1)
		k++
	}
	for s.txTail != s.txHead {
		if m, _ := s.reap(); m == 0 && !s.wait(func() bool { return s.sent() }) {
			return s.ctx.Err()
		}
	}
	return nil
}

func (s *station) ready() bool {
	return s.rxHead != s.rxTail && s.get(s.rxRing, s.rxHead)[3]&uint32(r4.RxOWN) == 0
}

func (s *station) sent() bool {
	return s.txHead != s.txTail && s.get(s.txRing, s.txHead)[3]&uint32(r4.TxOWN) == 0
}

// TestTwoDevices: two models on their goroutines, two drivers on theirs, a cable
// between them; every frame comes back, in order and whole.
func TestTwoDevices(t *testing.T) {
	n := 200_000
	if !long() {
		n /= 100
		t.Logf("%d frames; GOSTMMAC_LONG=1 runs 100 times as many", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	wa, wb := NewPair(128)
	a, b := newStation(t, ctx, wa, false), newStation(t, ctx, wb, false)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := b.echo(n); err != nil {
			t.Error(err)
		}
	}()
	frame := func(k int) []byte { return testFrame(60+k*13%1400, byte(k)) }
	const window = 40
	for sent, got := 0, 0; got < n; {
		for sent < n && sent-got < window && a.txTail-a.txHead < a.n-1 {
			a.send(frame(sent))
			sent++
		}
		a.reap()
		f, _, ok := a.recv()
		if !ok {
			if !a.wait(func() bool { return a.ready() || a.sent() && sent < n && sent-got < window }) {
				t.Fatal(ctx.Err())
			}
			continue
		}
		if !bytes.Equal(f, frame(got)) {
			t.Fatalf("frame %d differs", got)
		}
		got++
		a.post(1)
	}
	wg.Wait()
	a.clean()
	b.clean()
	for _, s := range []*station{a, b} {
		if x := s.d.Stats(); x.RxFrames != uint64(n) || x.TxFrames != uint64(n) || x.RxOverflow != 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestWallClock: a model that is not inline has the machine's clock.
func TestWallClock(t *testing.T) {
	w := &testWire{}
	d, err := New(Config{OwnMemory: true}, w)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	fired := make(chan struct{})
	stop := d.Clock().AfterFunc(0, func() { close(fired) })
	<-fired
	if stop() {
		t.Error("stopped after it ran")
	}
	if d.Clock().Now() < 0 {
		t.Error("time before the start")
	}
}

// BenchmarkModelGoroutine is the throughput of a device on its own goroutine: one
// driver goroutine sends as fast as it reaps.
func BenchmarkModelGoroutine(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"tx/60", 60}, {"tx/1514", 1514}} {
		b.Run(c.name, func(b *testing.B) {
			g := newRig(b, withRing(512), withSlot(2048+64), withConfig(func(c *Config) { c.Inline, c.NoAudit = false, true }))
			g.d.Model.mu.Lock()
			g.d.Model.wire = &sinkWire{}
			g.d.Model.mu.Unlock()
			g.open()
			f := testFrame(c.size, 1)
			b.SetBytes(int64(c.size))
			b.ResetTimer()
			for done := 0; done < b.N; {
				for range min(32, g.n-1-(g.txTail-g.txHead)) {
					g.queue(false, f)
				}
				g.ring()
				k, _ := g.reap()
				done += k
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpps")
		})
	}
}
