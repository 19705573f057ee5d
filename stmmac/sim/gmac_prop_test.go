package sim

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Whatever the lists, the pieces and the budgets are, frames come in order, once and
// unchanged, both ways, and a driver that keeps to OWN breaks no rule.
func TestGMACProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bus := rapid.SampledFrom([]int{4, 8, 16}).Draw(r, "bus")
		g := newGMACRig(t, func(g *gmacRig) {
			g.chain = rapid.Bool().Draw(r, "chain")
			g.size = bus * rapid.IntRange(64/bus, 1984/bus).Draw(r, "size")
			if !g.chain {
				g.second = bus * rapid.IntRange(0, 1984/bus).Draw(r, "second")
				g.txTwo = rapid.Bool().Draw(r, "two")
			}
			g.txPiece = rapid.IntRange(100, 2047).Draw(r, "piece")
		}, withRing(rapid.IntRange(1, 20).Draw(r, "n")), withDSL(rapid.IntRange(0, 7).Draw(r, "skip")),
			withConfig(func(c *Config) { c.BusBytes = bus }))
		defer g.d.Close()
		g.open()
		room := g.n * (g.size + g.second)
		per := g.txPiece
		if g.txTwo {
			per *= 2
		}
		var coming, going [][]byte
		for k := range rapid.IntRange(1, 40).Draw(r, "rounds") {
			f := testFrame(rapid.IntRange(60, 1514).Draw(r, "length"), byte(k))
			if len(f)+fcsLen <= room {
				coming = append(coming, f)
				g.w.inject(f)
			}
			if (len(f)+per-1)/per <= g.n-(g.txTail-g.txHead) {
				going = append(going, f)
				g.send(f)
			}
			for range rapid.IntRange(0, 5).Draw(r, "steps") {
				g.d.Step(rapid.IntRange(1, 10).Draw(r, "budget"))
			}
			if rapid.Bool().Draw(r, "refill") {
				coming = g.take(r, coming)
			}
			g.reap()
		}
		for range 2000 {
			work := g.d.Step(1000)
			g.reap()
			left := len(coming)
			if coming = g.take(r, coming); work == 0 && len(coming) == left {
				break
			}
		}
		if len(coming) > 0 || g.txHead != g.txTail || len(g.w.tx) != len(going) {
			r.Fatalf("%d frames missing, %d descriptors out, %d of %d frames on the wire, status %v", len(coming), g.txTail-g.txHead,
				len(g.w.tx), len(going), rg.StatusReg.Load(g.r))
		}
		for k, f := range g.w.tx {
			if !bytes.Equal(f.Data, going[k]) || f.BadFCS {
				r.Fatalf("frame %d differs on the wire", k)
			}
		}
		for _, v := range g.d.Audit() {
			r.Error(v)
		}
	})
}

// take receives what is there, compares it with the frames that are coming and refills.
func (g *gmacRig) take(r *rapid.T, coming [][]byte) [][]byte {
	for {
		before := g.rxHead
		data, d0, _, ok := g.recv()
		if !ok {
			return coming
		}
		if len(coming) == 0 || !bytes.Equal(data[:len(data)-fcsLen], coming[0]) || d0&rg.RxES != 0 {
			r.Fatalf("a frame of %d bytes with status %v is not the next", len(data), d0)
		}
		coming = coming[1:]
		g.post(g.rxHead - before)
	}
}
