package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// splitState says where the split header feature splits a packet.
type splitState struct {
	mode   uint32
	offset int // from the length/type field
	limit  int // longest header
}

// deriveSplit takes its registers over.
func (m *Model) deriveSplit() {
	s := &m.mac.split
	v := r4.ExtCfg1(m.regs.get(uint32(r4.MACExtCfg1)))
	s.mode, s.offset, s.limit = r4.SPLM.Get(v), int(r4.SPLOFST.Get(v)), 0
	switch code := r4.HDSMS.Get(m.regs.get(uint32(r4.MACExtConfiguration))); {
	case code < r4.HDSMS1023:
		s.limit = 64 << code
	case code == r4.HDSMS1023:
		s.limit = 1023
	}
}

// auditSplit looks at the settings with which a channel starts to split headers.
func (c *rxChan) auditSplit() {
	s := &c.m.mac
	switch {
	case s.conf&r4.IPC == 0:
		c.report(ConfigInvalid, -1, "SPH without IPC: nothing is split")
	case s.split.limit == 0:
		c.report(ConfigInvalid, -1, "SPH with a reserved value of HDSMS")
	case s.split.limit > c.rbsz:
		c.report(ConfigInvalid, -1, "SPH with headers of %d bytes and buffers of %d", s.split.limit, c.rbsz)
	}
}

// headerLength is the length, in memory, of the header that is split off a frame, 0 for
// none (databook: Split Header, SPLM, HDSMS): with the headers of TCP or UDP, else
// with the IP header and its options or extension headers. A packet that the checksum
// engine finds wrong in its IP header is not split. A header longer than HDSMS is not
// either.
func (s *macState) headerLength(data []byte, f *rxMeta) (n int) {
	if s.conf&r4.IPC == 0 {
		return 0
	}
	off, etype := s.layer3(data)
	ip := (etype == typeIPv4 || etype == typeIPv6) && f.check.d1&r4.IPHE == 0
	switch {
	case s.split.mode != r4.SplitL2 && s.split.mode != r4.SplitEither && s.split.mode != r4.SplitL3L4:
	case ip && s.split.mode != r4.SplitL2:
		p := parseIP(data[off:], etype)
		n = off + len(p.whole) - len(p.payload) + p.layer4Header()
	case s.split.mode != r4.SplitL3L4:
		n = off - 2 + s.split.offset
	}
	if n -= f.cut; n < 0 || n > s.split.limit || n > f.n {
		return 0
	}
	return n
}

// layer4Header is the length of the TCP or UDP header, 0 where the packet has none that
// the engine understands.
func (p *ipPacket) layer4Header() int {
	pt := p.payloadType()
	_, n := checksumAt(pt)
	if p.frag || pt != r4.PTTCP && pt != r4.PTUDP || len(p.payload) < n {
		return 0
	}
	if pt == r4.PTTCP {
		options := int(p.payload[12]>>4) * 4
		if options < n || options > len(p.payload) {
			return 0
		}
		n = options
	}
	return n
}

// split writes the frame to a descriptor of a channel that splits headers: the header to
// buffer 1 of the first, all that follows to buffer 2 of it and of the next ones. Of a
// frame that is not split, buffer 1 of the first takes the start. It is false after a
// bus error.
func (c *rxChan) split(w *words, f *rxFrame, first bool) bool {
	d3 := r4.RDES3(w[3])
	if first && d3&r4.RxBUF1V != 0 {
		a, limit := c.address1(w), int(f.meta.header)
		if limit > c.room(a, true) {
			limit = 0
		}
		f.header = uint16(limit)
		if limit == 0 {
			limit = f.total()
		}
		if !c.fill(a, true, f, limit) {
			return false
		}
		if f.off == 0 {
			f.header = 0 // no address
		}
	}
	return d3&r4.RxBUF2V == 0 || c.fill(c.address2(w), f.off == 0, f, f.total())
}
