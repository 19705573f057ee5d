package stmmac_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// engines are who computes the checksums of frames that are sent.
var engines = []struct {
	name   string
	c      rigConfig
	device bool
}{
	{"device", rigConfig{}, true},
	{"no engine", rigConfig{sim: sim.Config{NoTxChecksum: true}}, false},
	{"not wanted", rigConfig{opts: []stmmac.Option{stmmac.WithChecksums(true, false)}}, false},
}

// counted fails unless the frames with TxCsum were done by these.
func (r *rig) counted(device, driver, none int) {
	r.Helper()
	s := r.txStats()
	if got := [3]uint64{s["csum_device"], s["csum_driver"], s["csum_none"]}; got != [3]uint64{uint64(device), uint64(driver), uint64(none)} {
		r.Errorf("checksums by the device, the driver, nobody: %v, want %d, %d, %d", got, device, driver, none)
	}
}

// TestD35 asks for checksums in fields that hold the right sum, that of the
// pseudo header, or nonsense: the wire has the right one each time, and what it
// was not asked for stays as it is.
func TestD35(t *testing.T) { onEach(t, testD35) }

func testD35(t *testing.T) {
	vector := ipv4(udp, []byte{0x11, 0x11, 0x22, 0x22, 0, 10, 0, 0, 0xab, 0xcd})
	zero := ipv4(udp, []byte{0x11, 0x11, 0x22, 0x22, 0, 10, 0, 0, 0x48, 0xa3})
	for _, e := range engines {
		for _, n := range queueCounts(t, 1, 2, 4) {
			t.Run(fmt.Sprintf("%s, %d queues", e.name, n), func(t *testing.T) {
				r := newRig(t, queued(n, e.c))
				sent := 0
				ask := func(f, want []byte, what string) {
					t.Helper()
					r.leaves(sent%n, r.asked(f, 1<<12), want, "%s", what)
					sent++
				}
				if v := binary.BigEndian.Uint16(fixed(vector)[40:]); v != 0x9cd5 {
					t.Fatalf("%#04x", v)
				}
				if v := binary.BigEndian.Uint16(fixed(zero)[40:]); v != 0xffff {
					t.Fatalf("%#04x", v)
				}
				ask(vector, fixed(vector), "the vector")
				ask(fixed(vector), fixed(vector), "the vector, filled")
				seed := bytes.Clone(vector)
				seed[40], seed[41] = 0x84, 0x1f
				ask(seed, fixed(vector), "the vector with the sum of the pseudo header")
				ask(zero, fixed(zero), "a sum of 0")
				for size := range 19 { // and the gap that the case list names
					for i, k := range plainKinds {
						f := k.wrap(k.proto, payload(k.proto, size, uint64(size)))
						ask(f, fixed(f), fmt.Sprintf("%s, %d bytes", k.name, size))
						ask(fixed(f), fixed(f), fmt.Sprintf("%s, %d bytes, filled", k.name, size))
						r.leaves(i%n, r.buf(f, 1<<12), f, "%s, %d bytes, not asked for", k.name, size)
					}
				}
				if e.device {
					r.counted(sent, 0, 0)
				} else {
					r.counted(0, sent, 0)
				}
				r.settled()
			})
		}
	}
}

// fragments4 are the fragments of a packet for an MTU.
func fragments4(f []byte, mtu int) (list [][]byte) {
	l4, each := f[34:], (mtu-20)&^7
	for at := 0; at < len(l4); at += each {
		part := l4[at:min(at+each, len(l4))]
		p := slices.Concat(f[:34], part)
		binary.BigEndian.PutUint16(p[16:], uint16(20+len(part)))
		off := uint16(at / 8)
		if at+each < len(l4) {
			off |= 0x2000
		}
		binary.BigEndian.PutUint16(p[20:], off)
		list = append(list, p)
	}
	return list
}

func fragments6(f []byte, mtu int) (list [][]byte) {
	l4, each := f[54:], (mtu-48)&^7
	for at := 0; at < len(l4); at += each {
		part := l4[at:min(at+each, len(l4))]
		off := uint16(at)
		if at+each < len(l4) {
			off |= 1
		}
		h := binary.BigEndian.AppendUint32([]byte{f[20], 0, byte(off >> 8), byte(off)}, 0x12345678)
		p := slices.Concat(f[:54], h, part)
		binary.BigEndian.PutUint16(p[18:], uint16(8+len(part)))
		p[20] = 44
		list = append(list, p)
	}
	return list
}

// TestD36 asks for the checksums of fragments: they get that of their header
// and no other, so the datagram verifies when it is put together.
func TestD36(t *testing.T) { onEach(t, testD36) }

func testD36(t *testing.T) {
	for _, e := range engines {
		for _, c := range []struct {
			name string
			f    []byte
			mtu  int
			cut  func([]byte, int) [][]byte
			v6   bool
		}{
			{"UDP, MTU 1500", fixed(ipv4(udp, payload(udp, 2000, 1))), 1500, fragments4, false},
			{"UDP, MTU 800", fixed(ipv4(udp, payload(udp, 2000, 2))), 800, fragments4, false},
			{"ICMP, MTU 800", fixed(ipv4(icmp4, payload(icmp4, 2000, 2))), 800, fragments4, false},
			{"UDP6", fixed(ipv6(udp, payload(udp, 4000, 3))), 1500, fragments6, true},
		} {
			t.Run(e.name+", "+c.name, func(t *testing.T) {
				r := newRig(t, rigConfig{sim: e.c.sim, opts: append(slices.Clone(e.c.opts), stmmac.WithMTU(c.mtu))})
				list := c.cut(c.f, c.mtu)
				if len(list) < 2 {
					t.Fatal("no fragments")
				}
				var joined []byte
				for _, f := range list {
					if !c.v6 {
						f[24], f[25] = 0xde, 0xad
					}
					r.put(0, r.asked(f, 700))
					r.step()
					got := r.wire.take()
					if len(got) != 1 || !bytes.Equal(got[0][:len(f)], fixed(f)) {
						t.Fatalf("a fragment left as\n%.80x, want\n%.80x", got, fixed(f))
					}
					skip := 34
					if c.v6 {
						skip = 62
					}
					joined = append(joined, got[0][skip:len(f)]...)
				}
				if want := c.f[len(c.f)-len(joined):]; !bytes.Equal(joined, want) {
					t.Error("the datagram is another one")
				}
				if c.v6 {
					r.counted(0, 0, len(list))
				} else {
					r.counted(0, len(list), 0)
				}
				r.settled()
			})
		}
	}
}

// TestD38 sends frames of all lengths around what the engine can do, which
// follows from FIFO and bus, up to the longest that the FIFO takes.
func TestD38(t *testing.T) { onEach(t, testD38) }

func testD38(t *testing.T) {
	for _, c := range []struct{ fifo, queues, mtu int }{
		{2048, 1, 2022}, {4096, 1, 4070}, {16384, 1, 9000}, {16384, 4, 4070}, {4096, 2, 1500},
	} {
		if c.queues > on(t).limits().queues {
			continue
		}
		for _, bus := range []int{4, 8, 16} {
			for _, pbl := range []int{0, 32} {
				t.Run(fmt.Sprintf("FIFO %d, %d queues, bus %d, PBL %d", c.fifo, c.queues, bus, pbl), func(t *testing.T) {
					r := newRig(t, queued(c.queues, rigConfig{
						sim:  sim.Config{TxFIFO: c.fifo, RxFIFO: 1 << 16, BusBytes: bus},
						opts: []stmmac.Option{stmmac.WithMTU(c.mtu), with(func(c *stmmac.Config) { c.AXI.PBL = pbl })},
					}))
					longest := c.mtu + 22
					device := func(n int) bool {
						before := r.txStats()["csum_device"]
						f := ofLen(n, n, uint64(n))
						r.leaves(n%c.queues, r.asked(f, 1500), fixed(f), "%d bytes", n)
						return r.txStats()["csum_device"] > before
					}
					// the longest frame that the device does
					lo, hi := 81, longest+1 // the shortest of all kinds has 82
					for lo < hi-1 {
						if mid := (lo + hi) / 2; device(mid) {
							lo = mid
						} else {
							hi = mid
						}
					}
					t.Logf("up to %d bytes", lo)
					if share := c.fifo / c.queues; pbl == 0 && lo < min(share/2, longest) {
						t.Errorf("the device does frames up to %d bytes with %d bytes of FIFO", lo, share)
					}
					for n := max(lo-64, 82); n <= min(lo+64, longest); n++ {
						if device(n) != (n <= lo) {
							t.Errorf("%d bytes are done by the wrong side, the limit is %d", n, lo)
						}
					}
					for n := max(lo+65, longest-64); n <= longest; n++ {
						device(n)
					}
					for n := longest + 1; n <= longest+64; n += 9 {
						b := r.asked(ofLen(n, n, 1), 1500)
						_, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
						mustFail(t, err, stmmac.ErrFrameTooLong)
						r.pool.Free(b)
					}
					r.settled()
				})
			}
		}
	}
}

// TestD38Silent: an engine that leaves out long frames without a word is found
// by the self-test, and the driver does those.
func TestD38Silent(t *testing.T) { onEach(t, testD38Silent) }

func testD38Silent(t *testing.T) {
	tried := with(func(c *stmmac.Config) { c.SelfTest = true })
	for _, c := range []struct {
		limit, mtu int
		most       int // the longest frame that may be the device's
	}{
		{0, 1500, 1522}, {0, 9000, 9014}, {1000, 1500, 0}, {1514, 1500, 1514}, {3000, 9000, 1514}, {1000, 9000, 0}, {100, 1500, 0}, {9014, 9000, 9014},
	} {
		t.Run(fmt.Sprintf("%d bytes, MTU %d", c.limit, c.mtu), func(t *testing.T) {
			r := newRig(t, rigConfig{sim: sim.Config{TxFIFO: 1 << 14, RxFIFO: 1 << 15, Faults: sim.Faults{TxChecksumLimit: c.limit}},
				opts: []stmmac.Option{stmmac.WithMTU(c.mtu), tried}})
			look := func() {
				t.Helper()
				for _, n := range []int{62, 100, 101, 999, 1000, 1001, 1514, 1515, 1522, 3000, 3001, 9014, 9015, 9022} {
					if n > r.mac.MTU()+22 {
						continue
					}
					before := r.txStats()["csum_device"]
					f := ofLen(0, n, uint64(n))
					r.leaves(0, r.asked(f, 1500), fixed(f), "%d bytes", n)
					if by := r.txStats()["csum_device"] > before; by != (n <= c.most) {
						t.Errorf("%d bytes by the device: %v", n, by)
					}
				}
			}
			look()
			// What was not tried is not trusted with a longer MTU either.
			r.must(r.mac.SetMTU(t.Context(), 9000))
			look()
			r.settled()
		})
	}
}

// TestD39 puts up to two extension headers in front of what the engine knows:
// the driver does those.
func TestD39(t *testing.T) { onEach(t, testD39) }

func testD39(t *testing.T) {
	headers := map[string]func(next byte) []byte{
		"hop-by-hop":  func(next byte) []byte { return []byte{next, 0, 5, 2, 0, 0, 1, 0} },
		"routing":     func(next byte) []byte { return append([]byte{next, 2, 0, 0}, noise(20, 1)...) },
		"destination": func(next byte) []byte { return append([]byte{next, 1, 1, 12}, make([]byte, 12)...) },
		"fragment":    func(next byte) []byte { return []byte{next, 0, 0, 0, 1, 2, 3, 4} },
	}
	numbers := map[string]byte{"hop-by-hop": 0, "routing": 43, "destination": 60, "fragment": 44}
	for _, e := range engines {
		for _, n := range queueCounts(t, 1, 4) {
			t.Run(fmt.Sprintf("%s, %d queues", e.name, n), func(t *testing.T) {
				r := newRig(t, queued(n, e.c))
				device, driver, seq := 0, 0, 0
				for _, proto := range []byte{tcp, udp, icmp6} {
					f := ipv6(proto, payload(proto, 33, 1))
					r.leaves(0, r.asked(f, 50), fixed(f), "protocol %d", proto)
					if e.device {
						device++
					} else {
						driver++
					}
					for one, h1 := range headers {
						f := ipv6(numbers[one], slices.Concat(h1(proto), payload(proto, 34, 1)))
						r.leaves(seq%n, r.asked(f, 1<<12), fixed(f), "%s, protocol %d", one, proto)
						for two, h2 := range headers {
							f := ipv6(numbers[one], slices.Concat(h1(numbers[two]), h2(proto), payload(proto, 34, 1)))
							r.leaves(seq%n, r.asked(f, 30+seq%40), fixed(f), "%s, %s, protocol %d", one, two, proto)
							seq++
						}
					}
				}
				r.counted(device, driver+3*(4+16), 0)
				r.settled()
			})
		}
	}
}

// TestD40 sends frames with a trailer, which the engine would sum, and with a tag
// in front of the EtherType, behind which nobody finds the packet.
func TestD40(t *testing.T) { onEach(t, testD40) }

func testD40(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			r := newRig(t, e.c)
			driver, none := 0, 0
			for i, k := range plainKinds {
				for _, trailer := range []int{1, 4} {
					f := append(ofLen(i, 80+i, 1), bytes.Repeat([]byte{0xff}, trailer)...)
					r.leaves(0, r.asked(f, 1<<12), fixed(f), "%s, %d bytes behind it", k.name, trailer)
					driver++
				}
				// a pad that somebody else put there
				f := k.wrap(k.proto, payload(k.proto, 0, 1))
				if len(f) < 60 {
					f = append(f, bytes.Repeat([]byte{0xff}, 60-len(f))...)
					r.leaves(0, r.asked(f, 1<<12), fixed(f), "%s and a pad", k.name)
					driver++
				}
				f = ofLen(i, 90, 1)
				f = slices.Concat(f[:12], noise(8, 1), f[12:])
				r.leaves(0, r.asked(f, 1<<12), f, "%s behind another tag", k.name)
				none++
			}
			r.counted(0, driver, none)
			r.settled()
		})
	}
}

// TestD41 looks at the descriptors: CIC stands in word 3 of the first one of a
// frame alone, VTIR in word 2, and what is reserved is 0.
func TestD41(t *testing.T) {
	regs := fakeGMAC4()
	regs.Set(0x011c, regs.Peek(0x011c)|uint32(r4.SAVLANINS|r4.TXCOESEL))
	d := newFakeDevice(regs)
	pool, err := pagepool.New(d, 64)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}),
		stmmac.WithRings(16, 16), stmmac.WithPool(pool), noSelfTest)
	if err != nil {
		t.Fatal(err)
	}
	ring := d.memory[uint64(regs.Peek(0x1114))]
	f := ofLen(0, 90, 1)
	ask := func(g tagging, flags pagepool.Flags, each int) {
		b := g.beside(chain(t, pool, f, each))
		b.Flags |= flags
		if n, err := m.Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	ask(tagging{}, pagepool.TxCsum, 90)
	ask(tagging{}, pagepool.TxCsum, 40)
	ask(tagging{there: true, outer: 0xf123}, pagepool.TxCsum, 50)
	ask(tagging{}, 0, 90)
	for i, want := range [][2]uint32{ // words 2 and 3
		{1<<31 | 90, 0xb003005a},
		{40, 0xa003005a}, {40, 0x80000000}, {1<<31 | 10, 0x90000000},
		{0, 0xc001f123}, {2<<14 | 50, 0xa003005a}, {1<<31 | 40, 0x90000000},
		{1<<31 | 90, 0xb000005a},
	} {
		if got := [2]uint32{binary.LittleEndian.Uint32(ring[16*i+8:]), binary.LittleEndian.Uint32(ring[16*i+12:])}; got != want {
			t.Errorf("descriptor %d: %#08x, want %#08x", i, got, want)
		}
	}
	if w := ring[16*4:][:8]; !bytes.Equal(w, make([]byte, 8)) {
		t.Errorf("the context descriptor has % x in words 0 and 1", w)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	d.mustUnmap(t)
}

// verdict is what the device found of the checksums of a received frame.
func verdict(b *pagepool.Buf) string {
	switch b.Flags & (pagepool.RxCsumGood | pagepool.RxCsumBad) {
	case 0:
		return "unknown"
	case pagepool.RxCsumGood:
		return "good"
	case pagepool.RxCsumBad:
		return "bad"
	}
	return "good and bad"
}

// verdictCase is a received frame and what a right engine says of it.
type verdictCase struct {
	name string
	f    []byte
	want string
}

// verdicts are frames of n bytes, where that is left open.
func verdicts(n int) (list []verdictCase) {
	one, two := tagging{there: true, outer: 5}, tagging{there: true, outer: 5, double: true, inner: 6}
	add := func(name string, f []byte, want string) { list = append(list, verdictCase{name, f, want}) }
	for i, k := range plainKinds {
		good := fixed(ofLen(i, n, uint64(i)))
		add(k.name, good, "good")
		for _, at := range []int{len(good) - 1, len(good) - 8} {
			bad := bytes.Clone(good)
			bad[at] ^= 0x10
			add(fmt.Sprintf("%s, byte %d is wrong", k.name, at), bad, "bad")
		}
		add(k.name+", tagged", one.among(good), "good")
		bad := one.among(good)
		bad[len(bad)-1] ^= 1
		add(k.name+", tagged, wrong", bad, "bad")
		add(k.name+" and a trailer", append(bytes.Clone(good), 1, 2, 3), "good")
		add(k.name+", two tags", two.among(good), "unknown")
		add(k.name+", S-VLAN", tagging{there: true, outer: 5, service: true}.among(good), "unknown")
	}
	head := fixed(ofLen(0, n, 1))
	head[22] ^= 1 // TTL
	add("a wrong IPv4 header", head, "bad")
	for i, f := range fragments4(fixed(ipv4(udp, payload(udp, 200, 1))), 150) {
		add(fmt.Sprintf("fragment %d", i), fixed(f), "unknown")
	}
	for i, f := range fragments6(fixed(ipv6(udp, payload(udp, 200, 1))), 150) {
		add(fmt.Sprintf("IPv6 fragment %d", i), f, "unknown")
	}
	add("another protocol", fixed(ipv4(132, noise(50, 1))), "unknown")
	add("not IP", frame(n, 1), "unknown")
	return list
}

// TestRxVerdicts receives frames that are right and wrong, in one buffer and in
// several, also taken many at a time.
func TestRxVerdicts(t *testing.T) {
	for _, c := range []struct {
		mtu, n int
	}{{1500, 90}, {1500, 1514}, {9000, 90}, {9000, 4000}} {
		for _, queues := range []int{1, 2, 4} {
			for _, fcs := range []bool{true, false} {
				t.Run(fmt.Sprintf("MTU %d, %d bytes, %d queues, FCS %v", c.mtu, c.n, queues, fcs), func(t *testing.T) {
					r := newRig(t, queued(queues, rigConfig{sim: sim.Config{RxFIFO: 1 << 17, TxFIFO: 1 << 17},
						opts: []stmmac.Option{stmmac.WithMTU(c.mtu), with(func(c *stmmac.Config) { c.StripFCS = !fcs })}}))
					list := verdicts(c.n)
					bufs := make([]*pagepool.Buf, 7)
					got := 0
					for i, v := range list {
						r.wire.deliver(v.f)
						if i%7 != 6 && i < len(list)-1 {
							continue
						}
						r.step()
						for k := r.mac.Rx(0).Recv(bufs); k > 0; k = r.mac.Rx(0).Recv(bufs) {
							for _, b := range bufs[:k] {
								p := make([]byte, b.FrameLen())
								b.CopyTo(p)
								if w := list[got]; !bytes.Equal(p, w.f) {
									t.Fatalf("%s: another frame", w.name)
								} else if verdict(b) != w.want {
									t.Errorf("%s: %s, want %s", w.name, verdict(b), w.want)
								}
								got++
							}
							r.pool.FreeBatch(bufs[:k])
							r.step()
						}
					}
					if got != len(list) {
						t.Errorf("%d of %d frames came", got, len(list))
					}
					r.onlyRx()
				})
			}
		}
	}
}

// TestD42: a status word that is not valid, or of an engine that was bypassed,
// says nothing, whatever stands in it.
func TestD42(t *testing.T) {
	for _, lie := range []sim.RxChecksumLies{sim.RxChecksumStaleError, sim.RxChecksumStaleGood, sim.RxChecksumBypassError} {
		for _, scribble := range []bool{false, true} {
			for _, mtu := range []int{1500, 9000} {
				r := newRig(t, rigConfig{sim: sim.Config{RxFIFO: 1 << 16, Faults: sim.Faults{RxChecksumLies: lie, ScribbleWriteBack: scribble}},
					opts: []stmmac.Option{stmmac.WithMTU(mtu)}})
				for _, v := range append(verdicts(90), verdicts(1400)...) {
					r.wire.deliver(v.f)
					b := r.takeOne(0)
					if got := verdict(b); got != "unknown" {
						t.Errorf("lie %d: %s: %s", lie, v.name, got)
					}
					p := make([]byte, b.FrameLen())
					if b.CopyTo(p); !bytes.Equal(p, v.f) {
						t.Errorf("lie %d: %s: another frame", lie, v.name)
					}
					r.pool.Free(b)
				}
				if s := r.mac.Rx(0).Stats(); s.Drops() != 0 {
					t.Errorf("%+v", s)
				}
				r.onlyRx()
			}
		}
	}
}

// TestNoRxEngine: without an engine, or when its feature bit lies, frames come
// and nobody has looked at them.
func TestNoRxEngine(t *testing.T) { onEach(t, testNoRxEngine) }

func testNoRxEngine(t *testing.T) {
	for name, c := range map[string]rigConfig{
		"no engine":  {sim: sim.Config{NoRxChecksum: true}},
		"not wanted": {opts: []stmmac.Option{stmmac.WithChecksums(false, true)}},
		"its feature bit lies": {sim: sim.Config{NoRxChecksum: true},
			wrap: claims(t, rxEngine)},
		"its feature bit lies and it is tried": {sim: sim.Config{NoRxChecksum: true}, opts: []stmmac.Option{with(func(c *stmmac.Config) { c.SelfTest = true })},
			wrap: claims(t, rxEngine)},
	} {
		for _, mtu := range []int{1500, 9000} {
			c := c
			c.opts = append(slices.Clone(c.opts), stmmac.WithMTU(mtu))
			r := newRig(t, c)
			for _, v := range verdicts(90) {
				r.wire.deliver(v.f)
				b := r.takeOne(0)
				if got := verdict(b); got != "unknown" {
					t.Errorf("%s: %s: %s", name, v.name, got)
				}
				r.pool.Free(b)
			}
			f := ofLen(1, 200, 1)
			r.leaves(0, r.asked(f, 1<<12), fixed(f), "%s: a frame that is sent", name)
			r.onlyRx()
		}
	}
}

// TestCsumOverBuffers cuts frames into buffers everywhere.
func TestCsumOverBuffers(t *testing.T) {
	for _, e := range engines {
		for _, n := range []int{1, 2, 4} {
			r := newRig(t, queued(n, e.c))
			for i, k := range plainKinds {
				for each := 1; each < 80; each += 3 {
					f := ofLen(i, 95+i, uint64(each))
					r.leaves(each%n, r.asked(f, each), fixed(f), "%s, %s in pieces of %d", e.name, k.name, each)
				}
			}
			r.settled()
		}
	}
}

// TestCsumGarbage asks for the checksums of what has none: it leaves as it is,
// also from full rings, and is counted.
func TestCsumGarbage(t *testing.T) { onEach(t, testCsumGarbage) }

func testCsumGarbage(t *testing.T) {
	for _, e := range engines {
		c := e.c
		c.opts = append(slices.Clone(c.opts), stmmac.WithRings(8, 8))
		r := newRig(t, c)
		ip := ofLen(0, 80, 1)
		set := func(at int, v byte) []byte { f := bytes.Clone(ip); f[at] = v; return f }
		list := [][]byte{
			frame(14, 0), frame(15, 1), frame(60, 2), frame(1500, 3),
			set(14, 0x65), set(14, 0x41), set(16, 0xff), set(17, 5), set(13, 0x06), ip[:14], ip[:33], ip[:60],
			ipv6(59, nil), ipv6(132, noise(40, 1)), ipv6(0, noise(1, 1)), ipv6(1, payload(icmp4, 10, 1)),
			slices.Concat(ip[:12], bytes.Repeat([]byte{0x81, 0, 0, 1}, 3), ip[12:]),
		}
		sent := 0
		var want [][]byte
		for round := range 20 {
			r.wire.block(round%2 == 0)
			for _, f := range list {
				b := r.asked(f, 30+round)
				n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
				if err != nil && len(f) < 7*(30+round) {
					t.Fatal(err)
				}
				if n == 0 {
					r.pool.Free(b)
					r.wire.block(false)
					r.step()
					continue
				}
				sent++
				want = append(want, f)
			}
			r.wire.block(false)
			r.step()
			r.onWire(want, "%s, round %d", e.name, round)
			want = nil
		}
		r.counted(0, 0, sent)
		if sent < 200 {
			t.Errorf("%d frames were sent", sent)
		}
		r.settled()
	}
}
