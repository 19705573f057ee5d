package sim

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// l34 is what a test writes to a layer 3 and layer 4 filter.
type l34 struct {
	ctrl  r4.L3L4Control
	ports r4.Layer4Ports
	addr  [4]uint32
}

func (g *rig) setL34(n int, f l34) {
	at := func(off uint32) uint32 { return off + uint32(n)*r4.L3L4Stride }
	g.r.Store32(at(uint32(r4.MACLayer4Address)), uint32(f.ports))
	for i, a := range f.addr {
		g.r.Store32(at(uint32(r4.MACLayer3Addr))+uint32(i)*4, a)
	}
	g.r.Store32(at(uint32(r4.MACL3L4Control)), uint32(f.ctrl))
}

// flow is the frame of a datagram from 192.0.2.1 port 0x1234 to 198.51.100.7 port 53, or
// between 2001:db8::1:2 and 2001:db8::ff.
func flow(d datagram) []byte {
	d.l4 = append([]byte{0x12, 0x34, 0, 53}, d.l4[4:]...)
	f := d.padded(40).bytes()
	h := f[headerLen+vlanLen*len(d.tags):]
	if d.v6 {
		copy(h[8:], []byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2})
		copy(h[24:], []byte{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff})
		return f
	}
	copy(h[12:], []byte{192, 0, 2, 1, 198, 51, 100, 7})
	n := int(h[0]&0xf) * 4
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^refSum(h[:n]))
	return f
}

func withL34(n int) rigOption { return withConfig(func(c *Config) { c.L3L4Filters = n }) }

// TestL3L4Filters: which packets a filter lets through, and the status of those.
func TestL3L4Filters(t *testing.T) {
	const (
		src4, dst4  = 0xc0000201, 0xc6336407
		sport, port = 0x1234, 0x35
	)
	src6 := [4]uint32{0x00010002, 0, 0, 0x20010db8}
	dst6 := [4]uint32{0x000000ff, 0, 0, 0x20010db8}
	ports := r4.L4SP.Of(sport) | r4.L4DP.Of(port)
	sa := func(c r4.L3L4Control, a uint32) l34 { return l34{r4.L3SAM | c, 0, [4]uint32{a, 0xffffffff}} }
	da := func(c r4.L3L4Control, a uint32) l34 { return l34{r4.L3DAM | c, 0, [4]uint32{0xffffffff, a}} }
	six := func(c r4.L3L4Control, a [4]uint32) l34 { return l34{r4.L3PEN | c, 0, a} }
	sp := func(c r4.L3L4Control, p uint32) l34 {
		return l34{r4.L4SPM | c, r4.L4SP.Of(p) | r4.L4DP.Mask(), [4]uint32{}}
	}
	dp := func(c r4.L3L4Control, p uint32) l34 {
		return l34{r4.L4DPM | c, r4.L4DP.Of(p) | r4.L4SP.Mask(), [4]uint32{}}
	}
	with := func(a, b l34) l34 {
		a.ctrl |= b.ctrl
		a.ports = b.ports
		return a
	}
	const l3, l4 = r4.L3FM, r4.L4FM
	u, s := udp(1, 2, 3), tcp(4)
	for _, c := range []struct {
		name    string
		filters []l34
		frame   datagram
		pass    bool
		status  r4.RDES2
	}{
		{"no filter", nil, u, true, 0},
		{"IPv4 source", []l34{sa(0, src4)}, u, true, l3},
		{"another IPv4 source", []l34{sa(0, src4+1)}, u, false, 0},
		{"IPv4 source, inverse", []l34{sa(r4.L3SAIM, src4)}, u, false, 0},
		{"another IPv4 source, inverse", []l34{sa(r4.L3SAIM, src4+1)}, u, true, l3},
		{"IPv4 destination", []l34{da(0, dst4)}, s, true, l3},
		{"another IPv4 destination", []l34{da(0, dst4+1)}, s, false, 0},
		{"IPv4 destination, inverse", []l34{da(r4.L3DAIM, dst4)}, s, false, 0},
		{"another IPv4 destination, inverse", []l34{da(r4.L3DAIM, dst4^1)}, s, true, l3},
		{"both addresses", []l34{{r4.L3SAM | r4.L3DAM, 0, [4]uint32{src4, dst4}}}, u, true, l3},
		{"one address of two", []l34{{r4.L3SAM | r4.L3DAM, 0, [4]uint32{src4, dst4 + 1}}}, u, false, 0},
		{"one address of two, inverse", []l34{{r4.L3SAM | r4.L3DAM | r4.L3DAIM, 0, [4]uint32{src4, dst4 + 1}}}, u, true, l3},
		{"inverse bits alone", []l34{{r4.L3SAIM | r4.L3DAIM | r4.L4SPIM | r4.L4DPIM, 0, [4]uint32{}}}, u, true, 0},
		{"low bits of the source", []l34{sa(r4.L3HSBM.Of(4), src4^0xf)}, u, true, l3},
		{"one bit above", []l34{sa(r4.L3HSBM.Of(4), src4^0x1f)}, u, false, 0},
		{"low bits of the destination", []l34{da(r4.L3HDBM.Of(31), dst4^0x7fffffff)}, u, true, l3},
		{"the last bit of the destination", []l34{da(r4.L3HDBM.Of(31), dst4^0x80000000)}, u, false, 0},
		{"the bits of the source are not the destination's", []l34{da(r4.L3HSBM.Of(31), dst4^1)}, u, false, 0},
		{"IPv6 source", []l34{six(r4.L3SAM, src6)}, u.as6(), true, l3},
		{"another IPv6 source", []l34{six(r4.L3SAM, dst6)}, u.as6(), false, 0},
		{"IPv6 source, inverse", []l34{six(r4.L3SAM|r4.L3SAIM, src6)}, u.as6(), false, 0},
		{"IPv6 destination", []l34{six(r4.L3DAM, dst6)}, s.as6(), true, l3},
		{"another IPv6 destination", []l34{six(r4.L3DAM, src6)}, s.as6(), false, 0},
		{"another IPv6 destination, inverse", []l34{six(r4.L3DAM|r4.L3DAIM, src6)}, s.as6(), true, l3},
		{"first bits of an IPv6 address", []l34{six(r4.L3SAM|r4.L3HSBM.Of(17), [4]uint32{0x0000ffff, 0, 0, 0x20010db8})}, u.as6(), true, l3},
		{"too few of them", []l34{six(r4.L3SAM|r4.L3HSBM.Of(15), [4]uint32{0x0000ffff, 0, 0, 0x20010db8})}, u.as6(), false, 0},
		{"96 bits of an IPv6 address free", []l34{six(r4.L3SAM|r4.L3HDBM.Of(3), [4]uint32{1, 2, 3, 0x20010db8})}, u.as6(), true, l3},
		{"127 bits of an IPv6 address free", []l34{six(r4.L3SAM|r4.L3HDBM.Of(3)|r4.L3HSBM.Of(31), [4]uint32{1, 2, 3, 0x7fffffff})}, u.as6(), true, l3},
		{"128 bits of an IPv6 address", []l34{six(r4.L3SAM|r4.L3HDBM.Of(3)|r4.L3HSBM.Of(31), [4]uint32{1, 2, 3, 0x80000000})}, u.as6(), false, 0},
		{"IPv6 in a filter for IPv4", []l34{sa(0, 5)}, u.as6(), true, 0},
		{"IPv4 in a filter for IPv6", []l34{six(r4.L3SAM, src6)}, u, true, 0},
		{"UDP source port", []l34{sp(r4.L4PEN, sport)}, u, true, l4},
		{"another UDP source port", []l34{sp(r4.L4PEN, sport+1)}, u, false, 0},
		{"UDP source port, inverse", []l34{sp(r4.L4PEN|r4.L4SPIM, sport)}, u, false, 0},
		{"UDP destination port", []l34{dp(r4.L4PEN, port)}, u.as6(), true, l4},
		{"UDP destination port, inverse", []l34{dp(r4.L4PEN|r4.L4DPIM, port)}, u.as6(), false, 0},
		{"another UDP destination port, inverse", []l34{dp(r4.L4PEN|r4.L4DPIM, port+1)}, u, true, l4},
		{"TCP source port", []l34{sp(0, sport)}, s, true, l4},
		{"TCP source port, inverse", []l34{sp(r4.L4SPIM, sport)}, s, false, 0},
		{"TCP destination port", []l34{dp(0, port)}, s, true, l4},
		{"another TCP destination port", []l34{dp(0, port+1)}, s.as6(), false, 0},
		{"both ports", []l34{{r4.L4SPM | r4.L4DPM, ports, [4]uint32{}}}, s, true, l4},
		{"one port of two", []l34{{r4.L4SPM | r4.L4DPM, ports + 1, [4]uint32{}}}, s, false, 0},
		{"UDP in a filter for TCP", []l34{dp(0, 5)}, u, true, 0},
		{"TCP in a filter for UDP", []l34{dp(r4.L4PEN, 5)}, s, true, 0},
		{"address and port", []l34{with(sa(0, src4), dp(r4.L4PEN, port))}, u, true, l3 | l4},
		{"address without port", []l34{with(sa(0, src4), dp(r4.L4PEN, port+1))}, u, false, 0},
		{"port without address", []l34{with(sa(0, src4+1), dp(r4.L4PEN, port))}, u, false, 0},
		{"address, and a port of the other protocol", []l34{with(sa(0, src4), dp(r4.L4PEN, 5))}, s, true, l3},
		{"port, and an address of the other version", []l34{with(six(r4.L3SAM, src6), dp(r4.L4PEN, port))}, u, true, 0},
		{"the second filter", []l34{sa(0, src4+1), da(0, dst4)}, u, true, l3 | r4.L3L4FM.Of(1)},
		{"the lower of two", []l34{dp(0, 5), sa(0, src4), dp(r4.L4PEN, port)}, u, true, l3 | r4.L3L4FM.Of(1)},
		{"the last of four", []l34{dp(r4.L4PEN, 5), sa(0, 5), da(0, 5), dp(r4.L4PEN, port)}, u, true, l4 | r4.L3L4FM.Of(3)},
		{"none of two", []l34{sa(0, src4+1), da(0, dst4+1)}, u, false, 0},
		{"behind a tag", []l34{sa(0, src4)}, u.tag(5), true, l3},
		{"another behind a tag", []l34{sa(0, src4+1)}, u.tag(5), false, 0},
		{"behind options", []l34{dp(r4.L4PEN, port)}, u.options(1, 1, 1, 1), true, l4},
		{"ICMP", []l34{sa(0, 5)}, icmp(1), true, 0},
		{"fragment", []l34{sa(0, 5)}, u.fragment(0x2000), true, 0},
	} {
		for _, f := range []r4.PacketFilter{0, r4.IPFE, r4.IPFE | r4.RA, r4.IPFE | r4.PR} {
			t.Run(c.name+"/"+f.String(), func(t *testing.T) {
				g := newRig(t, withL34(4))
				g.open()
				r4.MACConfiguration.Update(g.r, 0, r4.IPC)
				r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
				r4.MACPacketFilter.Store(g.r, f)
				for i, l := range c.filters {
					g.setL34(i, l)
				}
				g.w.inject(flow(c.frame))
				g.step()
				_, w, ok := g.recv()
				if want := c.pass || f&r4.IPFE == 0 || f&r4.RA != 0; ok != want {
					t.Fatalf("received %v, want %v", ok, want)
				}
				mask := l3 | l4 | r4.L3L4FM.Mask()
				if ok && r4.RDES2(w[2])&mask != c.status {
					t.Errorf("RDES2 %#x, want %#x", r4.RDES2(w[2])&mask, c.status)
				}
				if s := g.d.Stats(); !ok && s.RxFiltered != 1 {
					t.Errorf("%+v", s)
				}
				g.clean()
			})
		}
	}
}

// TestL3L4BadHeader: a packet whose header is wrong is none that a filter looks at.
func TestL3L4BadHeader(t *testing.T) {
	for name, at := range map[string]int{"version": headerLen, "checksum": headerLen + 10, "good": len(flow(udp(1))) - 1} {
		g := newRig(t, withL34(1))
		g.open()
		r4.MACConfiguration.Update(g.r, 0, r4.IPC)
		r4.MACPacketFilter.Store(g.r, r4.IPFE)
		g.setL34(0, l34{r4.L3SAM, 0, [4]uint32{5}})
		f := flow(udp(1))
		f[at] ^= 0x20
		g.w.inject(f)
		g.step()
		if _, w, ok := g.recv(); ok == (name == "good") || ok && r4.RDES2(w[2])&r4.L3FM != 0 {
			t.Errorf("%s: received %v, %08x", name, ok, w)
		}
		g.clean()
	}
}

// TestL3L4NonTCPUDP: DNTU drops packets that are neither, and leaves alone what is not
// IP.
func TestL3L4NonTCPUDP(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		keeps bool
	}{
		{"UDP", udp(1, 2).padded(40).bytes(), true},
		{"TCP over IPv6", tcp(1).as6().padded(40).bytes(), true},
		{"ICMP", icmp(1, 2).padded(40).bytes(), false},
		{"ICMPv6", icmp6(1, 2).as6().padded(40).bytes(), false},
		{"fragment", udp(1).fragment(0x2000).padded(40).bytes(), false},
		{"tagged and not IP", tagged(80, 5, 1), true},
		{"not IP", testFrame(80, 1), true},
	} {
		for _, quiet := range []bool{false, true} {
			g := newRig(t, withL34(1), withConfig(func(c *Config) { c.NoAudit = quiet }))
			g.open()
			r4.MACConfiguration.Update(g.r, 0, r4.IPC)
			r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
			r4.MACPacketFilter.Store(g.r, r4.DNTU)
			g.w.inject(c.frame)
			g.step()
			if _, _, ok := g.recv(); ok != c.keeps {
				t.Errorf("%s: received %v", c.name, ok)
			}
			g.clean()
		}
	}
}

// TestL3L4NeedsTheFeature: a core without filters has no registers and no bits of them,
// and says so.
func TestL3L4NeedsTheFeature(t *testing.T) {
	for _, n := range []int{0, 1, 4, 8} {
		g := newRig(t, withL34(n))
		g.open()
		if v := r4.L3L4FNUM.Get(r4.MACHWFeature1.Load(g.r)); v != uint32(n) {
			t.Errorf("L3L4FNUM %d, want %d", v, n)
		}
		r4.MACPacketFilter.Store(g.r, ^r4.PacketFilter(0))
		if has := r4.MACPacketFilter.Load(g.r)&(r4.IPFE|r4.DNTU) != 0; has != (n > 0) {
			t.Errorf("%d filters: IPFE and DNTU %v", n, has)
		}
		for i := range r4.MaxL3L4 {
			g.setL34(i, l34{^r4.L3L4Control(0), ^r4.Layer4Ports(0), [4]uint32{1, 2, 3, 4}})
			off := uint32(i) * r4.L3L4Stride
			want := r4.L3L4Control(0)
			if i < n {
				want = 0x003dfffd
			}
			if v := r4.L3L4Control(g.r.Load32(uint32(r4.MACL3L4Control) + off)); v != want {
				t.Errorf("filter %d of %d: %#x, want %#x", i, n, uint32(v), uint32(want))
			}
			if v := g.r.Load32(uint32(r4.MACLayer3Addr) + off + 12); (v == 4) != (i < n) {
				t.Errorf("filter %d of %d: address %#x", i, n, v)
			}
		}
	}
}

// TestL3L4Misuse: the filters need the receive checksum engine, and of an IPv6 packet
// they compare one address.
func TestL3L4Misuse(t *testing.T) {
	for _, c := range []struct {
		name  string
		ipc   r4.Configuration
		ctrl  r4.L3L4Control
		kinds []ViolationKind
	}{
		{"fine", r4.IPC, r4.L3SAM, nil},
		{"without the engine", 0, r4.L3SAM, []ViolationKind{ConfigInvalid}},
		{"without a match", 0, r4.L3PEN | r4.L3SAIM, nil},
		{"IPv4 with both", r4.IPC, r4.L3SAM | r4.L3DAM, nil},
		{"IPv6 with both", r4.IPC, r4.L3PEN | r4.L3SAM | r4.L3DAM, []ViolationKind{ConfigInvalid}},
	} {
		g := newRig(t, withL34(1))
		g.open()
		r4.MACConfiguration.Update(g.r, 0, c.ipc)
		g.setL34(0, l34{c.ctrl, 0, [4]uint32{}})
		r4.MACPacketFilter.Store(g.r, r4.IPFE)
		g.w.inject(testFrame(60, 1))
		g.step()
		g.mustRecv(testFrame(60, 1))
		if len(c.kinds) == 0 {
			g.clean()
		} else {
			g.wantKinds(c.kinds...)
		}
	}
}

// TestL3L4Random: whatever stands in the filters, a packet passes without IPFE, and
// with it as one of the filters says; nothing panics.
func TestL3L4Random(t *testing.T) {
	g := newRig(t, withL34(8), withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.IPC)
	r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
	rapid.Check(t, func(rt *rapid.T) {
		d, _ := genDatagram(rt)
		for i := range 8 {
			g.setL34(i, l34{r4.L3L4Control(rapid.Uint32().Draw(rt, "ctrl")), r4.Layer4Ports(rapid.Uint32().Draw(rt, "ports")),
				[4]uint32{rapid.Uint32().Draw(rt, "a0"), 0, 0, rapid.Uint32().Draw(rt, "a3")}})
		}
		r4.MACPacketFilter.Store(g.r, r4.PR|r4.PM)
		f := d.padded(40).bytes()
		f = f[:rapid.IntRange(14, len(f)).Draw(rt, "length")]
		if len(f) < minPadded {
			f = append(f, make([]byte, minPadded-len(f))...)
		}
		var ok [2]bool
		var w [4]uint32
		for i, ipfe := range []r4.PacketFilter{0, r4.IPFE} {
			r4.MACPacketFilter.Update(g.r, 0, ipfe)
			g.w.inject(f)
			g.step()
			var got [4]uint32
			if _, got, ok[i] = g.recv(); ok[i] {
				g.post(1)
			}
			if i == 0 {
				w = got
			}
		}
		if !ok[0] {
			rt.Fatal("dropped without IPFE")
		}
		if matched := r4.RDES2(w[2])&(r4.L3FM|r4.L4FM) != 0; matched && !ok[1] {
			rt.Fatalf("a packet with a match (%08x) was dropped", w)
		}
	})
}
