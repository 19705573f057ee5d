package sim

import (
	"testing"
	"time"

	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacBenchRig is a running rig without audit whose wire is a sinkWire.
func gmacBenchRig(tb testing.TB, n, size int, strip bool) (*gmacRig, *sinkWire) {
	g := newGMACRig(tb, func(g *gmacRig) {
		if strip {
			g.configuration |= rg.CST
		}
	}, withRing(n), withConfig(func(c *Config) { c.NoAudit = true }))
	w := &sinkWire{frame: testFrame(size, 1)}
	g.d.Model.wire = w
	g.open()
	return g, w
}

// BenchmarkGMACStep is the model's cost for each descriptor; the descriptors are made
// outside the timed part.
func BenchmarkGMACStep(b *testing.B) {
	const n = 256
	for _, bc := range []struct {
		name   string
		rx, tx bool
		size   int
	}{
		{"tx/60", false, true, 60},
		{"rx/60/strip", true, false, 60},
		{"rxtx/60/strip", true, true, 60},
		{"tx/1514", false, true, 1514},
		{"rx/1514/strip", true, false, 1514},
	} {
		b.Run(bc.name, func(b *testing.B) {
			g, w := gmacBenchRig(b, n, bc.size, true)
			frame := testFrame(bc.size, 2)
			inStep, best, done := time.Duration(0), time.Hour, 0
			per := 0
			if bc.rx {
				per += n
			}
			if bc.tx {
				per += n
			}
			for done < b.N {
				if bc.tx {
					for range n {
						g.queue(frame)
					}
					rg.TransmitPollDemand.Store(g.r, 1)
				}
				if bc.rx {
					w.left = n
				}
				start := time.Now()
				got := g.d.Step(1 << 20)
				took := time.Since(start)
				inStep += took
				best = min(best, took)
				done += got
				if got != per {
					b.Fatalf("%d units of work, want %d", got, per)
				}
				g.reap()
				if bc.rx {
					g.rxHead += n
					g.post(n)
				}
			}
			b.ReportMetric(0, "ns/op") // the driver's half is in it
			b.ReportMetric(float64(inStep.Nanoseconds())/float64(done), "ns/desc")
			b.ReportMetric(float64(best.Nanoseconds())/float64(per), "min-ns/desc")
		})
	}
}

// TestGMACStepDoesNotAllocate: no allocation for a frame in steady state.
func TestGMACStepDoesNotAllocate(t *testing.T) {
	const n = 64
	g, w := gmacBenchRig(t, n, 200, false)
	g.txPiece = 100
	one := func() {
		w.left = n
		for range n / 2 {
			g.queue(w.frame)
		}
		rg.TransmitPollDemand.Store(g.r, 1)
		g.step()
		if k, _ := g.reap(); k != n {
			t.Fatalf("%d descriptors back", k)
		}
		g.rxHead += n
		g.post(n)
	}
	one()
	if a := testing.AllocsPerRun(50, one); a > 0 {
		t.Fatalf("%v allocations in %d frames each way", a, n)
	}
}
