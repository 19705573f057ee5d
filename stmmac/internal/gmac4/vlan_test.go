package gmac4

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestVLANTrace are the stores of one change after another. A busy bit clears
// after two reads.
func TestVLANTrace(t *testing.T) {
	type step struct {
		f    core.Filter
		want []string
	}
	vids := func(l ...uint16) core.Filter { return core.Filter{VLANs: l} }
	for name, c := range map[string]struct {
		cfg   core.Config
		feat  core.Features
		steps []step
	}{
		"one register": {core.Config{}, core.Features{}, []step{
			{vids(100), []string{"MAC_VLAN_Tag 00010064", "MAC_Packet_Filter 00010000"}},
			{vids(100, 100), nil},
			{vids(5), []string{"MAC_VLAN_Tag 00010005"}},
			{core.Filter{VLANs: []uint16{5}, InverseVLAN: true}, []string{
				"MAC_Packet_Filter 00000000", "MAC_VLAN_Tag 00030005", "MAC_Packet_Filter 00010000"}},
			{vids(), []string{"MAC_Packet_Filter 00000000", "MAC_VLAN_Tag 00000000"}},
		}},
		"one register and a hash table": {core.Config{VLANStrip: true}, core.Features{VLANHash: true}, []step{
			{vids(1), []string{"MAC_VLAN_Tag 01610001", "MAC_Packet_Filter 00010000"}},
			{vids(1, 2), []string{"MAC_Packet_Filter 00000000", "MAC_VLAN_Hash_Table 00000110", "MAC_VLAN_Tag 03610000", "MAC_Packet_Filter 00010000"}},
			{vids(2), []string{"MAC_Packet_Filter 00000000", "MAC_VLAN_Hash_Table 00000000", "MAC_VLAN_Tag 01610002", "MAC_Packet_Filter 00010000"}},
			{vids(0), []string{"MAC_Packet_Filter 00000000", "MAC_VLAN_Hash_Table 00000001", "MAC_VLAN_Tag 03610000", "MAC_Packet_Filter 00010000"}},
		}},
		"four filters": {core.Config{VLANStrip: true, VLANDouble: true}, core.Features{VLANFilters: 4}, []step{
			{vids(7, 0), []string{
				"MAC_VLAN_Tag b5600000", "MAC_VLAN_Tag_Data 00030007", "MAC_VLAN_Tag b5600001",
				"MAC_VLAN_Tag_Data 00030000", "MAC_VLAN_Tag b5600005", "MAC_Packet_Filter 00010000"}},
			{vids(0, 9), []string{"MAC_VLAN_Tag_Data 00000000", "MAC_VLAN_Tag b5600001", "MAC_VLAN_Tag_Data 00030009", "MAC_VLAN_Tag b5600009"}},
			{core.Filter{Promiscuous: true, VLANs: []uint16{0, 9}}, []string{"MAC_Packet_Filter 00000001"}},
			{vids(0, 9), []string{"MAC_Packet_Filter 00010000"}},
			{vids(), []string{"MAC_Packet_Filter 00000000", "MAC_VLAN_Tag_Data 00000000", "MAC_VLAN_Tag b5600005",
				"MAC_VLAN_Tag_Data 00000000", "MAC_VLAN_Tag b5600009"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, f := newHW(c.cfg, c.feat)
			f.SelfClearing(uint32(macVLANTag), uint32(gmac4reg.VLANOB), 2)
			p, _, _ := h.filter.Plan(&core.Filter{})
			if err := h.filter.Change(p, true, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			for _, s := range c.steps {
				f.ResetLog()
				if _, err := h.SetFilter(s.f); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(s.want, named(stores(f))); d != "" {
					t.Errorf("%+v (-want +got):\n%s", s.f, d)
				}
			}
		})
	}
}

// TestVLANStuck: a device that never finishes the access to a VLAN filter, or
// is gone, ends it; the filter lets all VLANs in then, and the next change
// repairs it.
func TestVLANStuck(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{VLANFilters: 4})
	ctl := uint32(macVLANTag)
	set := func(target error, vids ...uint16) {
		t.Helper()
		f.ResetLog()
		if _, err := h.SetFilter(core.Filter{VLANs: vids}); !errors.Is(err, target) {
			t.Fatalf("%v: %v, want %v", vids, err, target)
		}
	}
	f.SelfClearing(ctl, uint32(gmac4reg.VLANOB), 2)
	set(nil, 1, 2)
	f.SelfClearing(ctl, uint32(gmac4reg.VLANOB), -1)
	begin := h.cfg.Clock.Now()
	set(core.ErrNoClock, 1, 3)
	if d := h.cfg.Clock.Now() - begin; d < vlanTimeout || d > vlanTimeout+10*time.Millisecond {
		t.Errorf("it took %v", d)
	}
	if v := gmac4reg.MACPacketFilter.Load(f); v&gmac4reg.VTFE != 0 {
		t.Errorf("MAC_Packet_Filter %#x", v)
	}
	f.OnLoad(ctl, func(uint32) uint32 { return mmio.AllOnes })
	set(core.ErrGone, 1, 3)
	f.OnLoad(ctl, nil)
	f.SelfClearing(ctl, uint32(gmac4reg.VLANOB), 2)
	set(nil, 1, 2)
	// The filter that nothing is known of is written again.
	if d := cmp.Diff([]string{"MAC_VLAN_Tag_Data 00000000", "MAC_VLAN_Tag 00000005",
		"MAC_VLAN_Tag_Data 00030002", "MAC_VLAN_Tag 00000009", "MAC_Packet_Filter 00010000"}, named(stores(f))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if v := gmac4reg.MACPacketFilter.Load(f); v != gmac4reg.VTFE {
		t.Errorf("MAC_Packet_Filter %#x", v)
	}
}

func TestVIDBins(t *testing.T) {
	for vid := range 4096 {
		if got, want := vidBin(vid), crcTop([]byte{byte(vid), byte(vid >> 8)}, 12, 4); got != want {
			t.Fatalf("VLAN %d has bin %d, want %d", vid, got, want)
		}
	}
}
