package stmmac_test

import (
	"fmt"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestD25: frames go on in the next descriptor where the second buffer of the first is
// empty, and nothing is written to its address, which is 0 and outside of all mappings.
func TestD25(t *testing.T) { onEach(t, testD25) }

func testD25(t *testing.T) {
	const size = 128
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("an empty buffer ends a frame %v", ends), func(t *testing.T) {
			r := newRig(t, rigConfig{bufSize: pagepool.XDPHeadroom + size, sim: sim.Config{Faults: sim.Faults{EmptyBufferEnds: ends}},
				opts: []stmmac.Option{stmmac.WithRings(16, 16), stmmac.WithProgram(d12Program{})}})
			if n := r.gen.rxSize(r.csr(), r.spy); n != size {
				t.Fatalf("the device was told buffers of %d bytes", n)
			}
			lost := uint64(0)
			for n := 100; n <= 300; n++ {
				f := frame(n, uint64(n))
				r.wire.deliver(f)
				want := [][]byte{f}
				if ends && r.gen.limits().second && n+4 > size {
					// A device that loses the rest says how long the frame was: nothing of
					// it is given out.
					want, lost = nil, lost+1
				}
				r.same(r.recv(2), want)
				if owned := r.rxOwned(0, 16); owned != 15 {
					t.Fatalf("%d bytes: the engine has %d descriptors", n, owned)
				}
			}
			if s := r.mac.Rx(0).Stats(); s.Length != lost || s.Drops() != lost {
				t.Errorf("%d frames were cut: %+v", lost, s)
			}
			r.settled()
		})
	}
}
