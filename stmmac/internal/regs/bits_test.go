package regs

import "testing"

type mode uint32

func (m mode) String() string {
	return Bits[mode]{{1 << 0, "SWR"}, {0x3 << 16, "INTM"}, {1 << 19, "DCHE"}, {0xff << 24, "TOP"}}.String(m)
}

func TestBits(t *testing.T) {
	for v, want := range map[uint32]string{
		0:          "0",
		1:          "SWR",
		1 | 2<<16:  "SWR|INTM=2",
		3 << 16:    "INTM=3",
		0x00080006: "DCHE|0x6",
		0xff000000: "TOP=255",
		0xffffffff: "SWR|INTM=3|DCHE|TOP=255|0xf4fffe",
		0x80:       "0x80",
	} {
		if got := Text[mode](v); got != want {
			t.Errorf("%#x is %q, want %q", v, got, want)
		}
	}
}
