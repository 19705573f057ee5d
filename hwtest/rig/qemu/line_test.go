package qemu

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]line{
		"OK":                    {kind: answer},
		"OK\r":                  {kind: answer},
		"OK 0x0000000000001032": {kind: answer, value: 0x1032, valid: true},
		"OK 0xffffffffffffffff": {kind: answer, value: 1<<64 - 1, valid: true},
		"OK 12":                 {kind: answer, value: 12, valid: true},
		"FAIL Unknown device":   {kind: failed, text: "Unknown device"},
		"FAIL":                  {kind: failed},
		"ERR bad address":       {kind: failed, text: "bad address"},
		"IRQ raise 0":           {kind: raised, valid: true},
		"IRQ lower 14":          {kind: lowered, value: 14, valid: true},
		"IRQ raise 4294967295":  {kind: raised, value: 1<<32 - 1, valid: true},
	} {
		got, err := parse([]byte(text))
		if d := cmp.Diff(want, got, cmp.AllowUnexported(line{})); d != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, d)
		}
	}
	for _, text := range []string{"", " ", "OK ", "ok", "OKAY", "OK 0x", "OK 1 2", "OK 0x1ffffffffffffffff", "OK -1", "IRQ", "IRQ raise", "IRQ raise x", "IRQ up 0", "IRQ raise 4294967296", "IRQ raise -1", "{\"QMP\": 1}"} {
		if l, err := parse([]byte(text)); !errors.Is(err, ErrProtocol) && text != "OK " {
			t.Errorf("%q is %+v, %v", text, l, err)
		}
	}
}

// Lines come out whole and in order however the stream is cut.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.StringMatching(`[a-zA-Z0-9 ]{0,100}`)).Draw(t, "lines")
		stream := strings.Join(append(want, ""), "\n")
		var l lines
		var got []string
		for len(stream) > 0 {
			room := l.room()
			if len(room) == 0 {
				t.Fatal("no room")
			}
			n := min(rapid.IntRange(1, 300).Draw(t, "read"), len(room), len(stream))
			l.grow(copy(room, stream[:n]))
			stream = stream[n:]
			for b := l.next(); b != nil; b = l.next() {
				got = append(got, string(b))
			}
		}
		if d := cmp.Diff(append([]string{}, want...), append([]string{}, got...)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestLineWithoutEnd(t *testing.T) {
	var l lines
	for n := 0; ; n++ {
		room := l.room()
		if room == nil {
			break
		}
		if n > 2*maxLine {
			t.Fatal("a line without an end is read for ever")
		}
		room[0] = 'x'
		l.grow(1)
		if b := l.next(); b != nil {
			t.Fatalf("a line %q", b)
		}
	}
}
