package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// sideRing is a descriptor list of another channel than 0, of n descriptors with one
// buffer each.
type sideRing struct {
	ring, mem  []byte
	base, iova uint64
	n, slot    int
	head, tail int
}

func (g *rig) side(n, slot int) *sideRing {
	g.t.Helper()
	alloc := func(n int) ([]byte, uint64) {
		mem, iova, err := g.d.AllocDMA(n, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		g.t.Cleanup(func() { g.d.UnmapDMA(iova, n) })
		return mem, iova
	}
	s := &sideRing{n: n, slot: slot}
	s.ring, s.base = alloc(n * 16)
	s.mem, s.iova = alloc(n * slot)
	return s
}

func (s *sideRing) put(i int, w [4]uint32) {
	b := s.ring[i%s.n*16:]
	for k, v := range w {
		binary.NativeEndian.PutUint32(b[4*k:], v)
	}
	barrier.DMAWrite()
}

func (s *sideRing) word3(i int) uint32 { return binary.NativeEndian.Uint32(s.ring[i%s.n*16+12:]) }

// queue writes the descriptors of a frame that is cut into pieces.
func (s *sideRing) queue(f []byte, pieces int) {
	size := (len(f) + pieces - 1) / pieces
	for k, p := range split(f, size) {
		i := s.tail
		copy(s.mem[i%s.n*s.slot:], p)
		a := s.iova + uint64(i%s.n*s.slot)
		d3 := uint32(r4.TxOWN)
		if k == 0 {
			d3 |= txFD | uint32(len(f))
		}
		if k == pieces-1 {
			d3 |= txLD
		}
		s.put(i, [4]uint32{uint32(a), uint32(a >> 32), uint32(len(p)), d3})
		s.tail++
	}
}

// txQueues opens channels 0 to n-1 for transmission with a ring each and the
// scheduler as given.
func txQueues(t *testing.T, n int, alg uint32, weights []uint32, opts ...rigOption) (*rig, []*sideRing) {
	t.Helper()
	g := newRig(t, append([]rigOption{withConfig(func(c *Config) { c.TxQueues = n })}, opts...)...)
	rings := make([]*sideRing, n)
	for c := range rings {
		rings[c] = g.side(128, 2048)
	}
	g.openTx(rings, alg, weights)
	return g, rings
}

// openTx resets the device and starts it with empty transmit rings.
func (g *rig) openTx(rings []*sideRing, alg uint32, weights []uint32) {
	g.t.Helper()
	g.setup()
	r4.MTLOperationMode.Store(g.r, r4.SCHALG.Of(alg))
	for c, s := range rings {
		s.head, s.tail = 0, 0
		ch := g.ch(c)
		r4.DMACHTxDescListHAddr.Store(ch, uint32(s.base>>32))
		r4.DMACHTxDescListAddr.Store(ch, uint32(s.base))
		r4.DMACHTxDescTailPointer.Store(ch, uint32(s.base))
		r4.DMACHTxDescRingLength.Store(ch, uint32(s.n-1))
		r4.MTLTxQOperationMode.Store(g.mtl(c), r4.TSF|r4.TXQEN.Of(r4.TXQENEnabled)|r4.TQS.Of(uint32(16384/len(rings)/256-1)))
		r4.MTLTxQQuantumWeight.Store(g.mtl(c), weights[c])
		r4.DMACHTxControl.Update(ch, 0, r4.ST)
	}
	r4.MACConfiguration.Update(g.r, 0, r4.TE|r4.RE)
}

func (g *rig) ringSide(c int, s *sideRing) {
	r4.DMACHTxDescTailPointer.Store(g.ch(c), uint32(s.base)+uint32(s.tail%s.n*16))
}

// order tells of the frames on the wire by queue, which stands behind the header.
func (g *rig) order() string {
	var b strings.Builder
	for _, f := range g.w.tx {
		fmt.Fprint(&b, f.Data[headerLen])
	}
	return b.String()
}

func queueFrame(c, n int) []byte {
	f := testFrame(n, 0)
	f[headerLen] = byte(c)
	return f
}

// TestSchedulerOrder: the exact order of frames, whatever work a step may do and
// however many descriptors a frame has.
func TestSchedulerOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		alg     uint32
		weights []uint32
		sizes   [][]int // of the frames of each queue
		want    string
	}{
		{"SP", r4.SCHALGSP, []uint32{0, 0, 0}, [][]int{{60, 60}, {60}, {1500, 60}}, "22100"},
		{"WRR equal", r4.SCHALGWRR, []uint32{1, 1, 1}, [][]int{{60, 60, 60}, {1500, 1500}, {60, 60, 60}}, "01201202"},
		{"WRR by weight", r4.SCHALGWRR, []uint32{1, 3, 2}, [][]int{{60, 60, 60}, {60, 60, 60, 60, 60}, {60, 60, 60}}, "01112201120"},
		{"WRR weight 0 is 1", r4.SCHALGWRR, []uint32{0, 2}, [][]int{{60, 60}, {60, 60, 60}}, "01101"},
		{"WRR weight beyond 100", r4.SCHALGWRR, []uint32{1, 200}, [][]int{{60, 60}, ints(60, 101)}, "0" + strings.Repeat("1", 100) + "01"},
		// 1000 bytes each turn: one long frame or several short ones, and what is
		// left over counts in the next turn.
		{"DWRR", r4.SCHALGDWRR, []uint32{1000, 1000}, [][]int{{1000, 1000}, {300, 300, 300, 300, 300, 300}}, "0111011" + "1"},
		{"DWRR saves up", r4.SCHALGDWRR, []uint32{500, 1000}, [][]int{{1500, 60}, {1000, 1000, 1000, 1000}}, "110" + "1" + "01"},
		{"DWRR small quantum", r4.SCHALGDWRR, []uint32{1, 3}, [][]int{{100, 100}, {300, 300, 300}}, "01011"},
		{"DWRR nothing saved when empty", r4.SCHALGDWRR, []uint32{4000, 100}, [][]int{{60}, {60, 60}}, "011"},
		// The number is the factor of the length: the larger gets less.
		{"WFQ equal", r4.SCHALGWFQ, []uint32{1, 1}, [][]int{{100, 100, 100}, {300}}, "0001"},
		{"WFQ by weight", r4.SCHALGWFQ, []uint32{1, 2}, [][]int{{100, 100, 100, 100}, {100, 100}}, "001001"},
		{"WFQ weight 0 takes all", r4.SCHALGWFQ, []uint32{1, 0}, [][]int{{60, 60}, {1500, 1500}}, "1100"},
	} {
		for _, budget := range []int{1 << 20, 1, 2, 7} {
			for _, pieces := range []int{1, 3} {
				opts := []rigOption{}
				if budget == 1<<20 && pieces == 1 {
					opts = append(opts, withConfig(func(c *Config) { c.NoAudit = true })) // bursts
				}
				g, rings := txQueues(t, len(c.weights), c.alg, c.weights, opts...)
				for q, sizes := range c.sizes {
					for _, n := range sizes {
						if len(sizes) > 100 {
							rings[q].queue(queueFrame(q, n), 1)
							continue
						}
						rings[q].queue(queueFrame(q, n), pieces)
					}
					g.ringSide(q, rings[q])
				}
				for range 10000 {
					if g.d.Step(budget) == 0 {
						break
					}
				}
				if got := g.order(); got != c.want {
					t.Errorf("%s, steps of %d, %d pieces: %s, want %s", c.name, budget, pieces, got, c.want)
				}
				for q, s := range rings {
					for i := range s.tail {
						if s.word3(i)&uint32(r4.TxOWN) != 0 {
							t.Fatalf("%s: descriptor %d of queue %d is not back", c.name, i, q)
						}
					}
				}
			}
		}
	}
}

func ints(v, n int) []int { return slices.Repeat([]int{v}, n) }

// TestSchedulerShares: over many frames of mixed lengths the bytes of busy queues are
// as the registers say, within a frame and a quantum.
func TestSchedulerShares(t *testing.T) {
	lengths := [][]int{{60, 1500, 200}, {1500}, {64, 65, 66, 900}, {300}}
	for _, c := range []struct {
		name   string
		alg    uint32
		regs   []uint32
		shares []float64
	}{
		{"DWRR", r4.SCHALGDWRR, []uint32{1000, 2000, 3000, 4000}, []float64{1, 2, 3, 4}},
		{"DWRR odd", r4.SCHALGDWRR, []uint32{333, 1000, 2, 777}, []float64{333, 1000, 2, 777}},
		{"WFQ", r4.SCHALGWFQ, []uint32{12, 6, 4, 3}, []float64{1, 2, 3, 4}},
		{"WFQ equal", r4.SCHALGWFQ, []uint32{100, 100, 100, 100}, []float64{1, 1, 1, 1}},
	} {
		g, rings := txQueues(t, 4, c.alg, c.regs)
		next := make([]int, 4)
		sent := make([]float64, 4)
		total := 0.0
		for range 300 {
			for q, s := range rings {
				for s.head < s.tail && s.word3(s.head)&uint32(r4.TxOWN) == 0 {
					s.head++
				}
				for s.tail-s.head < 100 { // never empty
					s.queue(queueFrame(q, lengths[q][next[q]%len(lengths[q])]), 1)
					next[q]++
				}
				g.ringSide(q, s)
			}
			g.d.Step(20)
			for _, f := range g.w.tx {
				q := f.Data[headerLen]
				sent[q] += float64(len(f.Data))
				total += float64(len(f.Data))
			}
			g.w.tx = g.w.tx[:0]
		}
		sum := 0.0
		for _, s := range c.shares {
			sum += s
		}
		for q, s := range c.shares {
			if want := total * s / sum; sent[q] < want-8000 || sent[q] > want+8000 {
				t.Errorf("%s: queue %d sent %.0f of %.0f bytes, want %.0f", c.name, q, sent[q], total, want)
			}
		}
		if total < 500_000 {
			t.Errorf("%s: only %.0f bytes sent", c.name, total)
		}
		g.clean()
	}
}

// TestSchedulerIdle: a queue that had nothing to send has saved nothing up.
func TestSchedulerIdle(t *testing.T) {
	for _, c := range []struct {
		alg     uint32
		weights []uint32
		want    string
	}{
		// Queue 0 has 940 bytes left when it runs dry, and none when it goes on.
		{r4.SCHALGDWRR, []uint32{1000, 1000}, "0" + "11001100"},
		// Queue 0 ended at 60 and queue 1 at 8000: both go on from there.
		{r4.SCHALGWFQ, []uint32{1, 1}, "0" + "11111111" + "01010101"},
	} {
		g, rings := txQueues(t, 2, c.alg, c.weights)
		add := func(q, n, size int) {
			for range n {
				rings[q].queue(queueFrame(q, size), 1)
			}
			g.ringSide(q, rings[q])
		}
		add(0, 1, 60)
		g.step()
		if c.alg == r4.SCHALGWFQ {
			add(1, 8, 1000)
			g.step()
			add(1, 4, 1000)
			add(0, 4, 1000)
		} else {
			add(1, 4, 400)
			add(0, 4, 400)
		}
		g.step()
		if got := g.order(); got != c.want {
			t.Errorf("SCHALG %d: %s, want %s", c.alg, got, c.want)
		}
	}
}

// TestSchedulerReset: a reset ends the turn that was under way.
func TestSchedulerReset(t *testing.T) {
	weights := []uint32{3, 1}
	g, rings := txQueues(t, 2, r4.SCHALGWRR, weights)
	load := func() {
		for q, s := range rings {
			for range 4 {
				s.queue(queueFrame(q, 60), 1)
			}
			g.ringSide(q, s)
		}
	}
	load()
	g.d.Step(1)
	if got := g.order(); got != "0" {
		t.Fatalf("%q in one unit of work", got)
	}
	g.w.tx = nil
	g.openTx(rings, r4.SCHALGWRR, weights)
	load()
	g.step()
	if got := g.order(); got != "00010111" {
		t.Fatalf("%q after the reset", got)
	}
}

// balkyWire refuses every other frame.
type balkyWire struct {
	*testWire
	n int
}

func (w *balkyWire) Transmit(f Frame) bool {
	w.n++
	return w.n%2 == 0 && w.testWire.Transmit(f)
}

// TestSchedulerRefused: the wire gets room while a step runs, and the order stays.
func TestSchedulerRefused(t *testing.T) {
	for alg, want := range map[uint32]string{r4.SCHALGSP: "2222111100" + "00", r4.SCHALGWRR: "012012012012",
		r4.SCHALGWFQ: "012012012012", r4.SCHALGDWRR: "012012012012"} {
		weight := uint32(1)
		if alg == r4.SCHALGDWRR {
			weight = 60
		}
		g, rings := txQueues(t, 3, alg, []uint32{weight, weight, weight})
		g.d.Model.wire = &balkyWire{testWire: g.w}
		for q, s := range rings {
			for range 4 {
				s.queue(queueFrame(q, 60), 1)
			}
			g.ringSide(q, s)
		}
		for range 100 {
			g.step()
		}
		if got := g.order(); got != want {
			t.Errorf("SCHALG %d: %s, want %s", alg, got, want)
		}
	}
}

// TestSchedulerBlocked: a queue that may not send does not hold the others up; a MAC
// that may not send does not disturb the order.
func TestSchedulerBlocked(t *testing.T) {
	for _, alg := range []uint32{r4.SCHALGSP, r4.SCHALGWRR, r4.SCHALGDWRR, r4.SCHALGWFQ} {
		g, rings := txQueues(t, 3, alg, []uint32{100, 100, 100})
		r4.MTLTxQOperationMode.Update(g.mtl(2), r4.TXQEN.Mask(), 0)
		for q, s := range rings {
			s.queue(queueFrame(q, 60), 1)
			g.ringSide(q, s)
		}
		g.step()
		if got := g.order(); len(got) != 2 || strings.Contains(got, "2") {
			t.Errorf("SCHALG %d: %q with queue 2 disabled", alg, got)
		}
		g.w.tx = nil
		r4.MTLTxQOperationMode.Update(g.mtl(2), 0, r4.TXQEN.Of(2))
		g.step()
		if got := g.order(); got != "2" {
			t.Errorf("SCHALG %d: %q when queue 2 is enabled again", alg, got)
		}
		g.w.tx = nil

		// The wire takes one frame at a time: the order is that of a free wire.
		load := func(g *rig, rings []*sideRing) {
			for q, s := range rings {
				for range 4 {
					s.queue(queueFrame(q, 60+100*q), 1)
				}
				g.ringSide(q, s)
			}
		}
		free, fr := txQueues(t, 3, alg, []uint32{2, 3, 4})
		load(free, fr)
		free.step()
		slow, sr := txQueues(t, 3, alg, []uint32{2, 3, 4})
		w := &oneWire{testWire: slow.w}
		slow.d.Model.wire = w
		load(slow, sr)
		for range 40 {
			w.room = 1
			slow.d.Step(3)
		}
		if a, b := free.order(), slow.order(); a != b || len(a) != 12 {
			t.Errorf("SCHALG %d: %s on a free wire, %s on a slow one", alg, a, b)
		}
	}
}

// oneWire has room for so many frames.
type oneWire struct {
	*testWire
	room int
}

func (w *oneWire) Transmit(f Frame) bool {
	if w.room == 0 {
		return false
	}
	w.room--
	return w.testWire.Transmit(f)
}

// TestSchedulerAudit: weights that the algorithm does not have.
func TestSchedulerAudit(t *testing.T) {
	for _, c := range []struct {
		alg, w uint32
		bad    bool
	}{
		{r4.SCHALGWRR, 1, false}, {r4.SCHALGWRR, 100, false}, {r4.SCHALGWRR, 101, true},
		{r4.SCHALGDWRR, 0, true}, {r4.SCHALGDWRR, 1518, false}, {r4.SCHALGDWRR, 0x1312d0, false}, {r4.SCHALGDWRR, 0x1312d1, true},
		{r4.SCHALGWFQ, 0, false}, {r4.SCHALGWFQ, 0x3fff, false}, {r4.SCHALGWFQ, 0x4000, true}, {r4.SCHALGSP, 0x1fffff, false},
	} {
		g, _ := txQueues(t, 2, c.alg, []uint32{1, c.w})
		if bad := len(g.d.Audit()) > 0; bad != c.bad {
			t.Errorf("SCHALG %d, weight %d: %v", c.alg, c.w, g.d.Audit())
		}
	}
	// Credit-based shaping is not there.
	g := newRig(t, withConfig(func(c *Config) { c.TxQueues = 2 }))
	r4.MTLTxQETSControl.Store(g.mtl(1), ^uint32(0))
	if v := r4.MTLTxQETSControl.Load(g.mtl(1)); v != 0 {
		t.Errorf("MTL_TxQ1_ETS_Control %#x", v)
	}
}

// TestReceiveArbitration: which of the waiting receive queues is served first.
func TestReceiveArbitration(t *testing.T) {
	for _, c := range []struct {
		name    string
		raa     r4.MTLMode
		weights [3]uint32
		counts  [3]int
		want    string
	}{
		{"SP", 0, [3]uint32{7, 1, 1}, [3]int{3, 2, 3}, "22211000"},
		{"WSP equal", r4.RAA, [3]uint32{1, 1, 1}, [3]int{3, 2, 3}, "21021020"},
		{"WSP weight 0 is 1", r4.RAA, [3]uint32{0, 0, 0}, [3]int{2, 2, 2}, "210210"},
		{"WSP by weight", r4.RAA, [3]uint32{1, 2, 3}, [3]int{3, 4, 6}, "2221102221100"},
		{"WSP lone", r4.RAA, [3]uint32{2, 2, 2}, [3]int{5, 0, 0}, "00000"},
	} {
		for _, budget := range []int{1 << 20, 1, 2, 5} {
			g := newRig(t, withConfig(func(c *Config) { c.RxQueues = 3 }), withRing(32))
			g.setup()
			r4.MTLOperationMode.Store(g.r, c.raa)
			r4.MACRxQCtrl0.Store(g.r, 0x2a)
			r4.MACRxQCtrl2.Store(g.r, 0x01|0x02<<8|0x04<<16)
			for q, w := range c.weights {
				r4.MTLRxQOperationMode.Store(g.mtl(q), r4.RSF|r4.RQS.Of(15))
				r4.MTLRxQControl.Store(g.mtl(q), r4.RXQWEGT.Of(w)|r4.RXQFRMARBIT)
			}
			r4.MACConfiguration.Update(g.r, 0, r4.RE)
			n := 0
			for q, k := range c.counts {
				for range k {
					g.w.inject(tagged(60, uint16(q)<<13|1, 0))
					n++
				}
			}
			g.step() // into the queues
			g.post(n)
			g.run()
			for range 1000 {
				if g.d.Step(budget) == 0 {
					break
				}
			}
			got := ""
			for range n {
				f, _, ok := g.recv()
				if !ok {
					t.Fatalf("%s: %q and no more", c.name, got)
				}
				got += fmt.Sprint(f[14] >> 5)
			}
			if got != c.want {
				t.Errorf("%s, steps of %d: %s, want %s", c.name, budget, got, c.want)
			}
			g.clean()
		}
	}
}
