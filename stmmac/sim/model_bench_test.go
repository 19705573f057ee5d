package sim

import (
	"strings"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// sinkWire gives the same frame for ever, up to left, and drops what is sent.
type sinkWire struct {
	frame []byte
	left  int
	sent  int
}

func (w *sinkWire) Transmit(Frame) bool { w.sent++; return true }
func (w *sinkWire) Receive() (Frame, bool) {
	if w.left == 0 {
		return Frame{}, false
	}
	w.left--
	return Frame{Data: w.frame}, true
}
func (w *sinkWire) Elastic() bool { return true }
func (w *sinkWire) Notify(func()) {}
func (w *sinkWire) Close() error  { return nil }

// benchRig is a running rig without audit whose wire is a sinkWire.
func benchRig(tb testing.TB, n, size int, strip bool) (*rig, *sinkWire) {
	g := newRig(tb, withRing(n), withSlot(2048+64), withConfig(func(c *Config) { c.NoAudit = true }))
	w := &sinkWire{frame: testFrame(size, 1)}
	g.d.Model.wire = w
	g.open()
	if strip {
		r4.MACConfiguration.Update(g.r, 0, r4.CST)
	}
	return g, w
}

// BenchmarkModelStep is the model's cost for each descriptor; the descriptors are
// made outside the timed part.
func BenchmarkModelStep(b *testing.B) {
	const n = 256
	for _, bc := range []struct {
		name   string
		rx, tx bool
		size   int
		strip  bool
	}{
		{"tx/60", false, true, 60, false},
		{"rx/60/strip", true, false, 60, true},
		{"rx/60/fcs", true, false, 60, false},
		{"rxtx/60/strip", true, true, 60, true},
		{"rx/1514/fcs", true, false, 1514, false},
		{"tx/1514", false, true, 1514, false},
		{"rx/1514/checksum", true, false, 1514, true},
		{"tx/1514/checksum", false, true, 1514, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			g, w := benchRig(b, n, bc.size, bc.strip)
			frame := testFrame(bc.size, 2)
			cic := uint32(0)
			if strings.HasSuffix(bc.name, "checksum") {
				d := udp(make([]byte, bc.size-42)...).filled(6)
				w.frame, frame, cic = d.bytes(), d.bytes(), uint32(r4.CIC.Of(r4.CICFull))
				r4.MACConfiguration.Update(g.r, 0, r4.IPC)
			}
			per := 0
			if bc.rx {
				per += n - 1
			}
			if bc.tx {
				per += n - 1
			}
			inStep, best := time.Duration(0), time.Hour
			done := 0
			for done < b.N {
				if bc.tx {
					for range n - 1 {
						g.queue(true, frame)
						g.desc(g.txRing, g.txTail-1)[3] |= cic
					}
					g.ring()
				}
				if bc.rx {
					w.left = n - 1
				}
				start := time.Now()
				got := g.d.Step(1 << 20)
				took := time.Since(start)
				inStep += took
				best = min(best, took)
				if got != per {
					b.Fatalf("%d units of work, want %d", got, per)
				}
				done += got
				if bc.tx {
					if k, _ := g.reap(); k != n-1 {
						b.Fatalf("%d of %d sent", k, n-1)
					}
				}
				if bc.rx {
					for range n - 1 {
						if w := g.get(g.rxRing, g.rxHead); r4.RDES3(w[3])&(r4.RxOWN|r4.RxLD|r4.RxES) != r4.RxLD {
							b.Fatalf("descriptor %08x", w)
						}
						g.rxHead++
					}
					g.post(n - 1)
				}
			}
			b.ReportMetric(0, "ns/op") // the driver's half is in it
			b.ReportMetric(float64(inStep.Nanoseconds())/float64(done), "ns/desc")
			b.ReportMetric(float64(best.Nanoseconds())/float64(per), "min-ns/desc")
		})
	}
}

// TestStepDoesNotAllocate: no allocation for a frame in steady state.
func TestStepDoesNotAllocate(t *testing.T) {
	const n = 64
	g, w := benchRig(t, n, 200, false)
	one := func() {
		w.left = n - 1
		for range (n - 1) / 2 {
			g.queue(true, w.frame[:100], w.frame[100:])
		}
		g.ring()
		g.step()
		if k, _ := g.reap(); k != (n-1)/2*2 {
			t.Fatalf("%d descriptors back", k)
		}
		g.rxHead += n - 1
		g.post(n - 1)
	}
	one()
	if a := testing.AllocsPerRun(50, one); a > 0 {
		t.Fatalf("%v allocations in %d frames each way", a, n)
	}
}
