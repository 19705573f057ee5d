package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// insertChecksums is the transmit checksum engine (databook: Transmit Checksum Offload
// Engine, TDES3). It works on the frame in the queue, before the MAC inserts or
// removes tags, and only in queues that store and forward.
//
//   - CIC 1 replaces the IPv4 header checksum, with options and in fragments too; so
//     do 2 and 3. A header error sets IHE: the version does not fit the type, the
//     header is shorter than 20 bytes, ends behind the frame or behind the packet.
//     The header checksum is replaced even then, the payload is left alone.
//   - CIC 2 and 3 replace the checksum of TCP, UDP and ICMP. CIC 2 sums over what the
//     field holds, the sum of the pseudo header; CIC 3 ignores the field and adds the
//     pseudo header, but ICMP under IPv4, which has none, is summed with its field. A
//     UDP checksum of 0 is sent as 0xffff.
//   - In an IPv4 fragment with offset 0 it is inserted all the same, over what the
//     fragment has, as some cores do; later fragments have no field for it.
//   - Nothing is inserted behind an IPv6 extension header, for another protocol, or
//     where no IP header follows at most one tag, or two with double VLAN processing.
//   - A payload that ends before the IP header says sets PCE and is inserted over what
//     there is; what follows the packet in the frame is not summed.
//   - Frames longer than checksumLimit get no payload checksum, and PCE.
func (t *txChan) insertChecksums() {
	m := t.m
	full := t.cic == r4.CICFull
	payload := t.cic >= r4.CICPayload
	misuse := func(format string, args ...any) {
		t.report(ChecksumMisuse, int(t.cur), format, args...)
	}
	switch {
	case m.cfg.NoTxChecksum:
		misuse("CIC %d: the core has no engine", t.cic)
		return
	case !t.storeForward:
		misuse("CIC %d: the queue does not store and forward", t.cic)
		return
	}
	off, etype := m.mac.layer3(t.data)
	if etype != typeIPv4 && etype != typeIPv6 {
		misuse("CIC %d: type %#04x at %d is not IP", t.cic, etype, off-2)
		return
	}
	limit := m.checksumLimit(t.ch)
	if payload && len(t.data) > limit {
		misuse("CIC %d: %d bytes, the queue allows %d", t.cic, len(t.data), limit)
	}
	p := parseIP(t.data[off:], etype)
	pt := p.payloadType()
	if payload && !p.bad {
		switch {
		case p.frag:
			misuse("CIC %d: an IP fragment", t.cic)
		case p.extra || pt == r4.PTUnknown:
			misuse("CIC %d: protocol %d, extension headers %v", t.cic, p.proto, p.extra)
		case pt == r4.PTICMP && !p.v6 && len(p.payload) >= icmpMinLen && binary.BigEndian.Uint16(p.payload[2:]) != 0:
			misuse("CIC %d: ICMP with %#04x in its checksum", t.cic, binary.BigEndian.Uint16(p.payload[2:]))
		}
	}
	if f := &m.faults; f.TxChecksumMissing || f.TxChecksumLimit > 0 && len(t.data) > f.TxChecksumLimit {
		return
	}

	t.own()
	p = parseIP(t.data[off:], etype)
	if p.bad {
		t.coe |= r4.TxES | r4.TxIHE
	}
	if !p.v6 && len(p.header) >= ipv4HeaderLen {
		put := p.header[10:]
		binary.BigEndian.PutUint16(put, 0)
		v := ^fold16(sum16(0, p.header))
		if !payload {
			v = m.spoilChecksum(v)
		}
		binary.BigEndian.PutUint16(put, v)
	}
	if !payload || p.bad || p.later || p.extra || pt == r4.PTUnknown {
		return
	}
	if len(t.data) > limit {
		t.coe |= r4.TxES | r4.TxPCE
		return
	}
	if p.cut {
		t.coe |= r4.TxES | r4.TxPCE
	}
	at, _ := checksumAt(pt)
	if len(p.payload) < at+2 {
		t.coe |= r4.TxES | r4.TxPCE
		return
	}
	sum := uint64(0)
	put := p.payload[at:]
	if full {
		sum = p.pseudo(len(p.payload))
		if p.proto != protoICMP {
			binary.BigEndian.PutUint16(put, 0)
		}
	}
	v := ^fold16(sum16(sum, p.payload))
	if v == 0 && pt == r4.PTUDP {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(put, m.spoilChecksum(v))
}

// spoilChecksum is the fault that makes the last checksum of a frame a wrong one.
func (m *Model) spoilChecksum(v uint16) uint16 {
	m.checksums++
	if n := m.faults.TxChecksumCorrupts; n > 0 && m.checksums%n == 0 {
		v ^= 0x5555
	}
	return v
}

// checksumLimit is the longest frame, in bytes without FCS, that a transmit queue can
// hold while the DMA has room for one more burst: the checksum is known only when the
// frame is whole (databook: Transmit Checksum Offload Engine; PBL in bus words).
func (m *Model) checksumLimit(ch int) int {
	return m.tx[ch].size - (m.gen.txBurst(ch)+5)*m.cfg.BusBytes
}
