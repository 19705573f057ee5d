package main

import (
	"bytes"
	"testing"
)

func TestTurn(t *testing.T) {
	const a, b = "\x02aaaaa", "\x06bbbbb"
	for _, c := range []struct {
		name, in, want string
		ok             bool
	}{
		{"frame", a + b + "\x08\x00payload", b + a + "\x08\x00payload", true},
		{"addresses alone", a + b, b + a, true},
		{"from a group address", a + "\x03bbbbb" + "\x08\x00", "\x03bbbbb" + a + "\x08\x00", true},
		{"to a multicast address", "\x01\x00\x5e\x00\x00\x01" + b + "\x08\x00", "", false},
		{"broadcast", "\xff\xff\xff\xff\xff\xff" + b + "\x08\x00", "", false},
		{"one byte short", (a + b)[:11], "", false},
		{"empty", "", "", false},
	} {
		if c.want == "" {
			c.want = c.in
		}
		got := []byte(c.in)
		if ok := turn(got); ok != c.ok || !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestTurnDoesNotAllocate(t *testing.T) {
	frame := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { turn(frame) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
