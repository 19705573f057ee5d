package stmmac_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestPause is case D61: a consumer that stops at line rate. Pauses are asked
// for only if the link has agreed on them, and then nothing is lost; the pause
// ends when the consumer goes on. (A queue of 4 KiB has no room for the frame
// that fills it to the threshold and two more.)
func TestPause(t *testing.T) { onEach(t, testPause) }

func testPause(t *testing.T) {
	for _, fifo := range []int{8192, 16384} {
		for _, l := range []stmmac.Link{{}, {RxPause: true}, {TxPause: true}, {RxPause: true, TxPause: true}} {
			l.Up, l.Speed, l.FullDuplex = true, 1000, true
			t.Run(fmt.Sprintf("%d %v", fifo, l), func(t *testing.T) {
				r := newRig(t, rigConfig{sim: sim.Config{RxFIFO: fifo}, opts: []stmmac.Option{stmmac.WithRings(8, 8), stmmac.WithLink(l)}})
				times := func() (l []uint16) {
					for _, f := range r.wire.take() {
						if f[12] == 0x88 && f[13] == 0x08 {
							l = append(l, binary.BigEndian.Uint16(f[16:]))
						}
					}
					return l
				}
				var in [][]byte
				stopped := false
				var asked []uint16
				for i := range 60 {
					if !stopped {
						f := frame(1514, uint64(i))
						in = append(in, f)
						r.wire.deliver(f)
					}
					r.step()
					got := times()
					asked = append(asked, got...)
					for _, v := range got {
						stopped = v != 0
					}
				}
				if l.TxPause != (len(asked) > 0) || l.TxPause && asked[0] != 0xffff {
					t.Fatalf("pauses of %v", asked)
				}
				if !l.TxPause {
					r.recv(len(in))
					return
				}
				// One more frame was on its way.
				f := frame(1518, 1000)
				in = append(in, f)
				r.wire.deliver(f)
				r.same(r.recv(len(in)), in)
				if got := times(); len(got) != 1 || got[0] != 0 {
					t.Errorf("pauses of %v at the end", got)
				}
			})
		}
	}
}
