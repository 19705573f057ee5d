package gmac4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestHashVectors are the bins of case D45, as registers and bits.
func TestHashVectors(t *testing.T) {
	type place struct{ reg, bit int }
	for _, c := range []struct {
		addr  string
		where map[int]place // by the number of bins
	}{
		{"1f:52:41:9c:b6:af", map[int]place{64: {1, 12}, 128: {2, 25}, 256: {5, 19}}},
		{"a0:0a:98:00:00:45", map[int]place{64: {0, 7}, 128: {0, 14}, 256: {0, 29}}},
		{"01:00:5e:00:00:01", map[int]place{64: {1, 0}, 128: {2, 0}, 256: {4, 0}}},
		{"01:00:5e:00:00:fb", map[int]place{64: {1, 16}, 128: {3, 0}, 256: {6, 0}}},
		{"33:33:00:00:00:01", map[int]place{64: {0, 1}, 128: {0, 3}, 256: {0, 6}}},
		{"33:33:ff:12:34:56", map[int]place{64: {1, 29}, 128: {3, 26}, 256: {7, 20}}},
		{"01:80:c2:00:00:0e", map[int]place{64: {0, 30}, 128: {1, 28}, 256: {3, 24}}},
		{"01:1b:19:00:00:00", map[int]place{64: {0, 0}, 128: {0, 0}, 256: {0, 1}}},
	} {
		for bins, want := range c.where {
			h, f := newHW(core.Config{}, core.Features{HashBins: bins})
			a := addr(t, c.addr)
			filter, use := core.Filter{Multicast: []net.HardwareAddr{a}}, gmac4reg.HMC
			if a[0]&1 == 0 {
				filter, use = core.Filter{Unicast: []net.HardwareAddr{a}}, gmac4reg.HUC
			}
			if _, err := h.SetFilter(filter); err != nil {
				t.Fatal(err)
			}
			for i := range gmac4reg.HashWords {
				var bit uint32
				if i == want.reg {
					bit = 1 << want.bit
				}
				if got := f.Peek(uint32(gmac4reg.MACHashTable.At(i, 4))); got != bit {
					t.Errorf("%s in %d bins: register %d is %#x, want %#x", c.addr, bins, i, got, bit)
				}
			}
			if got := gmac4reg.MACPacketFilter.Load(f); got != use|gmac4reg.HPF {
				t.Errorf("%s: MAC_Packet_Filter %#x", c.addr, got)
			}
		}
	}
}

// judge is what the databook says of a frame and the registers of a fake, in
// which it sees every store.
type judge struct {
	f       *mmio.Fake
	bins    int
	vlans   int
	latched bool // address pairs take effect with their low half, else each half at once
	pairs   [32][2]uint32
	vids    map[uint32]gmac4reg.VLANTagData
	check   func() // after each store
}

type probe struct {
	dst, src net.HardwareAddr
	vid      int // -1: no tag
}

func newJudge(h *HW, f *mmio.Fake, latched bool) *judge {
	j := &judge{f: f, bins: h.feat.HashBins, vlans: h.feat.VLANFilters, latched: latched, vids: map[uint32]gmac4reg.VLANTagData{}}
	f.SelfClearing(uint32(macVLANTag), uint32(gmac4reg.VLANOB), 2)
	for off := uint32(0); off < 0x400; off += 4 {
		f.OnStore(off, func(v uint32) { j.store(off, v) })
	}
	return j
}

func (j *judge) store(off, v uint32) {
	if i := int(off-uint32(gmac4reg.MACAddressHigh)) / 8; off >= uint32(gmac4reg.MACAddressHigh) && i < len(j.pairs) {
		if low := off&4 != 0; low || !j.latched {
			j.pairs[i] = [2]uint32{j.f.Peek(off &^ 4), j.f.Peek(off | 4)}
		}
	}
	if ctl := gmac4reg.VLANTag(v); off == uint32(macVLANTag) && j.vlans > 1 && ctl&gmac4reg.VLANOB != 0 {
		j.vids[gmac4reg.VLANOFS.Get(ctl)] = gmac4reg.VLANTagData(j.f.Peek(uint32(gmac4reg.MACVLANTagData)))
	}
	if j.check != nil {
		j.check()
	}
}

// crcTop are the upper bits of the CRC-32 of bits, the lowest of each byte
// first, as the polynomial of IEEE 802.3 gives it without any reversal.
func crcTop(bytes []byte, n, top int) uint32 {
	crc := ^uint32(0)
	for i := range n {
		out := crc>>31 ^ uint32(bytes[i/8]>>(i%8))&1
		crc <<= 1
		if out != 0 {
			crc ^= 0x04c11db7
		}
	}
	return ^crc >> (32 - top)
}

func (j *judge) inHash(a net.HardwareAddr) bool {
	if j.bins == 0 {
		return false
	}
	bin := crcTop(a, 48, map[int]int{64: 6, 128: 7, 256: 8}[j.bins])
	return j.f.Peek(uint32(gmac4reg.MACHashTable)+bin/32*4)>>(bin%32)&1 != 0
}

// matches says whether a pair compares a, with senders or with destinations.
func (j *judge) matches(a net.HardwareAddr, source bool) bool {
	for i, p := range j.pairs {
		high := gmac4reg.AddressHigh(p[0])
		sa := i > 0 && high&gmac4reg.SA != 0
		if high&gmac4reg.AE != 0 && sa == source && binary.LittleEndian.Uint32(a) == p[1] &&
			uint32(binary.LittleEndian.Uint16(a[4:])) == gmac4reg.ADDRHI.Get(high) {
			return true
		}
	}
	return false
}

func (j *judge) accepts(p probe) bool {
	ctl := gmac4reg.PacketFilter(j.f.Peek(uint32(gmac4reg.MACPacketFilter)))
	if p.vid >= 0 && ctl&gmac4reg.VTFE != 0 && !j.vlan(uint32(p.vid)) {
		return false
	}
	if ctl&gmac4reg.PR != 0 {
		return true
	}
	if ctl&gmac4reg.SAF != 0 && j.matches(p.src, true) == (ctl&gmac4reg.SAIF != 0) {
		return false
	}
	useHash := gmac4reg.HUC
	if p.dst[0]&1 != 0 {
		useHash = gmac4reg.HMC
	}
	match := j.matches(p.dst, false)
	switch {
	case slices.Equal(p.dst, broadcastAddr):
		return ctl&gmac4reg.DBF == 0
	case p.dst[0]&1 != 0 && ctl&gmac4reg.PM != 0:
		return true
	case ctl&useHash != 0 && ctl&gmac4reg.HPF != 0:
		match = match || j.inHash(p.dst)
	case ctl&useHash != 0:
		match = j.inHash(p.dst)
	}
	return match != (ctl&gmac4reg.DAIF != 0)
}

func (j *judge) vlan(vid uint32) bool {
	tag := gmac4reg.VLANTag(j.f.Peek(uint32(macVLANTag)))
	vl := gmac4reg.VL.Get(tag) & 0xfff
	match := false
	if j.vlans > 1 {
		for _, d := range j.vids {
			match = match || d&gmac4reg.VEN != 0 && gmac4reg.VID.Get(d) == vid
		}
	} else if match = vid == vl && vl != 0; vl == 0 && tag&gmac4reg.VTHM == 0 {
		return true
	}
	if tag&gmac4reg.VTHM != 0 {
		bin := crcTop(binary.LittleEndian.AppendUint16(nil, uint16(vid)), 12, 4)
		match = match || j.f.Peek(uint32(gmac4reg.MACVLANHash))>>bin&1 != 0
	}
	return match != (tag&gmac4reg.VTIM != 0)
}

var (
	broadcastAddr = net.HardwareAddr{255, 255, 255, 255, 255, 255}
	ownAddr       = net.HardwareAddr{2, 0, 0, 0, 0, 1}
)

// wants is what core.Filter says of a frame.
func wants(f *core.Filter, p probe) bool {
	in := func(l []net.HardwareAddr, a net.HardwareAddr) bool {
		return slices.ContainsFunc(l, func(b net.HardwareAddr) bool { return slices.Equal(a, b) })
	}
	switch {
	case f.Promiscuous:
		return true
	case p.vid >= 0 && len(f.VLANs) > 0 && slices.Contains(f.VLANs, uint16(p.vid)) == f.InverseVLAN:
		return false
	case len(f.Source) > 0 && in(f.Source, p.src) == f.InverseSource:
		return false
	case slices.Equal(p.dst, broadcastAddr):
		return !f.NoBroadcast
	case p.dst[0]&1 != 0 && f.AllMulticast:
		return true
	}
	return (slices.Equal(p.dst, ownAddr) || in(f.Unicast, p.dst) || in(f.Multicast, p.dst)) != f.InverseDestination
}

// TestFilterChanges walks through random filters on devices of all kinds. After
// every single store the device lets in what the filters before and after both
// let in, and at the end what the new one does and, unless bins are shared or a
// table is full, nothing else.
func TestFilterChanges(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 7))
	mac := func(first, last byte) net.HardwareAddr { return net.HardwareAddr{first, 0, 0x5e, 1, 2, last} }
	var uni, multi, src []net.HardwareAddr
	for i := range byte(6) {
		uni, multi, src = append(uni, mac(2, i)), append(multi, mac(1, i)), append(src, mac(6, i))
	}
	vids := []uint16{0, 1, 2, 5, 100, 0xabc, 4094, 4095}
	var probes []probe
	for _, dst := range slices.Concat(uni, multi, []net.HardwareAddr{ownAddr, broadcastAddr, mac(2, 99), mac(1, 99)}) {
		for _, s := range src[:3] {
			probes = append(probes, probe{dst, s, -1}, probe{dst, s, int(vids[rnd.IntN(len(vids))])})
		}
	}
	for _, v := range vids {
		probes = append(probes, probe{ownAddr, src[0], int(v)}, probe{ownAddr, src[0], int(v) + 7&0xfff})
	}
	pick := func(l []net.HardwareAddr) (out []net.HardwareAddr) {
		for range rnd.IntN(2 * len(l)) {
			out = append(out, l[rnd.IntN(len(l))])
		}
		return out
	}
	odd := func(one int) bool { return rnd.IntN(one) == 0 }
	random := func() core.Filter {
		f := core.Filter{Promiscuous: odd(12), AllMulticast: odd(8), NoBroadcast: odd(6), InverseDestination: odd(8)}
		if !odd(5) {
			f.Unicast, f.Multicast = pick(uni), pick(multi)
		}
		if odd(3) {
			f.Source = pick(src[:3])
			f.InverseSource = len(f.Source) > 0 && odd(2)
		}
		if odd(2) {
			for range rnd.IntN(8) {
				f.VLANs = append(f.VLANs, vids[rnd.IntN(len(vids))])
			}
			f.InverseVLAN = len(f.VLANs) > 0 && odd(4)
		}
		return f
	}
	done, refused := 0, 0
	for _, feat := range []core.Features{
		{}, {HashBins: 64}, {PerfectFilters: 1, HashBins: 64, VLANHash: true}, {PerfectFilters: 3, HashBins: 128, VLANFilters: 4},
		{PerfectFilters: 4, VLANFilters: 4, VLANHash: true}, {PerfectFilters: 8, HashBins: 256, VLANFilters: 4, VLANHash: true},
		{PerfectFilters: 31, HashBins: 64, VLANFilters: 32},
	} {
		for _, latched := range []bool{true, false} {
			h, f := newHW(core.Config{}, feat)
			j := newJudge(h, f, latched)
			if err := h.SetAddr(ownAddr); err != nil {
				t.Fatal(err)
			}
			if _, err := h.SetFilter(core.Filter{}); err != nil {
				t.Fatal(err)
			}
			var now core.Filter
			for step := range 60 {
				next := random()
				if odd(2) { // one entry more or less
					next = now.Clone()
					next.Multicast = append(next.Multicast, multi[rnd.IntN(len(multi))])
					if odd(2) {
						next.Multicast = next.Multicast[1:]
					}
				}
				j.check = func() {
					for _, p := range probes {
						if wants(&now, p) && wants(&next, p) && !j.accepts(p) {
							t.Fatalf("%+v, latched %v, step %d: %+v is lost on the way from\n%+v to\n%+v\nafter %v", feat, latched, step, p, now, next, f.Log())
						}
					}
				}
				f.ResetLog()
				use, err := h.SetFilter(next)
				j.check = nil
				if err != nil {
					if refused++; !errors.Is(err, errors.ErrUnsupported) || len(stores(f)) != 0 {
						t.Fatalf("refused with %v after %v", err, f.Log())
					}
					continue
				}
				done++
				exact := use.Hashed == 0 && use.HashedVLANs == 0 && !use.Promiscuous && !use.AllMulticast
				for _, p := range probes {
					want, got := wants(&next, p), j.accepts(p)
					if want && !got || exact && got && !want {
						t.Fatalf("%+v, step %d: %+v accepted %v, want %v\n%+v\n%+v", feat, step, p, got, want, next, use)
					}
				}
				now = next
			}
		}
	}
	if done < 300 || refused < 50 {
		t.Errorf("%d changes done and %d refused: too few to tell", done, refused)
	}
}

// named are stores as text.
func named(l []mmio.Access) (out []string) {
	for _, a := range l {
		out = append(out, fmt.Sprintf("%s %08x", gmac4reg.Map.Name(a.Off), a.Val))
	}
	return out
}

func TestFilterTrace(t *testing.T) {
	g := func(last byte) net.HardwareAddr { return net.HardwareAddr{1, 0, 0x5e, 0, 0, last} } // bins of 64: 1: 0x20, 0xfb: 0x30
	h, f := newHW(core.Config{}, core.Features{PerfectFilters: 1, HashBins: 64})
	for _, c := range []struct {
		what   string
		filter core.Filter
		want   []string
	}{
		{"after a reset all is written", core.Filter{}, []string{
			"MAC_Address1_High 00000000", "MAC_Address1_Low 00000000", "MAC_Packet_Filter 00000000"}},
		{"nothing changes", core.Filter{}, nil},
		{"into a perfect filter", core.Filter{Multicast: []net.HardwareAddr{g(1)}}, []string{
			"MAC_Address1_High 80000100", "MAC_Address1_Low 005e0001"}},
		{"joined twice", core.Filter{Multicast: []net.HardwareAddr{g(1), g(1)}}, nil},
		{"beyond, into the hash table", core.Filter{Multicast: []net.HardwareAddr{g(1), g(1), g(0xfb)}}, []string{
			"MAC_Hash_Table_Reg1 00010000", "MAC_Packet_Filter 00000404"}},
		{"from the hash table into a perfect filter", core.Filter{Multicast: []net.HardwareAddr{g(0xfb)}}, []string{
			"MAC_Address1_High 8000fb00", "MAC_Address1_Low 005e0001", "MAC_Packet_Filter 00000000", "MAC_Hash_Table_Reg1 00000000"}},
		{"into the hash table, for a unicast", core.Filter{Multicast: []net.HardwareAddr{g(0xfb)}, Unicast: []net.HardwareAddr{ownAddr}}, []string{
			"MAC_Hash_Table_Reg1 00010000", "MAC_Packet_Filter 00000404", "MAC_Address1_High 80000100", "MAC_Address1_Low 00000002"}},
		{"nothing", core.Filter{}, []string{
			"MAC_Address1_High 00000000", "MAC_Address1_Low 00000000", "MAC_Packet_Filter 00000000", "MAC_Hash_Table_Reg1 00000000"}},
	} {
		f.ResetLog()
		if _, err := h.SetFilter(c.filter); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, named(stores(f))); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
}

func TestFilterUse(t *testing.T) {
	var uni, multi []net.HardwareAddr
	for i := range byte(4) {
		uni, multi = append(uni, net.HardwareAddr{2, 0, 0, 0, 1, i}), append(multi, net.HardwareAddr{1, 0, 0, 0, 1, i})
	}
	both := core.Filter{Unicast: uni, Multicast: multi}
	for _, c := range []struct {
		feat core.Features
		f    core.Filter
		use  core.FilterUse
		ctrl gmac4reg.PacketFilter
	}{
		{core.Features{PerfectFilters: 8}, both, core.FilterUse{Perfect: 8}, 0},
		{core.Features{PerfectFilters: 7}, both, core.FilterUse{Perfect: 4, AllMulticast: true}, gmac4reg.PM},
		{core.Features{PerfectFilters: 3}, both, core.FilterUse{Promiscuous: true, AllMulticast: true}, gmac4reg.PR | gmac4reg.PM},
		{core.Features{PerfectFilters: 5, HashBins: 64}, both, core.FilterUse{Perfect: 5, Hashed: 3}, gmac4reg.HMC | gmac4reg.HPF},
		{core.Features{PerfectFilters: 2, HashBins: 64}, both, core.FilterUse{Perfect: 2, Hashed: 6}, gmac4reg.HUC | gmac4reg.HMC | gmac4reg.HPF},
		{core.Features{PerfectFilters: 4}, core.Filter{Unicast: uni, Multicast: multi, AllMulticast: true}, core.FilterUse{Perfect: 4}, gmac4reg.PM},
		{core.Features{PerfectFilters: 8}, core.Filter{Source: uni, InverseSource: true, Multicast: multi}, core.FilterUse{Perfect: 8}, gmac4reg.SAF | gmac4reg.SAIF},
	} {
		h, f := newHW(core.Config{}, c.feat)
		use, err := h.SetFilter(c.f)
		if err != nil || use != c.use || gmac4reg.MACPacketFilter.Load(f) != c.ctrl {
			t.Errorf("%+v: %+v, %v, filter %v, want %+v and %v", c.feat, use, err, gmac4reg.MACPacketFilter.Load(f), c.use, c.ctrl)
		}
	}
}

func TestFilterRefused(t *testing.T) {
	uni := func(n int) (l []net.HardwareAddr) {
		for i := range n {
			l = append(l, net.HardwareAddr{2, 0, 0, 0, 1, byte(i)})
		}
		return l
	}
	for name, c := range map[string]struct {
		f      core.Filter
		target error
	}{
		"multicast as unicast":    {core.Filter{Unicast: []net.HardwareAddr{{1, 0, 0, 0, 0, 1}}}, os.ErrInvalid},
		"unicast as multicast":    {core.Filter{Multicast: uni(1)}, os.ErrInvalid},
		"broadcast as multicast":  {core.Filter{Multicast: []net.HardwareAddr{broadcastAddr}}, os.ErrInvalid},
		"zero":                    {core.Filter{Unicast: []net.HardwareAddr{make(net.HardwareAddr, 6)}}, os.ErrInvalid},
		"short":                   {core.Filter{Unicast: []net.HardwareAddr{{2, 0}}}, os.ErrInvalid},
		"long":                    {core.Filter{Multicast: []net.HardwareAddr{make(net.HardwareAddr, 8)}}, os.ErrInvalid},
		"nil":                     {core.Filter{Source: []net.HardwareAddr{nil}}, os.ErrInvalid},
		"a VLAN of 13 bits":       {core.Filter{VLANs: []uint16{4096}}, os.ErrInvalid},
		"inverse without sources": {core.Filter{InverseSource: true}, os.ErrInvalid},
		"inverse without VLANs":   {core.Filter{InverseVLAN: true}, os.ErrInvalid},
		"too many sources":        {core.Filter{Source: uni(4)}, errors.ErrUnsupported},
		"too many inverse":        {core.Filter{Unicast: uni(4), InverseDestination: true}, errors.ErrUnsupported},
		"inverse beside a source": {core.Filter{Unicast: uni(3), InverseDestination: true, Source: uni(1)}, errors.ErrUnsupported},
		"two VLANs":               {core.Filter{VLANs: []uint16{1, 2}}, errors.ErrUnsupported},
		"VLAN 0":                  {core.Filter{VLANs: []uint16{0}}, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			h, f := newHW(core.Config{Name: "dev"}, core.Features{PerfectFilters: 3, HashBins: 64})
			_, err := h.SetFilter(c.f)
			var e *core.Error
			if !errors.Is(err, c.target) || !errors.As(err, &e) || e.Dev != "dev" || len(stores(f)) != 0 {
				t.Errorf("%v, stores %v", err, stores(f))
			}
		})
	}
}

func TestFilterGone(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{})
	f.OnLoad(uint32(gmac4reg.MACPacketFilter), func(uint32) uint32 { return mmio.AllOnes })
	if _, err := h.SetFilter(core.Filter{}); !errors.Is(err, core.ErrGone) {
		t.Error(err)
	}
	f.OnLoad(uint32(gmac4reg.MACAddressHigh), func(uint32) uint32 { return mmio.AllOnes })
	if err := h.SetAddr(ownAddr); !errors.Is(err, core.ErrGone) {
		t.Error(err)
	}
}
