package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// tags puts tags in front of the type of a frame: C-VLAN, and S-VLAN from bit 16 on.
func tags(f []byte, tci ...uint32) []byte {
	var p []byte
	for _, v := range tci {
		etype := uint16(typeVLAN)
		if v>>16 != 0 {
			etype = typeSVLAN
		}
		p = binary.BigEndian.AppendUint16(p, etype)
		p = binary.BigEndian.AppendUint16(p, uint16(v))
	}
	return append(append(f[:12:12], p...), f[12:]...)
}

const svlan = 1 << 16

// setFilter writes a VLAN filter as a driver does.
func (g *rig) setFilter(i int, data r4.VLANTagData) {
	g.t.Helper()
	r4.MACVLANTagData.Store(g.r, data)
	ctrl := r4.VLANTag(r4.MACVLANTag.Load(g.r)) &^ (r4.VLANCT | r4.VLANOFS.Mask())
	r4.MACVLANTag.Store(g.r, uint32(ctrl|r4.VLANOFS.Of(uint32(i))|r4.VLANOB))
	if r4.VLANTag(r4.MACVLANTag.Load(g.r))&r4.VLANOB == 0 {
		g.t.Fatal("OB is clear at once")
	}
	g.clock.Advance(vlanAccessTime)
	if r4.VLANTag(r4.MACVLANTag.Load(g.r))&r4.VLANOB != 0 {
		g.t.Fatal("OB stays set")
	}
}

// readFilter reads a VLAN filter back.
func (g *rig) readFilter(i int) r4.VLANTagData {
	g.t.Helper()
	ctrl := r4.VLANTag(r4.MACVLANTag.Load(g.r)) &^ r4.VLANOFS.Mask()
	r4.MACVLANTag.Store(g.r, uint32(ctrl|r4.VLANOFS.Of(uint32(i))|r4.VLANCT|r4.VLANOB))
	g.clock.Advance(vlanAccessTime)
	r4.MACVLANTag.Load(g.r)
	return r4.MACVLANTagData.Load(g.r)
}

func TestVLANFilterAccess(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.VLANFilters = 8 }))
	g.open()
	for i := range 8 {
		g.setFilter(i, r4.VEN|r4.VETV|r4.VLANTagData(100+i))
	}
	g.setFilter(8, r4.VEN|7) // there is none
	for i := range 10 {
		want := r4.VEN | r4.VETV | r4.VLANTagData(100+i)
		if i >= 8 {
			want = 0
		}
		if got := g.readFilter(i); got != want {
			t.Errorf("filter %d is %#x, want %#x", i, uint32(got), uint32(want))
		}
	}
	g.clean()

	// Without the receive clock the access does not end, and another is refused.
	g.d.SetClockGated(true)
	r4.MACVLANTagData.Store(g.r, 0)
	r4.MACVLANTag.Store(g.r, uint32(r4.VLANOB))
	g.clock.Advance(1000 * vlanAccessTime)
	if r4.VLANTag(r4.MACVLANTag.Load(g.r))&r4.VLANOB == 0 {
		t.Fatal("OB is clear without a clock")
	}
	r4.MACVLANTagData.Store(g.r, 0xabc)
	r4.MACVLANTag.Store(g.r, uint32(r4.VLANOB|r4.VLANOFS.Of(3)))
	g.wantKinds(VLANMisuse)
	g.d.SetClockGated(false)
	if r4.VLANTag(r4.MACVLANTag.Load(g.r))&r4.VLANOB != 0 {
		t.Fatal("OB stays set")
	}
	if a, b := g.readFilter(0), g.readFilter(3); a != 0 || b != r4.VEN|r4.VETV|103 {
		t.Errorf("filters 0 and 3 are %#x and %#x", uint32(a), uint32(b))
	}
	g.reset()
	if got := g.readFilter(3); got != 0 {
		t.Errorf("%#x after reset", uint32(got))
	}
}

// TestVLANHashBins: the bins of vectors that another CRC made (CRC-32 of the tag's
// bits, reversed, upper four).
func TestVLANHashBins(t *testing.T) {
	ref := func(v uint32, n int) uint32 {
		crc := uint32(0xffffffff)
		for i := range n {
			bit := v >> i & 1
			top := crc >> 31
			crc <<= 1
			if top != bit {
				crc ^= 0x04c11db7
			}
		}
		return ^crc >> 28
	}
	for vid := range uint32(4096) {
		if got, want := vlanHashBin(vid|0xe000, true), ref(vid, 12); got != want {
			t.Fatalf("VID %d: bin %d, want %d", vid, got, want)
		}
		if got, want := vlanHashBin(vid|0xa000, false), ref(vid|0xa000, 16); got != want {
			t.Fatalf("tag of VID %d: bin %d, want %d", vid, got, want)
		}
	}
}

func TestVLANFilters(t *testing.T) {
	const (
		en  = r4.VEN | r4.VETV
		vf  = r4.VF
		its = r4.ITS
	)
	bin := func(vid uint32) uint32 { return 1 << vlanHashBin(vid, true) }
	one := []r4.VLANTagData(nil)
	many := func(f ...r4.VLANTagData) []r4.VLANTagData { return f }
	for _, c := range []struct {
		name    string
		filters []r4.VLANTagData // nil is a core with one
		ctrl    r4.VLANTag
		hash    uint32
		tags    []uint32
		pass    bool
		status  r4.RDES2
	}{
		{"one: match", one, r4.ETV | 5, 0, []uint32{0xe005}, true, vf},
		{"one: other", one, r4.ETV | 5, 0, []uint32{6}, false, 0},
		{"one: 0 takes all", one, r4.ETV, 0, []uint32{6}, true, vf},
		{"one: 0 takes all, inverse too", one, r4.ETV | r4.VTIM, 0, []uint32{6}, true, vf},
		{"one: hash instead of 0", one, r4.ETV | r4.VTHM, bin(6), []uint32{6}, true, vf},
		{"one: not in the hash table", one, r4.ETV | r4.VTHM, ^bin(6), []uint32{6}, false, 0},
		{"one: in the hash table, inverse", one, r4.ETV | r4.VTHM | r4.VTIM, bin(6), []uint32{6}, false, 0},
		{"one: hash table or tag", one, r4.ETV | r4.VTHM | 6, 0, []uint32{6}, true, vf},
		{"one: hash table, not tag", one, r4.ETV | r4.VTHM | 5, bin(6), []uint32{6}, true, vf},
		{"one: neither, inverse", one, r4.ETV | r4.VTHM | r4.VTIM | 5, 0, []uint32{6}, true, vf},
		{"one: S-VLAN is no tag", one, r4.ETV | 5, 0, []uint32{svlan | 6}, true, 0},
		{"one: S-VLAN is not looked at", one, r4.ETV | r4.ESVL | 5, 0, []uint32{svlan | 6}, true, 0},
		{"one: S-VLAN", one, r4.ETV | r4.ESVL | r4.ERSVLM | 5, 0, []uint32{svlan | 6}, false, 0},
		{"one: C-VLAN where S-VLAN is looked at", one, r4.ETV | r4.ESVL | r4.ERSVLM | 5, 0, []uint32{6}, true, 0},
		{"one: either type", one, r4.ETV | r4.ESVL | r4.DOVLTC | 5, 0, []uint32{svlan | 6}, false, 0},
		{"one: inner without EDVLP is outer", one, r4.ETV | r4.ERIVLT | 5, 0, []uint32{5, 6}, true, vf},
		{"one: inner", one, r4.ETV | r4.EDVLP | r4.ERIVLT | 5, 0, []uint32{5, 6}, false, 0},
		{"one: inner that matches", one, r4.ETV | r4.EDVLP | r4.ERIVLT | 6, 0, []uint32{5, 6}, true, vf},
		{"one: no inner", one, r4.ETV | r4.EDVLP | r4.ERIVLT | 6, 0, []uint32{5}, true, 0},

		{"none enabled", many(5), r4.ETV, 0, []uint32{6}, true, 0},
		{"match", many(en|4, en|5), 0, 0, []uint32{0xe005}, true, vf},
		{"16 bits", many(r4.VEN | 5), 0, 0, []uint32{0xe005}, false, 0},
		{"16 bits that match", many(r4.VEN | 0xe005), 0, 0, []uint32{0xe005}, true, vf},
		{"other", many(en|4, en|5), 0, 0, []uint32{6}, false, 0},
		{"VID 0", many(en), 0, 0, []uint32{6}, false, 0},
		{"priority tag", many(en), 0, 0, []uint32{0xe000}, true, vf},
		{"inverse", many(en | 5), r4.VTIM, 0, []uint32{6}, true, vf},
		{"inverse match", many(en|4, en|5), r4.VTIM, 0, []uint32{5}, false, 0},
		{"bypass", many(en | r4.VERSVLM | 5), r4.ESVL, 0, []uint32{6}, true, 0},
		{"S-VLAN", many(en | r4.VERSVLM | 5), r4.ESVL, 0, []uint32{svlan | 5}, true, vf},
		{"either type", many(en | r4.VDOVLTC | 5), r4.ESVL, 0, []uint32{svlan | 6}, false, 0},
		{"inner", many(en | r4.VERIVLT | 6), r4.EDVLP, 0, []uint32{5, 6}, true, its},
		{"inner without EDVLP is outer", many(en | r4.VERIVLT | 6), 0, 0, []uint32{5, 6}, false, 0},
		{"both", many(en|5, en|r4.VERIVLT|6), r4.EDVLP, 0, []uint32{5, 6}, true, vf | its},
		{"inner alone of both", many(en|7, en|r4.VERIVLT|6), r4.EDVLP, 0, []uint32{5, 6}, true, its},
		{"hash table", many(en | 7), r4.ETV | r4.VTHM, bin(6), []uint32{6}, true, vf},
		{"hash table alone", many(), r4.ETV | r4.VTHM, bin(6), []uint32{6}, true, vf},
		{"not in the hash table", many(), r4.ETV | r4.VTHM, ^bin(6), []uint32{6}, false, 0},
		{"hash of the inner tag", many(en | 7), r4.ETV | r4.VTHM | r4.EDVLP | r4.ERIVLT, bin(6), []uint32{5, 6}, true, its},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withConfig(func(cfg *Config) {
				cfg.VLANFilters = 4
				if c.filters == nil {
					cfg.VLANFilters = 1
				}
			}))
			g.open()
			for i, f := range c.filters {
				g.setFilter(i, f)
			}
			r4.MACVLANTag.Store(g.r, uint32(c.ctrl))
			r4.MACVLANHash.Store(g.r, c.hash)
			f := tags(testFrame(80, 1), c.tags...)
			for _, filter := range []r4.PacketFilter{r4.VTFE, r4.VTFE | r4.RA, 0} {
				r4.MACPacketFilter.Store(g.r, filter)
				g.w.inject(f)
				g.step()
				got, w, ok := g.recv()
				if ok != (c.pass || filter != r4.VTFE) || ok && !bytes.Equal(got, f) {
					t.Fatalf("filter %#x: received %v", uint32(filter), ok)
				}
				if ok && r4.RDES2(w[2])&(vf|its) != c.status {
					t.Errorf("filter %#x: word 2 %#x, want %#x", uint32(filter), w[2], uint32(c.status))
				}
			}
			g.clean()
		})
	}
}

// TestVLANRouting: a filter chooses the DMA channel of a queue with a dynamic channel.
func TestVLANRouting(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxQueues = 2 }))
	g.open()
	g.setFilter(0, r4.VEN|r4.VETV|4)
	g.setFilter(1, r4.VEN|r4.VETV|r4.DMACHEN|r4.DMACHN.Of(1)|5)
	queue := func(f []byte) (meta rxMeta) {
		t.Helper()
		if fate := g.d.Model.classify(f, false, &meta); fate != fateKeep {
			t.Fatalf("fate %d", fate)
		}
		return meta
	}
	for _, dynamic := range []bool{false, true} {
		if dynamic {
			r4.MTLRxQDMAMap0.Store(g.r, uint32(r4.RxQDynamic))
		}
		for vid, want := range map[uint32]bool{4: false, 5: true, 6: false} {
			if got := queue(tags(testFrame(80, 1), vid)); (got.ch == 1) != (want && dynamic) {
				t.Errorf("VID %d, dynamic %v: channel %d", vid, dynamic, got.ch)
			}
		}
	}
}

func TestVLANStripping(t *testing.T) {
	const en = r4.VEN | r4.VETV
	evls, eivls := r4.EVLS.Of, r4.EIVLS.Of
	plain := testFrame(80, 3)
	for _, c := range []struct {
		name    string
		filters []r4.VLANTagData
		ctrl    r4.VLANTag
		tags    []uint32
		left    []uint32
		d0      uint32
		rs0v    bool
	}{
		{"never", nil, 0, []uint32{5}, []uint32{5}, 0, false},
		{"never, in status", nil, r4.EVLRXS, []uint32{0xe005}, []uint32{0xe005}, 0xe005, true},
		{"always", nil, evls(3), []uint32{5}, nil, 0, false},
		{"always, in status", nil, evls(3) | r4.EVLRXS, []uint32{0xe005}, nil, 0xe005, true},
		{"always, untagged", nil, evls(3) | r4.EVLRXS, nil, nil, 0, false},
		{"outer of two", nil, evls(3) | r4.EVLRXS | r4.EIVLRXS, []uint32{5, 6}, []uint32{6}, 5, true},
		{"outer of two with EDVLP", nil, evls(3) | r4.EDVLP | r4.EVLRXS | r4.EIVLRXS, []uint32{5, 6}, []uint32{6}, 6<<16 | 5, true},
		{"inner without EDVLP", nil, eivls(3), []uint32{5, 6}, []uint32{5, 6}, 0, false},
		{"inner", nil, eivls(3) | r4.EDVLP | r4.EIVLRXS, []uint32{5, 6}, []uint32{5}, 6 << 16, true},
		{"inner of one", nil, eivls(3) | r4.EDVLP | r4.EIVLRXS, []uint32{5}, []uint32{5}, 0, false},
		{"both", nil, evls(3) | eivls(3) | r4.EDVLP | r4.EVLRXS | r4.EIVLRXS, []uint32{5, 6}, nil, 6<<16 | 5, true},
		{"both of three", nil, evls(3) | eivls(3) | r4.EDVLP, []uint32{5, 6, 7}, []uint32{7}, 0, false},
		{"S-VLAN", nil, evls(3) | r4.EVLRXS, []uint32{svlan | 5}, []uint32{svlan | 5}, 0, false},
		{"S-VLAN with ESVL", nil, evls(3) | r4.ESVL | r4.EVLRXS, []uint32{svlan | 5}, nil, 5, true},
		{"S-VLAN and C-VLAN", nil, evls(3) | eivls(3) | r4.ESVL | r4.EDVLP, []uint32{svlan | 5, 6}, nil, 0, false},
		{"pass", []r4.VLANTagData{en | 5}, evls(1), []uint32{5}, nil, 0, false},
		{"pass of another", []r4.VLANTagData{en | 5}, evls(1), []uint32{6}, []uint32{6}, 0, false},
		{"fail", []r4.VLANTagData{en | 5}, evls(2), []uint32{6}, nil, 0, false},
		{"fail of the tag", []r4.VLANTagData{en | 5}, evls(2), []uint32{5}, []uint32{5}, 0, false},
		{"pass, bypassed", []r4.VLANTagData{}, evls(1), []uint32{5}, []uint32{5}, 0, false},
		{"fail, bypassed", []r4.VLANTagData{}, evls(2), []uint32{5}, []uint32{5}, 0, false},
		{"each by its own result", []r4.VLANTagData{en | 5, en | r4.VERIVLT | 7}, evls(1) | eivls(2) | r4.EDVLP, []uint32{5, 6}, nil, 0, false},
		{"inner is not looked at", []r4.VLANTagData{en | 5}, evls(1) | eivls(1) | r4.EDVLP, []uint32{5, 6}, []uint32{6}, 0, false},
		{"pass of the one filter", nil, evls(1) | r4.ETV | 5, []uint32{5}, nil, 0, false},
		{"fail of the one filter", nil, evls(2) | r4.ETV | 5, []uint32{6}, nil, 0, false},
		{"the one filter counts for both tags", nil, evls(1) | eivls(1) | r4.EDVLP | r4.ETV | 5, []uint32{5, 6}, nil, 0, false},
		{"on the inner tag too", nil, evls(1) | eivls(1) | r4.EDVLP | r4.ERIVLT | r4.ETV | 6, []uint32{5, 6}, nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withRBSZ(64), withConfig(func(cfg *Config) {
				cfg.VLANFilters = 4
				if c.filters == nil {
					cfg.VLANFilters = 1
				}
			}))
			g.open()
			for i, f := range c.filters {
				g.setFilter(i, f)
			}
			r4.MACVLANTag.Store(g.r, uint32(c.ctrl))
			in, want := tags(plain, c.tags...), tags(plain, c.left...)
			g.w.inject(in)
			g.step()
			// The frame lies in two descriptors, and behind it the FCS of the wire.
			got := bytes.Clone(g.rxBuf(0, 64))
			w := g.get(g.rxRing, 1)
			d3 := r4.RDES3(w[3])
			n := int(r4.RxPL.Get(d3))
			sum := fcs(in)
			if want := append(bytes.Clone(want), sum[:]...); n != len(want) || !bytes.Equal(append(got, g.rxBuf(1, n-64)...), want) {
				t.Fatalf("%d bytes in memory, want %d, or other content", n, len(want))
			}
			if w[0] != c.d0 || (d3&r4.RxRS0V != 0) != c.rs0v {
				t.Errorf("%08x", w)
			}
			if got := g.r.Load32(r4.RxOctetCountGoodBad); got != uint32(len(in)+4) {
				t.Errorf("%d octets, %d were on the wire", got, len(in)+4)
			}
			g.clean()
		})
	}
}

// TestStrippedShort: the shortest frame is shorter in memory, and its checksum is
// still found behind the tag.
func TestStrippedShort(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACVLANTag.Store(g.r, uint32(r4.EVLS.Of(r4.StripAlways)))
	r4.MACConfiguration.Update(g.r, 0, r4.IPC|r4.CST)
	d := udp(1).filled(6).padded(13)
	g.w.inject(d.tag(5).bytes())
	g.step()
	w := g.get(g.rxRing, 0)
	if n := r4.RxPL.Get(r4.RDES3(w[3])); n != 56 || !bytes.Equal(g.rxBuf(0, 56), d.bytes()) || r4.RDES1(w[1]) != r4.IPV4|1 {
		t.Errorf("%08x", w)
	}
}

func TestTransmitTags(t *testing.T) {
	plain := testFrame(80, 3)
	ctx := func(vt, ivt int, ivtir uint32) (w [4]uint32) {
		w[3] = uint32(r4.TxOWN | r4.TxCTXT | r4.IVTIR.Of(ivtir))
		if vt >= 0 {
			w[3] |= uint32(r4.TxVLTV | r4.TxVT.Of(uint32(vt)))
		}
		if ivt >= 0 {
			w[2], w[3] = uint32(r4.TxIVT.Of(uint32(ivt))), w[3]|uint32(r4.TxIVLTV)
		}
		return w
	}
	desc := func(incl r4.VLANIncl) r4.VLANIncl { return incl | r4.VLTI }
	reg := func(vlc uint32, incl r4.VLANIncl) r4.VLANIncl { return incl | r4.VLP | r4.VLC.Of(vlc) }
	none := [4]uint32{}
	const ed = r4.EDVLP
	for _, c := range []struct {
		name        string
		ctrl        r4.VLANTag
		incl, inner r4.VLANIncl
		ctx         [4]uint32
		vtir        uint32
		in, out     []uint32
		misuse      bool
	}{
		{"nothing", 0, 0, 0, none, 0, []uint32{5}, []uint32{5}, false},
		{"insert from the descriptor", 0, desc(0), 0, ctx(0xe123, -1, 0), 2, nil, []uint32{0xe123}, false},
		{"insert S-VLAN", 0, desc(r4.CSVL), 0, ctx(0x123, -1, 0), 2, nil, []uint32{svlan | 0x123}, false},
		{"insert in front of a tag", 0, desc(0), 0, ctx(7, -1, 0), 2, []uint32{5}, []uint32{7, 5}, false},
		{"insert without a tag of a context (D43)", 0, desc(0), 0, none, 2, nil, []uint32{0}, true},
		{"insert with a context that has none", 0, desc(0), 0, ctx(-1, -1, 0), 2, nil, []uint32{0}, true},
		{"insert the register's tag", 0, 77, 0, ctx(7, -1, 0), 2, nil, []uint32{77}, false},
		{"replace", 0, desc(0), 0, ctx(7, -1, 0), 3, []uint32{5}, []uint32{7}, false},
		{"replace where there is none", 0, desc(0), 0, ctx(7, -1, 0), 3, nil, nil, false},
		{"replace the first of two", 0, desc(0), 0, ctx(7, -1, 0), 3, []uint32{5, 6}, []uint32{7, 6}, false},
		{"replace S-VLAN without ESVL", 0, desc(0), 0, ctx(7, -1, 0), 3, []uint32{svlan | 5}, []uint32{svlan | 5}, false},
		{"replace S-VLAN", r4.ESVL, desc(r4.CSVL), 0, ctx(7, -1, 0), 3, []uint32{svlan | 5}, []uint32{svlan | 7}, false},
		{"remove", 0, 0, 0, none, 1, []uint32{5}, nil, false},
		{"remove where there is none", 0, 0, 0, none, 1, nil, nil, false},
		{"remove the first of two", 0, 0, 0, none, 1, []uint32{5, 6}, []uint32{6}, false},
		{"register inserts", 0, reg(2, 9), 0, none, 0, nil, []uint32{9}, false},
		{"register over descriptor", 0, reg(1, 9), 0, none, 2, []uint32{5}, nil, false},
		{"register leaves the descriptor no say", 0, reg(0, 9), 0, none, 2, nil, nil, false},
		{"register with the descriptor's tag", 0, reg(2, r4.VLTI), 0, ctx(8, -1, 0), 0, nil, []uint32{8}, false},
		{"inner without EDVLP", 0, desc(0), desc(0), ctx(7, 8, 2), 2, nil, []uint32{7}, true},
		{"both inserted", ed, desc(r4.CSVL), desc(0), ctx(7, 8, 2), 2, nil, []uint32{svlan | 7, 8}, false},
		{"inner inserted behind the tag", ed, desc(0), desc(0), ctx(-1, 8, 2), 0, []uint32{5}, []uint32{5, 8}, false},
		{"inner inserted between two", ed, desc(0), desc(0), ctx(-1, 8, 2), 0, []uint32{5, 6}, []uint32{5, 8, 6}, false},
		{"inner replaced", ed, desc(0), desc(0), ctx(-1, 8, 3), 0, []uint32{5, 6}, []uint32{5, 8}, false},
		{"inner of one replaced", ed, desc(0), desc(0), ctx(-1, 8, 3), 0, []uint32{5}, []uint32{5}, false},
		{"inner removed", ed, desc(0), desc(0), ctx(-1, -1, 1), 0, []uint32{5, 6}, []uint32{5}, false},
		{"inner of one removed", ed, desc(0), desc(0), ctx(-1, -1, 1), 0, []uint32{5}, []uint32{5}, false},
		{"both removed", ed, desc(0), desc(0), ctx(-1, -1, 1), 1, []uint32{5, 6}, nil, false},
		{"both replaced", ed, desc(0), desc(0), ctx(7, 8, 3), 3, []uint32{5, 6}, []uint32{7, 8}, false},
		{"inner by register", ed, 0, reg(2, 9), none, 0, []uint32{5}, []uint32{5, 9}, false},
		{"inner without a tag of a context", ed, 0, desc(0), ctx(7, -1, 2), 0, []uint32{5}, []uint32{5, 0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			r4.MACVLANTag.Store(g.r, uint32(c.ctrl))
			r4.MACVLANIncl.Store(g.r, c.incl)
			r4.MACInnerVLANIncl.Store(g.r, c.inner)
			in := tags(plain, c.in...)
			for i, pieces := range [][][]byte{{in}, split(in, 14)} {
				if c.ctx != none {
					g.put(g.txRing, g.txTail, c.ctx)
					g.txTail++
				}
				g.sendWith(r4.VTIR.Of(c.vtir), 0, pieces...)
				if got := g.onWire(); !bytes.Equal(got, tags(plain, c.out...)) {
					t.Errorf("%d: sent %x, want %x", i, got[:30], tags(plain, c.out...)[:30])
				}
				g.txHead = g.txTail
			}
			if c.misuse {
				g.wantKinds(VLANMisuse)
			} else {
				g.clean()
			}
		})
	}
}

// TestTransmitTagStays: a tag is good until the next context descriptor that has one
// (D43); what the descriptor asks for the inner tag is for one frame.
func TestTransmitTagStays(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	r4.MACVLANTag.Store(g.r, uint32(r4.EDVLP))
	r4.MACVLANIncl.Store(g.r, r4.VLTI)
	r4.MACInnerVLANIncl.Store(g.r, r4.VLTI)
	plain := testFrame(80, 3)
	context := func(d2 r4.TDES2, d3 r4.TDES3) {
		g.put(g.txRing, g.txTail, [4]uint32{0, 0, uint32(d2), uint32(r4.TxOWN | r4.TxCTXT | d3)})
		g.txTail++
	}
	send := func(vtir uint32, want ...uint32) {
		t.Helper()
		g.sendWith(r4.VTIR.Of(vtir), 0, plain)
		if got := g.onWire(); !bytes.Equal(got, tags(plain, want...)) {
			t.Fatalf("sent %x, want tags %#x", got[:30], want)
		}
		g.txHead = g.txTail
	}
	vid := func(v uint32) r4.TDES3 { return r4.TxVLTV | r4.TxVT.Of(v) }
	context(0, vid(1))
	send(2, 1)
	send(2, 1)
	send(0)
	context(0, vid(0x123))
	send(2, 0x123)
	context(1400, r4.TxTCMSSV) // no tag in it
	send(2, 0x123)
	send(2, 0x123)
	context(0, vid(0xfffe))
	send(2, 0xfffe)
	context(r4.TxIVT.Of(9), r4.TxIVLTV|r4.IVTIR.Of(r4.TagInsert))
	send(2, 0xfffe, 9)
	send(2, 0xfffe)
	context(0, r4.IVTIR.Of(r4.TagInsert))
	send(0, 9)
	send(0)
}

// TestTransmitEdits: lengths, padding, FCS and counters of frames that the MAC changed.
func TestTransmitEdits(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACVLANIncl.Store(g.r, 5)
	short, own := testFrame(54, 1), testFrame(90, 2)
	g.sendWith(r4.VTIR.Of(2), 0, short)
	if got := g.onWire(); !bytes.Equal(got, append(tags(short, 5), 0, 0)) {
		t.Errorf("%x", got)
	}
	if n, v := g.r.Load32(r4.TxOctetCountGood), g.r.Load32(r4.TxVLANPacketsGood); n != 64 || v != 1 {
		t.Errorf("%d octets, %d VLAN packets", n, v)
	}
	// The application's FCS does not fit the changed frame.
	sum := fcs(own)
	g.sendWith(r4.VTIR.Of(2), r4.CPC.Of(cpcNone), append(bytes.Clone(own), sum[:]...))
	if got := g.onWire(); !bytes.Equal(got, tags(own, 5)) {
		t.Errorf("%x", got)
	}
	// The checksum belongs to the packet, wherever the tags go.
	d := udp(1, 2, 3).padded(30)
	g.sendWith(r4.VTIR.Of(2), r4.CIC.Of(3), d.bytes())
	if got := g.onWire(); !bytes.Equal(got, d.tag(5).filled(6).bytes()) {
		t.Errorf("%x", got)
	}
	g.sendWith(r4.VTIR.Of(1), r4.CIC.Of(3), d.tag(5).bytes())
	if got := g.onWire(); !bytes.Equal(got, d.filled(6).bytes()) {
		t.Errorf("%x", got)
	}
	g.clean()
	g.queue(true, own[:40], own[40:])
	g.desc(g.txRing, g.txTail-1)[2] |= uint32(r4.VTIR.Of(2))
	g.ring()
	g.step()
	g.wantKinds(FirstOnlyBits)
}

// TestTransmitTagsLacking: a core without insertion leaves frames alone.
func TestTransmitTagsLacking(t *testing.T) {
	g := newRig(t, withConfig(bareConfig))
	g.open()
	g.r.Store32(uint32(r4.MACVLANIncl), uint32(r4.VLP|r4.VLC.Of(2)|5))
	r4.MACConfiguration.Update(g.r, 0, r4.SARC.Of(r4.SARReplace))
	f := testFrame(80, 1)
	g.sendWith(r4.VTIR.Of(2), r4.SAIC.Of(r4.SAInsert), f)
	if got := g.onWire(); !bytes.Equal(got, f) {
		t.Errorf("%x", got)
	}
	g.wantKinds(VLANMisuse)
}

func TestSourceAddress(t *testing.T) {
	second := [6]byte{0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}
	f := testFrame(80, 1)
	bare := append(bytes.Clone(f[:6]), f[12:]...) // without source address
	from := func(a [6]byte) []byte { return edit(f, 6, a[:]...) }
	for _, c := range []struct {
		name       string
		sarc, saic uint32
		in, out    []byte
	}{
		{"none", 0, 0, f, f},
		{"insert", 0, r4.SAInsert, bare, from(testMAC)},
		{"replace", 0, r4.SAReplace, f, from(testMAC)},
		{"insert address 1", 0, r4.SAMac1 | r4.SAInsert, bare, from(second)},
		{"replace with address 1", 0, r4.SAMac1 | r4.SAReplace, f, from(second)},
		{"reserved", 0, 3, f, f},
		{"register inserts", r4.SARInsert, 0, bare, from(testMAC)},
		{"register replaces", r4.SARReplace, 0, f, from(testMAC)},
		{"register inserts address 1", r4.SAMac1 | r4.SARInsert, 0, bare, from(second)},
		{"register over descriptor", r4.SAMac1 | r4.SARReplace, r4.SAInsert, f, from(second)},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			g.setMAC(1, second)
			r4.MACConfiguration.Update(g.r, 0, r4.SARC.Of(c.sarc))
			for _, pieces := range [][][]byte{{c.in}, split(c.in, 9)} {
				g.sendWith(0, r4.SAIC.Of(c.saic), pieces...)
				if got := g.onWire(); !bytes.Equal(got, c.out) {
					t.Errorf("sent %x, want %x", got[:20], c.out[:20])
				}
			}
			g.clean()
		})
	}
}

// TestTagsRandom: what is inserted by the transmitter is taken out by the receiver.
func TestTagsRandom(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.LM)
	r4.MACVLANTag.Store(g.r, uint32(r4.EDVLP|r4.ESVL|r4.EVLS.Of(3)|r4.EIVLS.Of(3)|r4.EVLRXS|r4.EIVLRXS))
	rapid.Check(t, func(rt *rapid.T) {
		f := testFrame(rapid.IntRange(60, 300).Draw(rt, "size"), 1)
		outer, inner := rapid.Uint32Range(0, 0xffff).Draw(rt, "outer"), rapid.Uint32Range(0, 0xffff).Draw(rt, "inner")
		csvl := rapid.Bool().Draw(rt, "svlan")
		incl := r4.VLTI
		if csvl {
			incl |= r4.CSVL
		}
		r4.MACVLANIncl.Store(g.r, incl)
		r4.MACInnerVLANIncl.Store(g.r, r4.VLTI)
		g.put(g.txRing, g.txTail, [4]uint32{0, 0, uint32(r4.TxIVT.Of(inner)),
			uint32(r4.TxOWN | r4.TxCTXT | r4.TxVLTV | r4.TxVT.Of(outer) | r4.TxIVLTV | r4.IVTIR.Of(2))})
		g.txTail++
		g.sendWith(r4.VTIR.Of(2), 0, f)
		w := g.mustRecv(f)
		if w[0] != inner<<16|outer || r4.RDES3(w[3])&r4.RxRS0V == 0 {
			rt.Fatalf("%08x", w)
		}
		g.post(1)
	})
}
