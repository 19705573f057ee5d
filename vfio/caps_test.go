package vfio

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chainOf builds an answer with capabilities: of each its id, where it lies, where
// the next is, and data.
type chainCap struct {
	at, next uint32
	id       uint16
	data     []byte
}

func answerOf(n int, caps ...chainCap) []byte {
	b := make([]byte, n)
	for _, c := range caps {
		binary.NativeEndian.PutUint16(b[c.at:], c.id)
		binary.NativeEndian.PutUint32(b[c.at+4:], c.next)
		copy(b[c.at+8:], c.data)
	}
	return b
}

func words(v ...uint64) []byte {
	var b []byte
	for _, w := range v {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

func TestCapabilityChain(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		first  uint32
		ids    []uint16
		bad    bool
	}{
		"none":                     {answer: make([]byte, 32)},
		"two, the later one first": {answerOf(64, chainCap{at: 24, id: 1}, chainCap{at: 48, next: 24, id: 3}), 48, []uint16{3, 1}, false},
		"first outside":            {make([]byte, 32), 32, nil, true},
		"header cut":               {make([]byte, 32), 28, nil, true},
		"next outside":             {answerOf(32, chainCap{at: 24, next: 1 << 31, id: 1}), 24, nil, true},
		"to itself":                {answerOf(32, chainCap{at: 24, next: 24, id: 1}), 24, nil, true},
		"loop of two":              {answerOf(64, chainCap{at: 24, next: 40, id: 1}, chainCap{at: 40, next: 24, id: 2}), 24, nil, true},
		"not aligned":              {answerOf(64, chainCap{at: 25, id: 7}), 25, []uint16{7}, false},
	} {
		got, err := capabilities(c.answer, c.first)
		if (err != nil) != c.bad || err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ids []uint16
		for _, g := range got {
			ids = append(ids, g.id)
		}
		if d := cmp.Diff(c.ids, ids); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestCapabilityPairs(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want [][2]uint64
		bad  bool
	}{
		"two":             {words(2, 0, 0xfff, 0x1000, 0x2000), [][2]uint64{{0, 0xfff}, {0x1000, 0x2000}}, false},
		"none":            {words(0), [][2]uint64{}, false},
		"more than there": {words(2, 0, 0xfff), nil, true},
		"4 billion":       {words(0xffffffff, 1, 2), nil, true},
		"no count":        {[]byte{1, 0}, nil, true},
		"with a rest":     {words(1, 3, 4, 5), [][2]uint64{{3, 4}}, false},
	} {
		got, err := capability{data: c.data}.pairs()
		if (err != nil) != c.bad || err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// FuzzCapabilities takes answers of a kernel, or of who stands in its place, that
// say anything.
func FuzzCapabilities(f *testing.F) {
	f.Add(answerOf(64, chainCap{at: 24, id: 1, data: words(1, 2, 3)}, chainCap{at: 8, next: 24, id: 3}), uint32(8))
	f.Add(answerOf(32, chainCap{at: 24, next: 24, id: 1}), uint32(24))
	f.Add([]byte{}, uint32(1))
	f.Fuzz(func(t *testing.T, answer []byte, first uint32) {
		chain, err := capabilities(answer, first)
		if err != nil {
			if !errors.Is(err, os.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, c := range chain {
			pairs, err := c.pairs()
			if err == nil && 16*len(pairs) > len(answer) {
				t.Fatalf("%d pairs in %d bytes", len(pairs), len(answer))
			}
		}
	})
}
