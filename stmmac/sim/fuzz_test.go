package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// FuzzDescriptors: whatever stands in descriptors, tails and registers, the model
// neither panics nor hangs, and writes nothing outside mappings.
func FuzzDescriptors(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(4), uint8(0))
	f.Add(bytes.Repeat([]byte{0xff}, 200), uint8(1), uint8(3))
	f.Add(bytes.Repeat([]byte{0x10, 0, 0, 0xb0, 1}, 100), uint8(16), uint8(0x55))
	f.Add([]byte("\x0a\x00\x00\x00\x00\x00\x00\x00\x03\x00\x20\x08\x0a\x00\x00\x00\x50\x00\x00\x00\x00\x00\x60\xbf\x0c\x05\x20\x00\x80\x00\x00\x00\x80\x00\x00\x00"), uint8(8), uint8(0x18))
	// Every filter, split header, LPI, ARP and time with whatever stands in the registers.
	f.Add(bytes.Repeat([]byte("\x0a\x00\x00\x00\x00\x09\x00\x00\xff\xff\xff\xff\x0a\x00\x00\x00\x00\x11\x00\x00\x03\x00\x08\xff\x0c\x07\x20\x00\x80\x00\x00\x00"), 12), uint8(200), uint8(0x18))
	f.Fuzz(func(t *testing.T, data []byte, n, flags uint8) {
		bit := func(i int) bool { return flags>>i&1 != 0 }
		g := newRig(t, withRing(int(n)%16+1), withRBSZ(int(flags)*8), withConfig(func(c *Config) {
			c.BusBytes = 4 << (flags % 3)
			if bit(2) {
				c.AddrWidth = 32
			}
			if bit(3) {
				c.Profile = Linux
			}
			if n >= 128 {
				c.EnableAll()
			}
			c.NoAudit = bit(4)
			c.Faults = Faults{WholeBusWords: bit(5), ScribbleWriteBack: bit(6), Prefetch: Prefetch{On: bit(7), Depth: 4},
				MiddleLength: MiddleLength(flags % 4), Overflow: Overflow{Mode: OverflowMode(flags % 4), Every: uint64(flags%5) + 1, After: 2},
				InjectContext: InjectContext{Every: uint64(flags % 3)}}
		}))
		g.open()
		mem, iova := newGuardedPage(t, g.d)
		next := func() uint32 { return nextWord(&data) }
		for i := 0; len(data) > 0 && i < 400; i++ {
			v := next()
			ring, base := g.rxRing, g.rxBase
			if v&1 != 0 {
				ring, base = g.txRing, g.txBase
			}
			switch v >> 1 & 7 {
			case 0, 1, 2: // a descriptor, mostly with addresses that are near a mapping
				w := [4]uint32{next(), next(), next(), next()}
				if v&0x100 != 0 {
					w[0], w[1] = uint32(iova)+w[0]%8192-2048, uint32(iova>>32)
				}
				if v&0x200 != 0 {
					w[3] |= uint32(r4.RxOWN | r4.RxBUF1V | r4.RxBUF2V)
				}
				g.put(ring, int(v>>16), w)
			case 3, 4: // a tail
				tail := next()
				if v&0x100 != 0 {
					tail = uint32(base) + tail%uint32(g.n*16+64)
				}
				if v&1 != 0 {
					r4.DMACHTxDescTailPointer.Store(g.ch(0), tail)
				} else {
					r4.DMACHRxDescTailPointer.Store(g.ch(0), tail)
				}
			case 5: // any register
				g.r.Store32(next()%g.r.Len()&^3, next())
			case 6: // frames of any length
				for range v >> 8 & 7 {
					size := int(next() % 17000)
					f := make([]byte, size)
					if v&0x200000 != 0 && size > headerLen { // tags, and a packet that is not one
						copy(f[12:], "\x81\x00\x00\x05\x88\xa8\x00\x06\x08\x00\x45\x00\x01\x00")
					}
					g.w.rx = append(g.w.rx, Frame{Data: f, BadFCS: v&0x100000 != 0})
				}
			case 7:
				g.r.Load32(next() % g.r.Len() &^ 3)
				g.clock.Advance(1000)
			}
			if done := g.d.Step(4096); done > 4096 {
				t.Fatalf("%d units in a step of 4096", done)
			}
			g.w.tx = nil
		}
		mem.check(t)
	})
}

// guardedPage is a page that is mapped for a device, between two that are not.
type guardedPage []byte

const canary = 0x5a

func newGuardedPage(t *testing.T, d *Device) (guardedPage, uint64) {
	t.Helper()
	mem := guardedPage(bytes.Repeat([]byte{canary}, 3*4096))
	iova, err := d.MapDMA(mem[4096:8192])
	if err != nil {
		t.Fatal(err)
	}
	return mem, iova
}

// check fails if the device has written to a page that is not mapped.
func (p guardedPage) check(t *testing.T) {
	t.Helper()
	for i := range 4096 {
		if p[i] != canary || p[8192+i] != canary {
			t.Fatal("write outside the mapping")
		}
	}
}

// nextWord takes a word of fuzzed input; it is 0 behind the end.
func nextWord(data *[]byte) uint32 {
	var b [4]byte
	*data = (*data)[copy(b[:], *data):]
	return binary.LittleEndian.Uint32(b[:])
}
