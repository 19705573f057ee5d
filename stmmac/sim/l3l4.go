package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// l34State is what the layer 3 and layer 4 filters say.
type l34State struct {
	active  bool // frames have to be looked at
	filters []l34Filter
	told    bool // the audit has told of filters without the checksum engine
}

// l34Filter is a filter that compares something.
type l34Filter struct {
	n        uint8
	ctrl     r4.L3L4Control
	ports    r4.Layer4Ports
	addr     [2]uint32 // IPv4: source and destination
	mask     [2]uint32
	hi, lo   uint64 // IPv6
	hiM, loM uint64
}

// deriveL34 takes the registers of the filters over.
func (m *Model) deriveL34() {
	s := &m.mac.l34
	s.filters = s.filters[:0]
	for n := range m.cfg.L3L4Filters {
		off := uint32(n) * r4.L3L4Stride
		reg := func(at uint32) uint32 { return m.regs.get(off + at) }
		f := l34Filter{n: uint8(n), ctrl: r4.L3L4Control(reg(uint32(r4.MACL3L4Control))),
			ports: r4.Layer4Ports(reg(uint32(r4.MACLayer4Address)))}
		if f.ctrl&(r4.L3SAM|r4.L3DAM|r4.L4SPM|r4.L4DPM) == 0 {
			continue
		}
		var a [4]uint32
		for i := range a {
			a[i] = reg(uint32(r4.MACLayer3Addr) + 4*uint32(i))
		}
		source, dest := r4.L3HSBM.Get(f.ctrl), r4.L3HDBM.Get(f.ctrl)
		f.mask = [2]uint32{^uint32(0) << source, ^uint32(0) << dest}
		f.addr = [2]uint32{a[0], a[1]}
		free := source | dest&3<<5
		f.hiM, f.loM = ^uint64(0), ^uint64(0)<<free
		if free >= 64 {
			f.hiM, f.loM = ^uint64(0)<<(free-64), 0
		}
		f.lo, f.hi = uint64(a[1])<<32|uint64(a[0]), uint64(a[3])<<32|uint64(a[2])
		s.filters = append(s.filters, f)
	}
	asked := len(s.filters) > 0 || m.mac.filter&r4.DNTU != 0
	s.active = asked && m.mac.conf&r4.IPC != 0
	s.told = s.told && asked && !s.active
	if asked && !s.active && !s.told && m.mac.conf&r4.RE != 0 {
		s.told = true
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1}, "layer 3 and layer 4 filters without IPC: they look at nothing")
	}
}

// isL34Control says whether a register is MAC_L3_L4_Controlx.
func isL34Control(id uint32) bool {
	base := uint32(r4.MACL3L4Control)
	return id >= base && id < base+r4.MaxL3L4*r4.L3L4Stride && (id-base)%r4.L3L4Stride == 0
}

// auditL34 looks at a store to MAC_L3_L4_Controlx.
func (m *Model) auditL34(off uint32, now r4.L3L4Control) {
	if now&(r4.L3PEN|r4.L3SAM|r4.L3DAM) == r4.L3PEN|r4.L3SAM|r4.L3DAM {
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1},
			"%s = %#x: of an IPv6 packet one address is compared, not both", m.regName(off), uint32(now))
	}
}

// filterL34 is the layer 3 and layer 4 filter (databook: MAC_L3_L4_Controlx,
// MAC_Packet_Filter, RDES2). It stands behind the receive checksum engine, which it
// needs, and looks at TCP and UDP packets that the engine understands. A layer of a
// filter that is not enabled, or that is for the other IP version or the other
// protocol, is bypassed; a packet matches a filter if none of the other layers
// disagrees and one agrees. It fails when a filter disagreed and none matched.
//
// The status is that of the lowest filter that matched, of a layer that matched while
// the other is disabled, or matched too; layer 3 has it with a bypassed layer 4, but
// not the other way round.
//
// What is IP and neither TCP nor UDP is bypassed, or fails with DNTU; so are
// fragments, whose ports the engine does not know. The databook does not speak of
// these, nor of packets with a wrong IP header, which are bypassed.
func (s *macState) filterL34(data []byte) (fails bool, status r4.RDES2) {
	off, etype := s.layer3(data)
	if etype != typeIPv4 && etype != typeIPv6 {
		return false, 0
	}
	p := parseIP(data[off:], etype)
	if p.bad || !p.v6 && fold16(sum16(0, p.header)) != 0xffff {
		return false, 0
	}
	pt := p.payloadType()
	_, least := checksumAt(pt)
	if p.frag || pt != r4.PTTCP && pt != r4.PTUDP || len(p.payload) < least {
		return s.filter&r4.DNTU != 0, 0
	}
	disagrees := false
	for i := range s.l34.filters {
		f := &s.l34.filters[i]
		l3, l4 := f.layer3(&p), f.layer4(pt, p.payload)
		if l3 == layerFails || l4 == layerFails {
			disagrees = true
			continue
		}
		if l3 != layerMatches && l4 != layerMatches {
			continue
		}
		if l3 == layerMatches {
			status |= r4.L3FM
		}
		if l4 == layerMatches && l3 != layerBypassed {
			status |= r4.L4FM
		}
		if status != 0 {
			status |= r4.L3L4FM.Of(uint32(f.n))
		}
		return false, status
	}
	return disagrees && s.filter&r4.IPFE != 0, 0
}

// layerResult is what one layer of a filter says of a packet.
type layerResult int

const (
	layerDisabled layerResult = iota
	layerBypassed
	layerMatches
	layerFails
)

func result(ok bool) layerResult {
	if ok {
		return layerMatches
	}
	return layerFails
}

// layer3 compares the addresses. Of an IPv6 packet with both enabled it is the source:
// the databook forbids it.
func (f *l34Filter) layer3(p *ipPacket) layerResult {
	c := f.ctrl
	switch {
	case c&(r4.L3SAM|r4.L3DAM) == 0:
		return layerDisabled
	case p.v6 != (c&r4.L3PEN != 0):
		return layerBypassed
	case p.v6:
		at, inverse := 8, c&r4.L3SAIM != 0
		if c&r4.L3SAM == 0 {
			at, inverse = 24, c&r4.L3DAIM != 0
		}
		hi, lo := binary.BigEndian.Uint64(p.header[at:]), binary.BigEndian.Uint64(p.header[at+8:])
		return result(((hi^f.hi)&f.hiM|(lo^f.lo)&f.loM == 0) != inverse)
	}
	ok := true
	for i, b := range [2]struct{ match, inverse r4.L3L4Control }{{r4.L3SAM, r4.L3SAIM}, {r4.L3DAM, r4.L3DAIM}} {
		if c&b.match != 0 {
			a := binary.BigEndian.Uint32(p.header[12+4*i:])
			ok = ok && ((a^f.addr[i])&f.mask[i] == 0) != (c&b.inverse != 0)
		}
	}
	return result(ok)
}

// layer4 compares the ports.
func (f *l34Filter) layer4(pt uint32, payload []byte) layerResult {
	c := f.ctrl
	switch {
	case c&(r4.L4SPM|r4.L4DPM) == 0:
		return layerDisabled
	case (pt == r4.PTUDP) != (c&r4.L4PEN != 0):
		return layerBypassed
	}
	ok := true
	if c&r4.L4SPM != 0 {
		ok = (uint32(binary.BigEndian.Uint16(payload)) == r4.L4SP.Get(f.ports)) != (c&r4.L4SPIM != 0)
	}
	if c&r4.L4DPM != 0 {
		ok = ok && (uint32(binary.BigEndian.Uint16(payload[2:])) == r4.L4DP.Get(f.ports)) != (c&r4.L4DPIM != 0)
	}
	return result(ok)
}
