package stmmac_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestFIFOUnknown is case D50: a feature register that does not tell the size of the
// FIFOs, or tells one that does not exist. MTU 1500 is accepted with every number of
// queues, and what goes beyond is when somebody says how large the FIFOs are.
func TestFIFOUnknown(t *testing.T) { onEach(t, testFIFOUnknown) }

func testFIFOUnknown(t *testing.T) {
	for _, u := range on(t).unsized() {
		for _, n := range queueCounts(t, 1, 2, 4) {
			for _, given := range []int{0, 64 << 10} {
				t.Run(fmt.Sprintf("%s, %d queues, given %d", u.name, n, given), func(t *testing.T) {
					f := u.fake()
					m, d, err := openOn(t, f, stmmac.WithQueues(n, n), stmmac.WithConfig(func(c *stmmac.Config) { c.RxFIFO, c.TxFIFO = given, given }))
					if err != nil {
						t.Fatal(err)
					}
					if feat := m.Features(); feat.RxFIFO != 0 || feat.TxFIFO != 0 {
						t.Errorf("FIFOs of %d and %d", feat.RxFIFO, feat.TxFIFO)
					}
					each := u.each(n)
					if given != 0 {
						each = given / n
					}
					for q := range n {
						if rx, tx, divided := on(t).fifo(f, q); divided && (rx != each || tx != each) {
							t.Errorf("queue %d has %d and %d bytes of the FIFOs, want %d", q, rx, tx, each)
						}
					}
					for _, mtu := range []int{1500, 1501, 2000, 9000} {
						err := m.SetMTU(t.Context(), mtu)
						if fits := mtu+26 <= each; fits != (err == nil) {
							t.Errorf("MTU %d: %v", mtu, err)
						}
						if err != nil {
							mustFail(t, err, os.ErrInvalid, "FIFO", "set MTU")
						}
					}
					if err := m.Close(); err != nil {
						t.Error(err)
					}
					d.mustUnmap(t)
				})
			}
		}
	}
}

// TestFIFOGiven has a configuration that makes a known FIFO smaller, never larger,
// and sizes that the registers of a queue have no room for.
func TestFIFOGiven(t *testing.T) {
	for _, tc := range []struct {
		code   uint32
		given  int
		tx, rx uint32 // TQS and RQS
	}{
		{7, 0, 63, 63}, {7, 8192, 31, 31}, {7, 1 << 20, 63, 63}, {11, 0, 511, 1023}, {0, 1 << 20, 511, 1023}, {0, 192 << 10, 511, 767},
	} {
		f := fakeGMAC4()
		f.Set(0x0120, tc.code|tc.code<<6|1<<14|1<<24)
		m, _, err := openOn(t, f, stmmac.WithConfig(func(c *stmmac.Config) { c.RxFIFO, c.TxFIFO = tc.given, tc.given }))
		if err != nil {
			t.Fatal(err)
		}
		if tx, rx := f.Peek(0x0d00)>>16&0x1ff, f.Peek(0x0d30)>>20; tx != tc.tx || rx != tc.rx {
			t.Errorf("code %d, given %d: TQS %d, RQS %d, want %d, %d", tc.code, tc.given, tx, rx, tc.tx, tc.rx)
		}
		m.Close()
	}
}

// tagFrame returns a frame with tags in front of its type, outermost first, whose
// payload has n bytes.
func tagFrame(tags, n int, seq uint64) []byte {
	f := frame(14+n, seq)
	for i := range tags {
		tpid := []byte{0x81, 0x00, 0x00, byte(5 + i)}
		f = slices.Insert(f, 12, tpid...)
	}
	return f
}

// TestMTUSteps is case D51: around every change of the size class of a buffer all
// frames up to the MTU pass with up to two tags, in both directions, and a longer one
// is dropped and counted.
func TestMTUSteps(t *testing.T) { onEach(t, testMTUSteps) }

func testMTUSteps(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithMTU(1400), stmmac.WithRings(16, 16)}})
	seq := uint64(0)
	for mtu := 1496; mtu <= 1530; mtu++ {
		if err := r.mac.SetMTU(t.Context(), mtu); err != nil {
			t.Fatal(err)
		}
		for tags := range 3 {
			var all [][]byte
			for n := mtu - 4; n <= mtu; n++ {
				seq++
				all = append(all, tagFrame(tags, n, seq))
			}
			r.wire.deliver(all...)
			r.same(r.recv(len(all)), all)
			r.send(all...)
			r.step()
			r.same(r.wire.take(), all)
		}
		// The limit is that of a payload behind two tags: what is above it.
		long := tagFrame(2, mtu+1, seq)
		before := r.mac.Rx(0).Stats()
		r.wire.deliver(long)
		if n := len(r.recv(1)); n != 0 {
			t.Fatalf("MTU %d: a frame of %d bytes came", mtu, len(long))
		}
		if s := r.mac.Rx(0).Stats(); s.Drops() != before.Drops()+1 {
			t.Fatalf("MTU %d: the frame of %d bytes is not counted: %+v", mtu, len(long), s)
		}
		b := r.buf(long, 1500)
		if _, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); !errors.Is(err, stmmac.ErrFrameTooLong) {
			t.Fatalf("MTU %d: %d bytes sent: %v", mtu, len(long), err)
		}
		r.pool.Free(b)
		r.onlyRx()
	}
}

// TestMTUQueues changes the MTU of MACs of which each queue has as much FIFO as one
// frame needs, or less.
func TestMTUQueues(t *testing.T) {
	for _, n := range []int{2, 4} {
		r := newRig(t, rigConfig{sim: sim.Config{RxQueues: n, TxQueues: n}, opts: []stmmac.Option{stmmac.WithQueues(n, n)}})
		most := 16384/n - 26
		if err := r.mac.SetMTU(t.Context(), most); err != nil {
			t.Fatal(err)
		}
		r.flows(1)
		mustFail(t, r.mac.SetMTU(t.Context(), most+1), os.ErrInvalid, "FIFO", "fewer queues")
		if m := r.mac.MTU(); m != most {
			t.Errorf("MTU %d", m)
		}
		r.flows(2)
	}
}
