package vfiopci

import (
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestSocket: a card keeps its end while wires come and go, and is told of each.
func TestSocket(t *testing.T) {
	s := new(socket)
	told := 0
	s.Notify(func() { told++ })
	if _, ok := s.Receive(); ok || !s.Transmit(sim.Frame{Data: []byte{1}}) || !s.Elastic() {
		t.Error("a socket without a wire does not drop what is sent")
	}
	for n := range 2 {
		card, far := sim.NewPair(4)
		before := told
		if err := s.plug(card); err != nil {
			t.Fatal(err)
		}
		if told == before {
			t.Errorf("wire %d: the card is not told", n)
		}
		before = told
		far.Transmit(sim.Frame{Data: []byte{byte(n), 7}})
		if told == before {
			t.Errorf("wire %d: the card is not told of a frame", n)
		}
		f, ok := s.Receive()
		if !ok || len(f.Data) != 2 || f.Data[0] != byte(n) {
			t.Errorf("wire %d: % x, %v", n, f.Data, ok)
		}
		if !s.Transmit(sim.Frame{Data: []byte{9}}) {
			t.Errorf("wire %d takes nothing", n)
		}
		if f, ok := far.Receive(); !ok || f.Data[0] != 9 {
			t.Errorf("wire %d: % x, %v came out", n, f.Data, ok)
		}
	}
	card, far := sim.NewPair(1)
	if err := s.plug(card); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	far.Transmit(sim.Frame{Data: []byte{1}})
	if _, ok := s.Receive(); ok {
		t.Error("a frame from a wire that was closed")
	}
}

// TestBoots: every boot has a line for each kind of interrupts, and no two cases of it have
// one name.
func TestBoots(t *testing.T) {
	ways := map[string]bool{}
	for _, b := range Boots() {
		ways[b.key+" "+b.backend] = true
		seen := map[string]bool{}
		for _, c := range b.Cases() {
			if seen[c.Name] || c.Run == nil {
				t.Errorf("%s: case %q", b.Name, c.Name)
			}
			seen[c.Name] = true
		}
		for _, k := range []string{"MSI-X", "MSI", "INTx"} {
			if !seen[k+": frames both ways by interrupt"] {
				t.Errorf("%s has no line of %s", b.Name, k)
			}
		}
		all, ends := b.cards()
		want := ours
		if b.full {
			want = kernels + 2
		}
		if len(all) != want || ends[0] == nil || all[generators].Wire != ends[0] || all[generators+1].Wire != ends[1] {
			t.Errorf("%s has %d cards", b.Name, len(all))
		}
	}
	if len(ways) != 4 {
		t.Errorf("ways %v", ways)
	}
}
