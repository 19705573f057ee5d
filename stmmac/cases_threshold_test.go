package stmmac_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestD32: whatever is asked for, frames are stored in the FIFO before they are sent, on
// a device that changes a byte of those that are not.
func TestD32(t *testing.T) { onEach(t, testD32) }

func testD32(t *testing.T) {
	for name, opts := range map[string][]stmmac.Option{
		"default":      nil,
		"no checksums": {stmmac.WithChecksums(false, false)},
		"self-test":    {selfTested},
		"jumbo":        {stmmac.WithMTU(4000)},
		"half duplex":  {stmmac.WithLink(stmmac.Link{Up: true, Speed: 100})},
		"pause":        {stmmac.WithLink(link(1000, true, true, true))},
		"completions":  {stmmac.WithTxCompletions()},
		"FCS":          {with(func(c *stmmac.Config) { c.StripFCS = true })},
		"bursts":       {with(func(c *stmmac.Config) { c.AXI.PBL = 32 })},
	} {
		for _, n := range queueCounts(t, 1, 4) {
			t.Run(fmt.Sprintf("%s, %d queues", name, n), func(t *testing.T) {
				c := queued(n, rigConfig{sim: sim.Config{NoPHY: true, TxFIFO: 1 << 15, RxFIFO: 1 << 15, Faults: sim.Faults{ThresholdCorrupts: true}}})
				c.opts = append(c.opts, opts...)
				r := newRig(t, c)
				look := func(seq uint64) {
					t.Helper()
					for q := range n {
						off := q > 0 && !r.mac.Link().FullDuplex // half duplex has one queue
						if !off && !r.gen.storesForward(r.csr(), q, sending) {
							t.Errorf("queue %d does not store and forward", q)
						}
					}
					for _, size := range []int{60, 64, 65, 512, 1514} {
						f := ofLen(0, max(size, 82), seq)
						r.leaves(0, r.asked(f, 1500), fixed(f), "%d bytes", size)
						f = frame(size, seq)
						r.leaves(0, r.buf(f, 1500), f, "%d bytes without checksums", size)
					}
				}
				look(1)
				r.must(r.mac.SetMTU(t.Context(), 1500))
				look(2)
				r.must(r.mac.SetLink(stmmac.Link{}))
				r.must(r.mac.SetLink(gigabit))
				look(3)
			})
		}
	}
	// The control: the device does that without.
	r := newRig(t, rigConfig{sim: sim.Config{Faults: sim.Faults{ThresholdCorrupts: true}}})
	r.tolerate = []sim.ViolationKind{sim.ThresholdTransmit}
	r.gen.threshold(r.csr())
	f := frame(1000, 1)
	r.send(f)
	r.step()
	if got := r.wire.take(); len(got) != 1 || bytes.Equal(got[0], f) {
		t.Error("a frame is right that the FIFO did not hold")
	}
	if !slices.Contains(kinds(r.dev), sim.ThresholdTransmit) {
		t.Error("the audit says nothing")
	}
}
