package glue

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/stmmac"
)

func TestDeviceTree(t *testing.T) {
	const (
		gmac4 = stmmac.GMAC4
		mac   = "\x02\x11\x22\x33\x44\x55"
	)
	unmixed := stmmac.AXI{NoMixedBurst: true}
	for _, tc := range []struct {
		name       string
		properties map[string]string
		want       told
	}{
		{"nothing said", map[string]string{"compatible": "x\x00"}, told{Generation: gmac4, AXI: unmixed}},
		{"bursts", map[string]string{"snps,pbl": cells(8), "snps,fixed-burst": "", "snps,mixed-burst": "", "snps,aal": ""},
			told{Generation: gmac4, AXI: stmmac.AXI{FixedBurst: true, AlignedBeats: true, PBL: 8}}},
		{"a PBL that there is not", map[string]string{"snps,pbl": cells(7)}, told{Generation: gmac4, AXI: unmixed}},
		{"AXI below the node", map[string]string{
			"snps,axi-config": cells(7), "other/phandle": cells(6), "stmmac-axi-config/phandle": cells(7),
			"stmmac-axi-config/snps,wr_osr_lmt": cells(3), "stmmac-axi-config/snps,rd_osr_lmt": cells(7),
			"stmmac-axi-config/snps,blen": cells(256, 128, 0, 0, 16, 8, 4),
		}, told{Generation: gmac4, AXI: stmmac.AXI{NoMixedBurst: true, MaxWrites: 4, MaxReads: 8, BurstLens: 412}}},
		{"AXI at the root", map[string]string{
			"snps,axi-config": cells(7), "../../../../../../sys/firmware/devicetree/base/axi/phandle": cells(7),
			"../../../../../../sys/firmware/devicetree/base/axi/snps,rd_osr_lmt": cells(0xffffffff),
			"../../../../../../sys/firmware/devicetree/base/axi/snps,blen":       cells(5, 16, 16, 0),
		}, told{Generation: gmac4, AXI: stmmac.AXI{NoMixedBurst: true, MaxReads: 16, BurstLens: 16}}},
		{"AXI nowhere", map[string]string{"snps,axi-config": cells(7)}, told{Generation: gmac4, AXI: unmixed}},
		{"FIFOs", map[string]string{"rx-fifo-depth": cells(16384), "tx-fifo-depth": cells(8192)},
			told{Generation: gmac4, AXI: unmixed, RxFIFO: 16384, TxFIFO: 8192}},
		{"FIFOs that there are not", map[string]string{"rx-fifo-depth": cells(1<<20 + 1), "tx-fifo-depth": cells(8192, 1)},
			told{Generation: gmac4, AXI: unmixed}},
		{"address", map[string]string{"local-mac-address": mac}, told{Generation: gmac4, AXI: unmixed, HardwareAddr: []byte(mac)}},
		{"address that is set later", map[string]string{"local-mac-address": "\x02\x00\x00\x00\x00\x01", "mac-address": mac},
			told{Generation: gmac4, AXI: unmixed, HardwareAddr: []byte(mac)}},
		{"no address", map[string]string{"local-mac-address": "\x00\x00\x00\x00\x00\x00", "mac-address": "\x01\x00\x00\x00\x00\x01"},
			told{Generation: gmac4, AXI: unmixed}},
		{"PHY", map[string]string{"phy-handle": cells(9), "mdio/ethernet-phy@0/phandle": cells(8), "mdio/ethernet-phy@0/reg": cells(0),
			"mdio/ethernet-phy@3/phandle": cells(9), "mdio/ethernet-phy@3/reg": cells(3)},
			told{Generation: gmac4, AXI: unmixed, PHY: &stmmac.PHY{Addr: 3}}},
		{"PHY of clause 45", map[string]string{"phy-handle": cells(9), "mdio/phy/phandle": cells(9), "mdio/phy/reg": cells(0),
			"mdio/phy/compatible": "ethernet-phy-id1234.5678\x00ethernet-phy-ieee802.3-c45\x00"},
			told{Generation: gmac4, AXI: unmixed, PHY: &stmmac.PHY{Addr: 0, Clause45: true}}},
		{"PHY out of range", map[string]string{"phy-handle": cells(9), "mdio/phy/phandle": cells(9), "mdio/phy/reg": cells(32)},
			told{Generation: gmac4, AXI: unmixed}},
		{"PHY of another MAC", map[string]string{"phy-handle": cells(9), "../../other/of_node/mdio/phy/phandle": cells(9), "../../other/of_node/mdio/phy/reg": cells(1)},
			told{Generation: gmac4, AXI: unmixed}},
		{"fixed link", map[string]string{"fixed-link/speed": cells(1000), "fixed-link/full-duplex": "", "phy-handle": cells(9),
			"mdio/phy/phandle": cells(9), "mdio/phy/reg": cells(1)},
			told{Generation: gmac4, AXI: unmixed, Link: stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}}},
		{"fixed link with pause", map[string]string{"fixed-link/speed": cells(100), "fixed-link/pause": ""},
			told{Generation: gmac4, AXI: unmixed, Link: stmmac.Link{Up: true, Speed: 100, RxPause: true, TxPause: true}}},
		{"fixed link of no speed", map[string]string{"fixed-link/speed": cells(7)}, told{Generation: gmac4, AXI: unmixed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := mustFind(t, ofNode(tc.properties), platformInfo("snps,dwmac-5.20"))
			if d := cmp.Diff(tc.want, tellOf(configOf(t, g.Options(1)))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err := g.Missing(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTableAndTree: the node goes before the table where both know something.
func TestTableAndTree(t *testing.T) {
	g := mustFind(t, ofNode(map[string]string{"rx-fifo-depth": cells(1024), "snps,pbl": cells(4)}), platformInfo("nvidia,tegra186-eqos"))
	want := told{Generation: stmmac.GMAC4, RxFIFO: 1024, AXI: stmmac.AXI{AlignedBeats: true, NoMixedBurst: true, PBL: 4}}
	if d := cmp.Diff(want, tellOf(configOf(t, g.Options(1)))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPreconditions(t *testing.T) {
	g := mustFind(t, ofNode(map[string]string{
		"clocks": cells(1, 2), "clock-names": "stmmaceth\x00clk_mac_ref\x00", "resets": cells(1, 2), "reset-names": "stmmaceth\x00",
		"power-domains": cells(1, 2), "phy-supply": cells(3), "phy-mode": "rgmii-id\x00",
	}), platformInfo("rockchip,rk3588-gmac", "snps,dwmac-4.20a"))
	all := strings.Join(g.Preconditions, "\n")
	for _, want := range []string{"GRF", "clocks run (stmmaceth, clk_mac_ref)", "clk_ignore_unused", "resets are released (stmmaceth)", "power domain", "phy-supply", "rgmii-id"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	g = mustFind(t, ofNode(map[string]string{"compatible": "x\x00"}), platformInfo("snps,dwmac-4.20a"))
	if len(g.Preconditions) > 0 {
		t.Errorf("of a node that needs nothing: %q", g.Preconditions)
	}
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		status string
		ok     bool
	}{{"okay\x00", true}, {"ok\x00", true}, {"", true}, {"disabled\x00", false}, {"fail-sss\x00", false}} {
		g := mustFind(t, ofNode(map[string]string{"status": tc.status}), platformInfo("snps,dwmac-4.20a"))
		err := g.Missing()
		if (err == nil) != tc.ok || err != nil && (!errors.Is(err, os.ErrInvalid) || !strings.Contains(err.Error(), strings.Trim(tc.status, "\x00"))) {
			t.Errorf("%q: %v", tc.status, err)
		}
	}
}

func TestProperties(t *testing.T) {
	n := node{fstest.MapFS{
		"n/a": {Data: []byte("\x00\x00\x00\x01\x80\x00\x00\x02")}, "n/b": {Data: []byte("abc")}, "n/c": {Data: []byte("x\x00y\x00")},
		"n/d": {Data: nil}, "n/e/f": {Data: []byte("\x00")}, "n/g": {Data: []byte("one\x00")}, "n/h": {Data: []byte("\x00\x00\x00\x05")},
	}, "n"}
	for _, tc := range []struct {
		name          string
		numbers       []uint32
		number        uint32
		texts         []string
		text          string
		has, isParent bool
	}{
		{"a", []uint32{1, 0x80000002}, 0, nil, "", true, false},
		{"b", nil, 0, nil, "", true, false},
		{"c", []uint32{0x78007900}, 0x78007900, []string{"x", "y"}, "", true, false},
		{"d", nil, 0, nil, "", true, false},
		{"e", nil, 0, nil, "", false, true},
		{"g", []uint32{0x6f6e6500}, 0x6f6e6500, []string{"one"}, "one", true, false},
		{"h", []uint32{5}, 5, nil, "", true, false},
		{"none", nil, 0, nil, "", false, false},
	} {
		got := []any{n.numbers(tc.name), n.number(tc.name), n.texts(tc.name), n.text(tc.name), n.has(tc.name), n.child(tc.name).exists()}
		want := []any{tc.numbers, tc.number, tc.texts, tc.text, tc.has, tc.isParent}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// FuzzDeviceTree: whatever a node holds, what comes of it is a configuration that
// stmmac.Open takes.
func FuzzDeviceTree(f *testing.F) {
	f.Add("snps,pbl", []byte{0, 0, 0, 8}, []byte("macirq\x00"))
	f.Add("rx-fifo-depth", []byte{0xff, 0xff, 0xff, 0xff}, []byte{})
	f.Add("snps,axi-config", []byte{0, 0, 0, 1}, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 4})
	f.Add("phy-handle", []byte{0, 0, 0, 1}, []byte{0, 0, 0, 31})
	f.Add("fixed-link/speed", []byte{0, 0, 3, 0xe8}, []byte{1})
	f.Add("mac-address", []byte{2, 0, 0, 0, 0, 1}, []byte{})
	f.Fuzz(func(t *testing.T, name string, a, b []byte) {
		handle := cells(1)
		k := ofNode(map[string]string{
			"snps,axi-config": handle, "axi/phandle": handle, "axi/snps,blen": string(b), "axi/snps,wr_osr_lmt": string(a), "axi/snps,rd_osr_lmt": string(b),
			"phy-handle": handle, "mdio/phy/phandle": handle, "mdio/phy/reg": string(b), "mdio/phy/compatible": string(a),
			"tx-fifo-depth": string(b), "local-mac-address": string(b),
		})
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-,_/") == "" && name != "" {
			k = ofNode(map[string]string{name: string(a), "clock-names": string(b), "status": string(b)})
		}
		g := mustFind(t, k, platformInfo("snps,dwmac-5.20"))
		_, err := stmmac.Open(t.Context(), &device{}, g.Options(1)...)
		if !errors.Is(err, os.ErrNotExist) { // the region, which is looked at after all that is checked
			t.Fatalf("%q %q %q: %v", name, a, b, err)
		}
	})
}
