package sim

import (
	"encoding/binary"
	"math/bits"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// vlanState is what the VLAN registers say.
type vlanState struct {
	filters []r4.VLANTagData // of MAC_VLAN_Tag_Data; nil in a core with one filter
	enabled int              // of filters
	hash    uint32
	incl    [2]r4.VLANIncl // of the outer and of the inner tag
	edits   bool           // the registers alone change frames that are sent
	dueAt   time.Duration  // when the access that OB tells of is done
}

// The two tags of a frame.
const (
	outerTag = iota
	innerTag
)

// vlanCodes are the numbers of VLAN filters by the code in NRVF.
var vlanCodes = [...]int{1, 4, 8, 16, 24, 32}

// nrvf is the code of a number of filters, or -1.
func nrvf(n int) int {
	for code, v := range vlanCodes {
		if v == n {
			return code
		}
	}
	return -1
}

// vlanAccessTime is how long an access to a VLAN filter takes: a few cycles of the
// receive clock at 10 Mbit/s, 2.5 MHz.
const vlanAccessTime = 2 * time.Microsecond

// resetVLAN is what a software reset does.
func (m *Model) resetVLAN() {
	v := &m.mac.tags
	clear(v.filters)
	v.enabled, v.dueAt = 0, 0
}

// deriveVLAN takes the VLAN registers over.
func (m *Model) deriveVLAN() {
	s := &m.mac
	s.vlan = r4.VLANTag(m.regs.get(uint32(r4.MACVLANTag)))
	v := &s.tags
	v.hash = m.regs.get(uint32(r4.MACVLANHash))
	v.incl[outerTag] = r4.VLANIncl(m.regs.get(uint32(r4.MACVLANIncl)))
	v.incl[innerTag] = r4.VLANIncl(m.regs.get(uint32(r4.MACInnerVLANIncl)))
	v.edits = r4.SARC.Get(s.conf)&r4.SARInsert != 0
	for _, i := range v.incl {
		v.edits = v.edits || i&r4.VLP != 0 && r4.VLC.Get(i) != r4.TagNone
	}
}

// storeVLANTag is a store to MAC_VLAN_Tag_Ctrl or MAC_VLAN_Tag_Data of a core with
// several filters. OB starts an access that the receive clock ends.
func (m *Model) storeVLANTag(off uint32, r *register, v uint32) {
	m.updateVLAN()
	ctrl := uint32(r4.MACVLANTag)
	if r4.VLANTag(m.regs.get(ctrl))&r4.VLANOB != 0 {
		m.report(Violation{Kind: VLANMisuse, Channel: -1, Index: -1}, "%s = %#x while OB is set", m.regName(off), v)
		return
	}
	m.regs.set(off, v&r.mask)
	if off == ctrl && r4.VLANTag(v)&r4.VLANOB != 0 {
		m.mac.tags.dueAt = m.clock.Now() + vlanAccessTime
	}
	m.deriveVLAN()
}

// updateVLAN ends the access whose time has passed, if the receive clock runs.
func (m *Model) updateVLAN() {
	ctrl := r4.VLANTag(m.regs.get(uint32(r4.MACVLANTag)))
	v := &m.mac.tags
	if v.filters == nil || ctrl&r4.VLANOB == 0 || m.faults.ClockGated || m.clock.Now() < v.dueAt {
		return
	}
	m.regs.set(uint32(r4.MACVLANTag), uint32(ctrl&^r4.VLANOB))
	m.deriveVLAN()
	data := uint32(0)
	i := int(r4.VLANOFS.Get(ctrl))
	if ctrl&r4.VLANCT != 0 {
		if i < len(v.filters) {
			data = uint32(v.filters[i])
		}
		m.regs.set(uint32(r4.MACVLANTagData), data)
		return
	}
	if i < len(v.filters) {
		v.filters[i] = r4.VLANTagData(m.regs.get(uint32(r4.MACVLANTagData)))
	}
	v.enabled = 0
	for _, f := range v.filters {
		if f&r4.VEN != 0 {
			v.enabled++
		}
	}
}

// vlanTag is a tag of a received frame.
type vlanTag struct {
	there    bool
	service  bool // S-VLAN, type 0x88a8
	tci      uint32
	compared bool // by a filter
	matched  bool
}

// vlanFate is what the VLAN filters say of a tagged frame.
type vlanFate struct {
	tag     [2]vlanTag
	fails   bool
	status  r4.RDES2
	channel uint8
	routed  bool // a filter chose channel
}

// compares says whether a filter that is set up for the inner or outer tag, for one
// type or for both, looks at the tag.
func (t *vlanTag) compares(anyType, service bool) bool {
	return t.there && (anyType || t.service == service)
}

// vidMask are the bits of a tag that a filter compares.
func vidMask(etv bool) uint32 {
	if etv {
		return 0x0fff
	}
	return 0xffff
}

// vlanHashBin is the bit of MAC_VLAN_Hash_Table of a tag: the upper four bits of the
// bit-reversed CRC-32 of its 12 or 16 bits, lowest first.
func vlanHashBin(tci uint32, etv bool) uint32 {
	const poly = 0xedb88320 // IEEE 802.3, bits reversed
	crc := ^uint32(0)
	for n := bits.Len32(vidMask(etv)); n > 0; n-- {
		low := (crc ^ tci) & 1
		crc = crc>>1 ^ poly*low
		tci >>= 1
	}
	return bits.Reverse32(^crc) >> 28
}

// filterVLAN is the VLAN filter (databook: MAC_VLAN_Tag, MAC_VLAN_Tag_Ctrl, Extended
// Receive VLAN Filtering). A frame passes when one of its tags matches one of the
// filters or the hash table, with VTIM when none does. A tag that no filter looks at
// is bypassed; a frame of such tags passes, and has no status bit.
//
// A core with one filter compares with VL, of which 0 matches all tags; with VTHM too
// the hash table alone decides then. It has one result for the frame, VF. A core
// with several has one for each tag, VF and ITS.
func (m *Model) filterVLAN(data []byte) (v vlanFate) {
	m.updateVLAN()
	s := &m.mac
	double := s.vlan&r4.EDVLP != 0
	for i, off := 0, headerLen-2; i <= innerTag && off+2 < len(data)-1; i, off = i+1, off+vlanLen {
		etype := binary.BigEndian.Uint16(data[off:])
		if i == innerTag && !double || !s.isTag(etype) {
			break
		}
		v.tag[i] = vlanTag{there: true, service: etype == typeSVLAN, tci: uint32(binary.BigEndian.Uint16(data[off+2:]))}
	}

	etv := s.vlan&r4.ETV != 0
	inverse := s.vlan&r4.VTIM != 0
	which := outerTag
	if double && s.vlan&r4.ERIVLT != 0 {
		which = innerTag
	}
	t := &v.tag[which]
	looked := t.compares(s.vlan&r4.DOVLTC != 0, s.vlan&r4.ERSVLM != 0)
	hashed := looked && s.vlan&r4.VTHM != 0
	if hashed {
		t.compared = true
		t.matched = s.tags.hash>>vlanHashBin(t.tci, etv)&1 != 0
	}
	if s.tags.filters == nil {
		vl, mask := r4.VL.Get(s.vlan), vidMask(etv)
		switch {
		case !looked:
		case vl&mask != 0:
			t.compared = true
			t.matched = t.matched || t.tci&mask == vl&mask
		case !hashed:
			// All tags match, inverted or not.
			t.compared, t.matched = true, !inverse
		}
	} else if s.tags.enabled > 0 {
		v.perfect(s.tags.filters, double)
	}

	matched, compared := false, false
	for i := range v.tag {
		t := &v.tag[i]
		if !t.compared {
			continue
		}
		compared, matched = true, matched || t.matched
		if t.matched = t.matched != inverse; !t.matched {
			continue
		}
		if i == innerTag && s.tags.filters != nil {
			v.status |= r4.ITS
		} else {
			v.status |= r4.VF
		}
	}
	v.fails = compared && matched == inverse
	v.routed = v.routed && !v.fails
	return v
}

// perfect compares the tags with the filters that are enabled; the first match that
// names a channel chooses it.
func (v *vlanFate) perfect(filters []r4.VLANTagData, double bool) {
	for _, f := range filters {
		if f&r4.VEN == 0 {
			continue
		}
		t := &v.tag[outerTag]
		if f&r4.VERIVLT != 0 && double {
			t = &v.tag[innerTag]
		}
		if !t.compares(f&r4.VDOVLTC != 0, f&r4.VERSVLM != 0) {
			continue
		}
		t.compared = true
		mask := vidMask(f&r4.VETV != 0)
		if t.tci&mask != r4.VID.Get(f)&mask {
			continue
		}
		t.matched = true
		if f&r4.DMACHEN != 0 && !v.routed {
			v.routed, v.channel = true, uint8(r4.DMACHN.Get(f))
		}
	}
}

// stripVLAN puts the tags into the status and takes them out of the frame as the
// registers say (databook: Receive VLAN Tag Stripping). A tag that the filters
// bypassed is neither stripped for passing nor for failing. In a core with one
// filter its result is that of both tags.
func (s *macState) stripVLAN(v *vlanFate, f *rxMeta) {
	o, i := &v.tag[outerTag], &v.tag[innerTag]
	if s.tags.filters == nil {
		switch {
		case i.compared:
			o.compared, o.matched = true, i.matched
		case o.compared:
			i.compared, i.matched = true, o.matched
		}
	}
	strips := func(t *vlanTag, mode uint32) bool {
		switch mode {
		case r4.StripAlways:
			return t.there
		case r4.StripPass:
			return t.there && t.compared && t.matched
		case r4.StripFail:
			return t.there && t.compared && !t.matched
		}
		return false
	}
	f.cutAt = headerLen - 2
	if strips(o, r4.EVLS.Get(s.vlan)) {
		f.cut = vlanLen
	}
	if strips(i, r4.EIVLS.Get(s.vlan)) {
		if f.cut == 0 {
			f.cutAt += vlanLen
		}
		f.cut += vlanLen
	}
	if o.there && s.vlan&r4.EVLRXS != 0 {
		f.d0, f.d3 = f.d0|o.tci, f.d3|r4.RxRS0V
	}
	if i.there && s.vlan&r4.EIVLRXS != 0 {
		f.d0, f.d3 = f.d0|i.tci<<16, f.d3|r4.RxRS0V
	}
}
