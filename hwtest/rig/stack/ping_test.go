package stack

import (
	"encoding/binary"
	"testing"
)

// TestPingFrames checks the frames that are made by hand.
func TestPingFrames(t *testing.T) {
	if f := arpRequest(); len(f) != 60 || f[12] != 0x08 || f[13] != 0x06 || binary.BigEndian.Uint16(f[20:]) != 1 {
		t.Errorf("ARP request % x", f)
	}
	for _, n := range []int{0, 1, 56, 1472} {
		f := echoRequest(station, 7, n)
		if len(f) != 42+n || sum(f[14:34]) != 0 || sum(f[34:]) != 0 || int(binary.BigEndian.Uint16(f[16:])) != 28+n {
			t.Errorf("echo request of %d bytes: % x", n, f[:min(60, len(f))])
		}
	}
	// RFC 1071, section 3.
	if s := sum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); s != ^uint16(0xddf2) {
		t.Errorf("%#x", s)
	}
}
