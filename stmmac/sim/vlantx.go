package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// txTags is what a transmit channel keeps of context descriptors. A tag stays until
// the next context descriptor with a valid one; the control of the inner tag is for
// the next frame alone (databook: Transmit Context Descriptor).
type txTags struct {
	tag      [2]uint16
	valid    [2]bool
	innerReq uint32 // IVTIR
}

// takeContext takes a context descriptor over.
func (t *txChan) takeContext(d2 r4.TDES2, d3 r4.TDES3) {
	c := &t.m.cfg
	if c.NoVLANInsert {
		return
	}
	if d3&r4.TxVLTV != 0 {
		t.tags.tag[outerTag], t.tags.valid[outerTag] = uint16(r4.TxVT.Get(d3)), true
	}
	if c.NoDoubleVLAN {
		return
	}
	t.tags.innerReq = r4.IVTIR.Get(d3)
	if d3&r4.TxIVLTV != 0 {
		t.tags.tag[innerTag], t.tags.valid[innerTag] = uint16(r4.TxIVT.Get(d2)), true
	}
}

// tagEdit is what happens to a tag of a frame.
type tagEdit struct {
	op   uint32 // TagNone to TagReplace
	incl r4.VLANIncl
	tci  uint16
}

// edit is the request for one tag: of MAC_VLAN_Incl with VLP, else the descriptor's.
func (t *txChan) edit(which int, asked uint32) tagEdit {
	e := tagEdit{op: asked, incl: t.m.mac.tags.incl[which]}
	if e.incl&r4.VLP != 0 {
		e.op = r4.VLC.Get(e.incl)
	}
	e.tci = uint16(r4.VLT.Get(e.incl))
	if e.incl&r4.VLTI != 0 {
		e.tci = t.tags.tag[which]
		if e.op >= r4.TagInsert && !t.tags.valid[which] {
			t.report(VLANMisuse, int(t.cur), "a tag is inserted and no context descriptor gave one")
		}
	}
	return e
}

// apply adds what becomes of a tag to p; old is the tag that the frame has there. Only
// insertion does without one.
func (e *tagEdit) apply(p, old []byte) []byte {
	if e.op >= r4.TagInsert && (e.op == r4.TagInsert || old != nil) {
		etype := uint16(typeVLAN)
		if e.incl&r4.CSVL != 0 {
			etype = typeSVLAN
		}
		p = binary.BigEndian.AppendUint16(p, etype)
		p = binary.BigEndian.AppendUint16(p, e.tci)
	}
	if e.op == r4.TagNone || e.op == r4.TagInsert {
		p = append(p, old...)
	}
	return p
}

// editHeader inserts, replaces and removes the source address and VLAN tags of a
// frame that is ready to be sent (databook: MAC_VLAN_Incl, MAC_Inner_VLAN_Incl, SARC,
// TDES2, TDES3). Tags are replaced and removed where the frame has them; a single tag
// is the outer one. The inner tag is left alone without double VLAN processing
// (EDVLP). The MAC computes the FCS of a frame that it changed.
func (t *txChan) editHeader() {
	m := t.m
	if m.cfg.NoVLANInsert {
		t.report(VLANMisuse, int(t.cur), "VTIR %d, SAIC %d: the core inserts nothing", t.vtir, t.saic)
		return
	}
	s := &m.mac
	outer := t.edit(outerTag, t.vtir)
	var inner tagEdit
	double := s.vlan&r4.EDVLP != 0
	if double {
		inner = t.edit(innerTag, t.innerReq)
	} else if t.innerReq != r4.TagNone {
		t.report(VLANMisuse, int(t.cur), "IVTIR %d without double VLAN processing", t.innerReq)
	}
	sa := r4.SARC.Get(s.conf)
	switch {
	case sa&r4.SARInsert == 0:
		sa = t.saic
	case sa&^r4.SAMac1 == r4.SARReplace:
		sa = sa&r4.SAMac1 | r4.SAReplace
	default:
		sa = sa&r4.SAMac1 | r4.SAInsert
	}
	saOp := sa &^ r4.SAMac1
	if outer.op == r4.TagNone && inner.op == r4.TagNone && saOp != r4.SAInsert && saOp != r4.SAReplace || len(t.data) < headerLen {
		return
	}

	t.own()
	const addrLen = 6
	var room [2*addrLen + 4*vlanLen]byte
	p := append(room[:0], t.data[:addrLen]...)
	rest := t.data[addrLen:]
	if saOp == r4.SAInsert || saOp == r4.SAReplace {
		p = m.appendAddress(p, int(sa/r4.SAMac1))
		if saOp == r4.SAReplace {
			rest = rest[addrLen:]
		}
	} else {
		p = append(p, rest[:addrLen]...)
		rest = rest[addrLen:]
	}
	take := func() []byte {
		if len(rest) < vlanLen || !s.isTag(binary.BigEndian.Uint16(rest)) {
			return nil
		}
		tag := rest[:vlanLen]
		rest = rest[vlanLen:]
		return tag
	}
	first := take()
	p = outer.apply(p, first)
	if double {
		var second []byte
		if first != nil {
			second = take()
		}
		p = inner.apply(p, second)
	}
	n := len(rest)
	t.buf = grow(t.buf, max(len(t.buf), len(p)+n))
	copy(t.buf[len(p):], rest)
	copy(t.buf, p)
	t.data, t.edited = t.buf[:len(p)+n], true
}

// appendAddress adds MAC address 0 or 1 in the order of transmission.
func (m *Model) appendAddress(p []byte, i int) []byte {
	high := r4.AddressHigh(m.regs.get(uint32(r4.MACAddressHigh.At(i, r4.AddressStride))))
	p = binary.LittleEndian.AppendUint32(p, m.regs.get(uint32(r4.MACAddressLow.At(i, r4.AddressStride))))
	return binary.LittleEndian.AppendUint16(p, uint16(r4.ADDRHI.Get(high)))
}
