package vfiouser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// words are registers that log.
type words struct {
	v   [4]uint32
	log []string
}

func (w *words) Len() uint32 { return 16 }

func (w *words) Load32(off uint32) uint32 {
	w.log = append(w.log, fmt.Sprintf("L%d", off))
	return w.v[off/4]
}

func (w *words) Store32(off, v uint32) {
	w.log = append(w.log, fmt.Sprintf("S%d=%x", off, v))
	w.v[off/4] = v
}

// TestRegionOfWords: accesses of any size to 32-bit registers.
func TestRegionOfWords(t *testing.T) {
	w := &words{v: [4]uint32{0x3020100, 0x7060504, 0xb0a0908, 0xf0e0d0c}}
	for _, c := range []struct {
		off  uint64
		n    int
		want []byte
		log  string
	}{
		{4, 4, []byte{4, 5, 6, 7}, "L4"},
		{8, 8, []byte{8, 9, 10, 11, 12, 13, 14, 15}, "L8 L12"},
		{6, 2, []byte{6, 7}, "L4"},
		{13, 1, []byte{13}, "L12"},
		{16, 4, []byte{255, 255, 255, 255}, ""},
		{1<<32 + 4, 2, []byte{255, 255}, ""},
	} {
		p := make([]byte, c.n)
		w.log = nil
		vfiouser.ReadRegion(w, c.off, p)
		if got := strings.Join(w.log, " "); got != c.log || !cmp.Equal(p, c.want) {
			t.Errorf("a read of %d at %#x: % x, %s", c.n, c.off, p, got)
		}
	}
	for _, c := range []struct {
		off uint64
		p   []byte
		log string
	}{
		{4, []byte{1, 2, 3, 4}, "S4=4030201"},
		{8, []byte{1, 2, 3, 4, 5, 6, 7, 8}, "S8=4030201 S12=8070605"},
		{2, []byte{0xaa, 0xbb}, "L0 S0=bbaa0100"},
		{13, []byte{0xcc}, "L12 S12=807cc05"},
		{16, []byte{1, 2, 3, 4}, ""},
		{1<<32 + 4, []byte{1}, ""},
	} {
		w.log = nil
		vfiouser.WriteRegion(w, c.off, c.p)
		if got := strings.Join(w.log, " "); got != c.log {
			t.Errorf("a write of % x at %#x: %s", c.p, c.off, got)
		}
	}
}
