package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// phyOracle says what the link of a clause 22 PHY must be once everything has
// settled, from the registers and the outside at the last cause of a negotiation.
type phyOracle struct {
	bmcr, anar, mscr uint16
	sentA, sentM     uint16 // advertised
	plugged          bool
	fixed            bool
	partner          [6]bool // 10 half to 1000 full
}

// offers are the modes of the registers that went out, the lowest priority first.
func (o *phyOracle) offers() [6]bool {
	return [6]bool{o.sentA>>5&1 != 0, o.sentA>>6&1 != 0, o.sentA>>7&1 != 0, o.sentA>>8&1 != 0, o.sentM>>8&1 != 0, o.sentM>>9&1 != 0}
}

var oracleSpeed = [6]int{10, 10, 100, 100, 1000, 1000}

// link is the speed and the duplex, 0 without a link.
func (o *phyOracle) link() (int, bool) {
	mode := func(i int) (int, bool) { return oracleSpeed[i], i%2 == 1 }
	bit := func(n uint) int { return int(o.bmcr >> n & 1) }
	own := bit(13)*2 + bit(6)*4 + bit(8) // index of the forced mode
	top := -1                            // the best that the partner does
	for i, on := range o.partner {
		if on {
			top = i
		}
	}
	switch {
	case bit(11) == 1:
		return 0, false
	case bit(14) == 1:
		if own > 5 {
			return 0, false
		}
		return mode(own)
	case !o.plugged:
		return 0, false
	case bit(12) == 0:
		if own > 3 || o.fixed && oracleSpeed[top] != oracleSpeed[own] || !o.fixed && !o.partner[own&^1] {
			return 0, false
		}
		return mode(own)
	case o.sentA&0x1f != 1:
		return 0, false
	case o.fixed:
		if half := top &^ 1; top < 4 && o.offers()[half] {
			return mode(half)
		}
		return 0, false
	}
	offers := o.offers()
	for i := 5; i >= 0; i-- {
		if offers[i] && o.partner[i] {
			return mode(i)
		}
	}
	return 0, false
}

// TestPHYAgainstOracle: whatever happens in whatever order, a PHY that is left alone
// ends in the link that the registers and the cable say, and BMSR tells it in the
// second read; between two reads no failure goes unseen.
func TestPHYAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now time.Duration
		p := newPHY(phyOf(t), new(PHYFaults), now)
		o := &phyOracle{bmcr: 0x1140, anar: 0x01e1, mscr: 0x0300, sentA: 0x01e1, sentM: 0x0300, plugged: true,
			partner: [6]bool{true, true, true, true, true, true}}
		again := func() { o.sentA, o.sentM = o.anar, o.mscr }
		run := func(d time.Duration) {
			for end := now + d; ; {
				at := p.due()
				if at == 0 || at > end {
					now = end
					return
				}
				if at < now {
					t.Fatalf("due at %v, it is %v", at, now)
				}
				now = at
				p.event(now)
			}
		}
		wasUp, failed := p.up != 0, true
		look := func() {
			up := p.up != 0
			failed = failed || wasUp && !up
			wasUp = up
		}
		write := func(reg uint32, v uint16) {
			inReset := p.inReset()
			p.write22(reg, v, now)
			if inReset {
				return
			}
			switch reg {
			case regANAR:
				o.anar = v & 0x2dff
			case regMSCR:
				o.mscr = v & 0xff00
			case regBMCR:
				if v&0x8000 != 0 {
					o.bmcr, o.anar, o.mscr = 0x1140, 0x01e1, 0x0300
					again()
					return
				}
				old := o.bmcr
				o.bmcr = v & 0x7dc0
				restart := v&0x1200 == 0x1200 || (old^v)&0x5800 != 0 || v&0x1000 == 0 && (old^v)&0x2140 != 0 ||
					v&0x4000 != 0 && (old^v)&0x2140 != 0
				if restart && v&0x4800 == 0 && o.plugged {
					again()
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"bmcr": func(t *rapid.T) {
				write(regBMCR, rapid.SampledFrom([]uint16{0x1140, 0x1340, 0x1200, 0x2100, 0x2000, 0x0100, 0, 0x0140, 0x1940, 0x0800,
					0x4140, 0x6100, 0x5140, 0x9140, 0x1540, 0x2140}).Draw(t, "v"))
				look()
			},
			"anar": func(t *rapid.T) {
				write(regANAR, rapid.SampledFrom([]uint16{0x01e1, 0x0de1, 0x0101, 0x0081, 0x0021, 0x0c01, 0x01e0, 0xffff}).Draw(t, "v"))
			},
			"mscr": func(t *rapid.T) {
				write(regMSCR, rapid.SampledFrom([]uint16{0, 0x100, 0x200, 0x300, 0xffff}).Draw(t, "v"))
			},
			"cable": func(t *rapid.T) {
				if in := rapid.Bool().Draw(t, "in"); in != o.plugged {
					o.plugged, p.plugged = in, in
					p.carrier(now)
					if in && o.bmcr&0x4800 == 0 {
						again()
					}
					look()
				}
			},
			"partner": func(t *rapid.T) {
				m := LinkModes(rapid.IntRange(1, 63).Draw(t, "modes"))
				o.fixed = rapid.Bool().Draw(t, "fixed")
				for i := range o.partner {
					o.partner[i] = m>>i&1 != 0
				}
				p.partner = Partner{Modes: m, Fixed: o.fixed}
				p.carrier(now)
				if o.plugged && o.bmcr&0x4800 == 0 {
					again()
				}
				look()
			},
			"time": func(t *rapid.T) {
				run(time.Duration(rapid.IntRange(0, 12_000_000).Draw(t, "ns")))
				look()
			},
			"bmsr": func(*rapid.T) {
				up := p.up != 0
				if got, want := p.read22(regBMSR)&bmsrLink != 0, up && !failed; got != want {
					t.Fatalf("link bit %v, want %v", got, want)
				}
				failed = !up
			},
			"settle": func(t *rapid.T) {
				run(2*defaultNegotiation + 2*defaultPHYReset)
				look()
				if p.due() != 0 {
					t.Fatalf("something is due at %v, it is %v", p.due(), now)
				}
				speed, full := o.link()
				if p.up.speed() != speed || speed != 0 && (p.up&modesHalf == 0) != full {
					t.Fatalf("link %#x, want %d, %v: %+v", p.up, speed, full, *o)
				}
				if v := p.read22(regBMCR); v != o.bmcr {
					t.Fatalf("BMCR %#x, want %#x", v, o.bmcr)
				}
				if v := p.read22(regANAR); v != o.anar {
					t.Fatalf("ANAR %#x, want %#x", v, o.anar)
				}
				p.read22(regBMSR)
				failed = !wasUp
				if v := p.read22(regBMSR); v&bmsrLink != 0 != wasUp {
					t.Fatalf("BMSR %#x", v)
				}
			},
		})
	})
}

// phyOf is a complete PHYConfig.
func phyOf(t interface{ Fatal(...any) }) PHYConfig {
	c := PHYConfig{Address: 1}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	return c
}
