package glue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

func TestFindPCI(t *testing.T) {
	const g4, g3 = stmmac.GMAC4, stmmac.GMAC
	for _, tc := range []struct {
		vendor, device uint16
		name           string
		generation     stmmac.Generation
		supported      bool
	}{
		{0x1f0a, 0x6801, "Motorcomm YT6801", g4, true},
		{0x8086, 0x4b30, "Intel Elkhart Lake RGMII 1G", g4, true},
		{0x8086, 0x4b31, "Intel Elkhart Lake SGMII 1G", g4, true},
		{0x8086, 0x4b32, "Intel Elkhart Lake SGMII 2.5G", g4, true},
		{0x8086, 0x4ba0, "Intel Elkhart Lake PSE 0 RGMII 1G", g4, true},
		{0x8086, 0x4ba1, "Intel Elkhart Lake PSE 0 SGMII 1G", g4, true},
		{0x8086, 0x4ba2, "Intel Elkhart Lake PSE 0 SGMII 2.5G", g4, true},
		{0x8086, 0x4bb0, "Intel Elkhart Lake PSE 1 RGMII 1G", g4, true},
		{0x8086, 0x4bb1, "Intel Elkhart Lake PSE 1 SGMII 1G", g4, true},
		{0x8086, 0x4bb2, "Intel Elkhart Lake PSE 1 SGMII 2.5G", g4, true},
		{0x8086, 0xa0ac, "Intel Tiger Lake SGMII 1G", g4, true},
		{0x8086, 0x43ac, "Intel Tiger Lake-H SGMII 1G port 0", g4, true},
		{0x8086, 0x43a2, "Intel Tiger Lake-H SGMII 1G port 1", g4, true},
		{0x8086, 0x7aac, "Intel Alder Lake-S SGMII 1G port 0", g4, true},
		{0x8086, 0x7aad, "Intel Alder Lake-S SGMII 1G port 1", g4, true},
		{0x8086, 0x54ac, "Intel Alder Lake-N SGMII 1G", g4, true},
		{0x8086, 0x51ac, "Intel Raptor Lake-P SGMII 1G", g4, true},
		{0x8086, 0x0937, "Intel Quark X1000", g3, true},
		{0x0014, 0x7a03, "Loongson LS7A1000 GMAC", g3, false},
		{0x0014, 0x7a13, "Loongson LS2K2000 GNET", g3, false},
		{0x0014, 0x7a23, "Loongson LS7A2000 GMAC", g3, false},
		{0x16c3, 0x7102, "Synopsys GMAC5 evaluation board", g4, true},
		{0x104a, 0xcc09, "STMicroelectronics GMAC", g3, true},
		{0x0700, 0x1108, "stmmac evaluation board", g3, true},
	} {
		t.Run(fmt.Sprintf("%04x:%04x", tc.vendor, tc.device), func(t *testing.T) {
			g := mustFind(t, tree{}, pciInfo(tc.vendor, tc.device))
			if g.Name != tc.name || g.Generation != tc.generation {
				t.Errorf("%s, %v", g.Name, g.Generation)
			}
			if err := g.Missing(); err != nil {
				t.Error(err)
			}
			err := g.Support()
			if (err == nil) != tc.supported || err != nil && (!errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), tc.name)) {
				t.Errorf("support: %v", err)
			}
			// The neighbours are others.
			for _, near := range []uint16{tc.device ^ 0x0100, tc.device ^ 0x8000} {
				if _, err := Find(tree{}, pciInfo(tc.vendor, near)); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%04x: %v", near, err)
				}
			}
		})
	}
}

// TestTables: no device is in a table twice, and no entry is without a name or
// without a way to tell why it cannot be driven.
func TestTables(t *testing.T) {
	ids := map[string]bool{}
	check := func(id string, is integration) {
		if ids[id] {
			t.Errorf("%s is there twice", id)
		}
		ids[id] = true
		if is.name == "" || is.generation == 0 && is.own == "" {
			t.Errorf("%s: %+v", id, is)
		}
	}
	for _, e := range pciTable {
		check(fmt.Sprintf("%04x:%04x", e.vendor, e.device), e.integration)
	}
	for _, e := range platformTable {
		for _, c := range e.compatibles {
			check(c, e.integration)
			if vendor, _, ok := strings.Cut(c, ","); !ok || vendor == "" || strings.ContainsAny(c, " \x00") {
				t.Errorf("%q is no compatible", c)
			}
		}
	}
}

func TestFindPlatform(t *testing.T) {
	for _, tc := range []struct {
		compatible []string
		name       string
		generation stmmac.Generation
		limit      string // part of one of the limits, or ""
	}{
		{[]string{"snps,dwmac-3.50a"}, "DesignWare GMAC 3.x", stmmac.GMAC, ""},
		{[]string{"snps,dwmac-3.72a", "snps,dwmac"}, "DesignWare GMAC 3.x", stmmac.GMAC, ""},
		{[]string{"snps,dwmac"}, "DesignWare GMAC 3.x", stmmac.GMAC, ""},
		{[]string{"snps,dwmac-4.00"}, "DesignWare GMAC4", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-4.10a"}, "DesignWare GMAC4", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-4.20a"}, "DesignWare GMAC4", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-5.00a"}, "DesignWare GMAC5", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-5.10a"}, "DesignWare GMAC5", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-5.20"}, "DesignWare GMAC5", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-5.30a"}, "DesignWare GMAC5", stmmac.GMAC4, ""},
		{[]string{"snps,dwmac-5.40a"}, "DesignWare GMAC5", stmmac.GMAC4, ""},
		{[]string{"snps,dwxgmac-2.10", "snps,dwxgmac"}, "DesignWare XGMAC", stmmac.XGMAC, ""},
		// The most specific known one wins, wherever the generic one of that IP is.
		{[]string{"rockchip,rk3568-gmac", "snps,dwmac-4.20a"}, "Rockchip GMAC4", stmmac.GMAC4, ""},
		{[]string{"rockchip,rk3399-gmac", "snps,dwmac"}, "Rockchip GMAC", stmmac.GMAC, ""},
		{[]string{"rockchip,rk3399-gmac"}, "Rockchip GMAC", stmmac.GMAC, ""},
		{[]string{"starfive,jh7110-dwmac", "snps,dwmac-5.20"}, "StarFive JH7110", stmmac.GMAC4, ""},
		{[]string{"starfive,jh7100-dwmac", "snps,dwmac"}, "StarFive JH7100", stmmac.GMAC, "caches"},
		{[]string{"nvidia,tegra194-eqos", "nvidia,tegra186-eqos", "snps,dwc-qos-ethernet-4.10"}, "NVIDIA Tegra EQOS", stmmac.GMAC4, ""},
		{[]string{"mediatek,mt8188-gmac", "mediatek,mt8195-gmac", "snps,dwmac-5.10a"}, "MediaTek MT8195", stmmac.GMAC4, "1500"},
		{[]string{"renesas,r9a09g057-gbeth", "renesas,rzv2h-gbeth", "snps,dwmac-5.20"}, "Renesas RZ/V2H", stmmac.GMAC4, ""},
		{[]string{"qcom,qcs8300-ethqos", "qcom,sa8775p-ethqos"}, "Qualcomm EMAC 4", stmmac.GMAC4, ""},
		{[]string{"altr,socfpga-stmmac-a10-s10", "snps,dwmac-3.74a", "snps,dwmac"}, "Altera SoC FPGA", stmmac.GMAC, ""},
		{[]string{"altr,socfpga-stmmac-agilex5", "snps,dwxgmac-2.10"}, "Altera Agilex 5", stmmac.XGMAC, ""},
		{[]string{"amlogic,meson-axg-dwmac", "snps,dwmac-3.70a", "snps,dwmac"}, "Amlogic Meson", stmmac.GMAC, ""},
		{[]string{"allwinner,sun8i-h3-emac"}, "Allwinner EMAC", 0, ""},
		{[]string{"thead,th1520-gmac", "snps,dwmac-3.70a"}, "T-Head TH1520", stmmac.GMAC, ""},
		{[]string{"toshiba,visconti-dwmac", "snps,dwmac-4.20a"}, "Toshiba Visconti", stmmac.GMAC4, ""},
		{[]string{"intel,keembay-dwmac", "snps,dwmac-4.10a"}, "Intel Keem Bay", stmmac.GMAC4, ""},
		// A release of the IP goes before what is usual for the chip.
		{[]string{"st,stm32-dwmac", "snps,dwmac-4.10a"}, "ST STM32", stmmac.GMAC4, ""},
		{[]string{"st,stm32-dwmac", "snps,dwmac-3.50a"}, "ST STM32", stmmac.GMAC, ""},
		{[]string{"st,stm32-dwmac"}, "ST STM32", stmmac.GMAC, ""},
		{[]string{"qcom,sm8150-ethqos", "snps,dwmac"}, "Qualcomm EMAC 2", stmmac.GMAC4, ""},
		{[]string{"qcom,sm8150-ethqos", "snps,dwmac-9.99", "snps,dwmac"}, "Qualcomm EMAC 2", stmmac.GMAC4, ""},
		{[]string{"allwinner,sun8i-h3-emac", "snps,dwmac-4.20a"}, "Allwinner EMAC", 0, ""},
		// A chip that is not known: the generic one says the generation.
		{[]string{"acme,x1-ethernet", "snps,dwmac-4.20a"}, "DesignWare GMAC4", stmmac.GMAC4, "acme,x1-ethernet is not known"},
		{[]string{"acme,x1-ethernet", "snps,dwmac-3.99a", "snps,dwmac"}, "DesignWare GMAC 3.x", stmmac.GMAC, "acme,x1-ethernet is not known"},
	} {
		t.Run(strings.Join(tc.compatible, " "), func(t *testing.T) {
			g := mustFind(t, tree{}, platformInfo(tc.compatible...))
			if g.Name != tc.name || g.Generation != tc.generation {
				t.Errorf("%s, %v", g.Name, g.Generation)
			}
			if err := g.Support(); (err == nil) != (tc.generation == stmmac.GMAC4 || tc.generation == stmmac.GMAC) {
				t.Errorf("support: %v", err)
			}
			if all := strings.Join(g.Limits, "\n"); !strings.Contains(all, tc.limit) || tc.limit == "" && strings.Contains(all, "is not known, only") {
				t.Errorf("limits: %s", all)
			}
			if !strings.Contains(strings.Join(g.Limits, "\n"), "csr=HZ") {
				t.Error("that the CSR clock is not known is not told")
			}
			if err := g.Missing(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSupportNames: what cannot be driven says which part of it, and what to do.
func TestSupportNames(t *testing.T) {
	for _, tc := range []struct {
		i    vfio.Info
		want []string
	}{
		{pciInfo(0x0014, 0x7a13), []string{"0000:03:00.0", "Loongson", "8 channels", "stmmacctl unbind pci:0000:03:00.0"}},
		{pciInfo(0x0014, 0x7a03), []string{"LS7A1000"}},
		{platformInfo("nvidia,tegra234-mgbe"), []string{"xgmac", "stmmacctl unbind platform:f0804000.ethernet"}},
		{platformInfo("allwinner,sun8i-h3-emac"), []string{"registers are of Allwinner's own"}},
	} {
		err := mustFind(t, tree{}, tc.i).Support()
		var e *vfio.Error
		if !errors.As(err, &e) || e.Dev != tc.i.Name {
			t.Errorf("%v is no error of the device", err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	}
}

func TestFindErrors(t *testing.T) {
	for _, tc := range []struct {
		i    vfio.Info
		want []string
	}{
		{pciInfo(0x8086, 0x10d3), []string{"0000:03:00.0", "8086:10d3", "pci:0000:03:00.0,generation=gmac4 (or gmac, a 3.x),region=0", "stmmac.WithGeneration"}},
		{pciInfo(0x6801, 0x1f0a), []string{"6801:1f0a"}},
		{platformInfo("acme,x1-ethernet", "acme,x0-ethernet"), []string{"acme,x1-ethernet, acme,x0-ethernet", "platform:f0804000.ethernet,generation="}},
		{platformInfo("snps,dwmac-9.99"), []string{"snps,dwmac-9.99"}},
		{platformInfo("snps,dwmac-4.2"), []string{"snps,dwmac-4.2:"}},
		{platformInfo(""), []string{"compatible of"}},
		{platformInfo(), []string{"without a compatible"}},
		{vfio.Info{}, []string{"without a compatible"}},
	} {
		g, err := Find(tree{}, tc.i)
		var e *vfio.Error
		if g != nil || !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &e) || e.Dev != tc.i.Name || e.Remedy == "" {
			t.Errorf("%+v: %v, %v", tc.i, g, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	evens := []int{0, 2, 4, 6, 8, 10, 12, 14}
	odds := []int{1, 3, 5, 7, 9, 11, 13, 15}
	intelAXI := stmmac.AXI{NoMixedBurst: true, BurstLens: 28, PBL: 32}
	relocated := stmmac.Layout{DMABase: 0x8100, DMAStride: 0x1000, MTLBase: 0x8000, MTLStride: 0x1000}
	for _, tc := range []struct {
		name    string
		i       vfio.Info
		vectors int
		want    told
	}{
		{"YT6801", pciInfo(0x1f0a, 0x6801), 6,
			told{Generation: stmmac.GMAC4, CSROffset: 0x2000, CSRClock: 25e6, MSI: &stmmac.MSI{Common: 5, Rx: []int{0, 1, 2, 3}, Tx: []int{4}}}},
		{"YT6801 with too few vectors", pciInfo(0x1f0a, 0x6801), 5,
			told{Generation: stmmac.GMAC4, CSROffset: 0x2000, CSRClock: 25e6}},
		{"EHL with 32 vectors", pciInfo(0x8086, 0x4b30), 32,
			told{Generation: stmmac.GMAC4, CSRClock: 300e6, RxFIFO: 32768, TxFIFO: 32768, AXI: intelAXI, DescCache: true,
				MSI: &stmmac.MSI{Common: 29, Rx: evens, Tx: odds}}},
		{"EHL with 29 vectors", pciInfo(0x8086, 0x4b30), 29,
			told{Generation: stmmac.GMAC4, CSRClock: 300e6, RxFIFO: 32768, TxFIFO: 32768, AXI: intelAXI, DescCache: true}},
		{"EHL with INTx", pciInfo(0x8086, 0x4b30), 1,
			told{Generation: stmmac.GMAC4, CSRClock: 300e6, RxFIFO: 32768, TxFIFO: 32768, AXI: intelAXI, DescCache: true}},
		{"PSE", pciInfo(0x8086, 0x4bb2), 32,
			told{Generation: stmmac.GMAC4, CSRClock: 300e6, AddrWidth: 32, RxFIFO: 32768, TxFIFO: 32768, AXI: intelAXI, DescCache: true,
				MSI: &stmmac.MSI{Common: 29, Rx: evens, Tx: odds}}},
		{"TGL", pciInfo(0x8086, 0xa0ac), 30,
			told{Generation: stmmac.GMAC4, CSRClock: 300e6, RxFIFO: 24576, TxFIFO: 16384, AXI: intelAXI, DescCache: true,
				MSI: &stmmac.MSI{Common: 29, Rx: evens[:6], Tx: odds[:4]}}},
		{"Quark", pciInfo(0x8086, 0x0937), 1,
			told{Generation: stmmac.GMAC, AXI: stmmac.AXI{FixedBurst: true, PBL: 16}, PHY: &stmmac.PHY{Addr: 1}}},
		{"GMAC5", func() vfio.Info {
			i := pciInfo(0x16c3, 0x7102)
			i.BARs = []vfio.BAR{{Index: 6, Size: 4096}, {Index: 4, Size: 8192}, {Index: 2, Size: 8192}, {Index: 0}}
			return i
		}(), 1, told{Generation: stmmac.GMAC4, RegionNo: 2, CSRClock: 300e6, AXI: stmmac.AXI{NoMixedBurst: true, MaxReads: 16, MaxWrites: 16, PBL: 32}}},
		{"qcom EMAC 2 stays where it is", platformInfo("qcom,sm8150-ethqos", "snps,dwmac"), 1, told{Generation: stmmac.GMAC4}},
		{"qcom EMAC 3", platformInfo("qcom,sc8280xp-ethqos"), 1, told{Generation: stmmac.GMAC4, Layout: relocated}},
		{"qcom EMAC 4 with its regions the other way round", func() vfio.Info {
			i := platformInfo("qcom,sa8775p-ethqos")
			i.RegNames = []string{"rgmii", "stmmaceth"}
			return i
		}(), 1, told{Generation: stmmac.GMAC4, RegionNo: 1, AddrWidth: 36, Layout: relocated}},
		{"a region without the name", func() vfio.Info {
			i := platformInfo("qcom,sc8280xp-ethqos")
			i.RegNames = []string{"other"}
			return i
		}(), 1, told{Generation: stmmac.GMAC4, Layout: relocated}},
		{"no name is looked for", func() vfio.Info {
			i := platformInfo("snps,dwmac-4.20a")
			i.RegNames = []string{"a", ""}
			return i
		}(), 1, told{Generation: stmmac.GMAC4}},
		{"Tegra MGBE", func() vfio.Info {
			i := platformInfo("nvidia,tegra234-mgbe")
			i.RegNames = []string{"hypervisor", "mac", "xpcs"}
			return i
		}(), 1, told{Generation: stmmac.XGMAC, RegionNo: 1, RxFIFO: 196608, TxFIFO: 131072}},
		{"i.MX 8M Plus", platformInfo("nxp,imx8mp-dwmac-eqos", "snps,dwmac-5.10a"), 2, told{Generation: stmmac.GMAC4, AddrWidth: 34}},
		{"i.MX 8DXL", platformInfo("nxp,imx8dxl-dwmac-eqos"), 2, told{Generation: stmmac.GMAC4, AddrWidth: 32}},
		{"i.MX 93", platformInfo("nxp,imx93-dwmac-eqos"), 2, told{Generation: stmmac.GMAC4, AddrWidth: 32}},
		{"MT2712", platformInfo("mediatek,mt2712-gmac"), 1, told{Generation: stmmac.GMAC4, AddrWidth: 33}},
		{"MT8195", platformInfo("mediatek,mt8195-gmac"), 1, told{Generation: stmmac.GMAC4, AddrWidth: 35}},
		{"A523", platformInfo("allwinner,sun55i-a523-gmac200"), 1, told{Generation: stmmac.GMAC4, AddrWidth: 32}},
		{"Tegra EQOS", platformInfo("nvidia,tegra186-eqos"), 1, told{Generation: stmmac.GMAC4, AXI: stmmac.AXI{AlignedBeats: true}}},
		{"JH7110", platformInfo("starfive,jh7110-dwmac"), 1, told{Generation: stmmac.GMAC4, DescCache: true}},
		{"rk3399", platformInfo("rockchip,rk3399-gmac"), 1, told{Generation: stmmac.GMAC, RxFIFO: 4096, TxFIFO: 2048}},
		{"S32G without names", platformInfo("nxp,s32g2-dwmac"), 5, told{Generation: stmmac.GMAC4, RxFIFO: 20480, TxFIFO: 20480}},
		{"S32G", s32(), 5, told{Generation: stmmac.GMAC4, RxFIFO: 20480, TxFIFO: 20480,
			MSI: &stmmac.MSI{Common: 0, Rx: []int{2, 4}, Tx: []int{1, 3}}}},
		{"S32G with fewer interrupts than names", s32(), 4, told{Generation: stmmac.GMAC4, RxFIFO: 20480, TxFIFO: 20480}},
		{"names mean nothing elsewhere", func() vfio.Info {
			i := s32()
			i.Compatible = []string{"snps,dwmac-5.10a"}
			return i
		}(), 5, told{Generation: stmmac.GMAC4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := configOf(t, mustFind(t, tree{}, tc.i).Options(tc.vectors))
			if d := cmp.Diff(tc.want, tellOf(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got.Name != tc.i.Name {
				t.Errorf("name %q", got.Name)
			}
		})
	}
}

func s32() vfio.Info {
	i := platformInfo("nxp,s32g2-dwmac")
	i.IRQNames = []string{"macirq", "tx-queue-0", "rx-queue-0", "tx-queue-1", "rx-queue-1"}
	return i
}

// told is what glue says of a configuration beside its name.
type told struct {
	Generation     stmmac.Generation
	HardwareAddr   net.HardwareAddr
	PHY            *stmmac.PHY // nil: any, or a fixed link
	Link           stmmac.Link
	RegionNo       int
	CSROffset      uint32
	CSRClock       uint64
	AddrWidth      int
	RxFIFO, TxFIFO int
	DescCache      bool
	AXI            stmmac.AXI
	MSI            *stmmac.MSI
	Layout         stmmac.Layout
}

func tellOf(c stmmac.Config) told {
	if c.PHY != nil && *c.PHY == (stmmac.PHY{Addr: stmmac.AnyPHY}) {
		c.PHY = nil
	}
	return told{c.Generation, c.HardwareAddr, c.PHY, c.Link, c.RegionNo, c.CSROffset, c.CSRClock, c.AddrWidth,
		c.RxFIFO, c.TxFIFO, c.DescCache, c.AXI, c.MSI, c.Layout}
}

// TestCopies: who changes what it was given changes no table.
func TestCopies(t *testing.T) {
	for range 2 {
		g := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801))
		if g.Preconditions[0] == "changed" {
			t.Error("the preconditions of the table were changed")
		}
		g.Preconditions[0] = "changed"
		c := configOf(t, g.Options(6))
		if d := cmp.Diff(&stmmac.MSI{Common: 5, Rx: []int{0, 1, 2, 3}, Tx: []int{4}}, c.MSI); d != "" {
			t.Errorf("the vectors of the table were changed (-want +got):\n%s", d)
		}
		c.MSI.Common, c.MSI.Rx[0], c.MSI.Tx[0] = 99, 99, 99
	}
}

func TestMissingPCI(t *testing.T) {
	const aspm = "sys/bus/pci/devices/0000:03:00.0/link/l1_aspm"
	for _, tc := range []struct {
		name  string
		i     func(*vfio.Info)
		files fstest.MapFS
		want  []string // none: nothing is missing
	}{
		{"all there", func(*vfio.Info) {}, nil, nil},
		{"ASPM L1 off", func(*vfio.Info) {}, fstest.MapFS{aspm: {Data: []byte("0\n")}}, nil},
		{"ASPM L1 on", func(*vfio.Info) {}, fstest.MapFS{aspm: {Data: []byte("1\n")}},
			[]string{"0000:03:00.0", "ASPM L1", "echo 0 > /" + aspm}},
		{"no BAR", func(i *vfio.Info) { i.BARs = nil }, nil, []string{"BAR 0", "echo 1 > /sys/bus/pci/devices/0000:03:00.0/remove; echo 1 > /sys/bus/pci/rescan"}},
		{"another BAR", func(i *vfio.Info) { i.BARs = []vfio.BAR{{Index: 1, Size: 4096}, {Index: 6, Size: 4096}} }, nil, []string{"BAR 0"}},
		{"an empty BAR", func(i *vfio.Info) { i.BARs = []vfio.BAR{{Index: 0}} }, nil, []string{"BAR 0"}},
		{"both", func(i *vfio.Info) { i.BARs = nil }, fstest.MapFS{aspm: {Data: []byte("1")}}, []string{"BAR 0", "ASPM L1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := pciInfo(0x1f0a, 0x6801)
			tc.i(&i)
			g := mustFind(t, tree{files: tc.files}, i)
			err := g.Missing()
			if (err == nil) != (tc.want == nil) {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if err == nil {
				return
			}
			r := mmio.NewFake(0x10000)
			if _, perr := g.Prepare(context.Background(), &device{r: r}); perr == nil || perr.Error() != err.Error() || len(r.Log()) > 0 {
				t.Errorf("prepared: %v after %v", perr, r.Log())
			}
		})
	}
	// Others do not care for ASPM.
	g := mustFind(t, tree{files: fstest.MapFS{aspm: {Data: []byte("1\n")}}}, pciInfo(0x8086, 0x4b30))
	if err := g.Missing(); err != nil {
		t.Error(err)
	}
}

// TestAnswers: a platform device without its clocks is refused with what it needs.
func TestAnswers(t *testing.T) {
	gmac4 := []string{"rockchip,rk3568-gmac", "snps,dwmac-4.20a"}
	gmac := []string{"rockchip,rk3399-gmac", "snps,dwmac"}
	for _, tc := range []struct {
		name    string
		version uint32
		size    uint32
		is      error // nil: it answers
	}{
		{"5.20", 0x1052, 0x2000, nil},
		{"a release without the user's part", 0x42, 0x2000, nil},
		{"all ones", mmio.AllOnes, 0x2000, vfio.ErrGone},
		{"zero", 0, 0x2000, vfio.ErrGone},
		{"no release", 0x1000, 0x2000, vfio.ErrGone},
		{"a region that is too small", 0, 0x18, vfio.ErrGone},
		{"no region", 0, 0, os.ErrNotExist},
	} {
		for reg, compatible := range map[uint32][]string{0x110: gmac4, 0x20: gmac} {
			t.Run(tc.name+"/"+compatible[0], func(t *testing.T) {
				d := &device{}
				if tc.size > 0 {
					r := mmio.NewFake(tc.size)
					r.Set(reg, tc.version)
					d.r = r
				}
				g := mustFind(t, ofNode(map[string]string{"clocks": cells(1), "clock-names": "stmmaceth\x00pclk\x00"}), platformInfo(compatible...))
				got, err := g.Prepare(context.Background(), d)
				if tc.is == nil {
					if got != stmmac.Device(d) || err != nil {
						t.Errorf("%v, %v", got, err)
					}
					return
				}
				if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), "f0804000.ethernet") {
					t.Fatal(err)
				}
				if tc.is == vfio.ErrGone && !(strings.Contains(err.Error(), "stmmaceth, pclk") && strings.Contains(err.Error(), "GRF")) {
					t.Errorf("%v does not say what it needs", err)
				}
				if d.closes > 0 {
					t.Error("closed")
				}
			})
		}
	}
	// What stmmac does not drive, and PCI, need not answer.
	for _, i := range []vfio.Info{platformInfo("snps,dwxgmac"), pciInfo(0x8086, 0x4b30)} {
		d := &device{r: mmio.NewFake(0x2000)}
		if got, err := mustFind(t, tree{}, i).Prepare(context.Background(), d); got != stmmac.Device(d) || err != nil {
			t.Errorf("%s: %v, %v", i.String(), got, err)
		}
	}
}

// TestPrepareHalts: what a dead owner has left running is at rest behind Prepare, before
// anybody maps memory for it.
func TestPrepareHalts(t *testing.T) {
	const sr, st = 1 << 1, 1 << 13 // of a GMAC 3.x
	gmac := func() *mmio.Fake {
		f := mmio.NewFake(0x2000)
		f.Set(0x20, 0x1037)
		f.Set(0x1018, sr|st|1<<25)
		return f
	}
	gmac4 := func() *mmio.Fake {
		f := mmio.NewFake(0x2000)
		f.Set(0x110, 0x1052)
		f.Set(0x124, 3<<18|3<<12) // channels: TXCHCNT, RXCHCNT
		for ch := range uint32(4) {
			f.Set(0x1104+0x80*ch, 1)
			f.Set(0x1108+0x80*ch, 1|2046<<1)
		}
		return f
	}
	for _, tc := range []struct {
		name string
		info vfio.Info
		fake func() *mmio.Fake
		want map[uint32]uint32
	}{
		{"GMAC of the platform", platformInfo("snps,dwmac"), gmac, map[uint32]uint32{0x1018: 1 << 25}},
		{"GMAC4 of the platform", platformInfo("snps,dwmac-5.20"), gmac4, map[uint32]uint32{0x1104: 0, 0x1108: 2046 << 1, 0x1284: 0, 0x1288: 2046 << 1}},
		{"GMAC on PCI", pciInfo(0x104a, 0xcc09), gmac, map[uint32]uint32{0x1018: 1 << 25}},
		{"GMAC4 on PCI", pciInfo(0x8086, 0x4b30), gmac4, map[uint32]uint32{0x1104: 0, 0x1288: 2046 << 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := tc.fake()
			d := &device{r: f}
			if _, err := mustFind(t, tree{}, tc.info).Prepare(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			for reg, want := range tc.want {
				if v := f.Peek(reg); v != want {
					t.Errorf("register %#x has %#x, want %#x", reg, v, want)
				}
			}
			if d.resets > 0 || d.closes > 0 {
				t.Errorf("%d resets, %d closes", d.resets, d.closes)
			}
		})
	}
}

// TestPrepareCannotHalt: a DMA that neither comes to rest nor can be reset is an error, and a
// MAC that is not driven none: opening it says why.
func TestPrepareCannotHalt(t *testing.T) {
	f := mmio.NewFake(0x2000)
	f.Set(0x20, 0x1037)
	f.OnLoad(0x1014, func(uint32) uint32 { return 7 << 17 }) // the receive process transfers
	f.OnLoad(0x1000, func(uint32) uint32 { return 1 })       // SWR stays
	d := &device{r: f}
	if _, err := mustFind(t, tree{}, platformInfo("snps,dwmac")).Prepare(t.Context(), d); !errors.Is(err, stmmac.ErrNoClock) || d.closes > 0 {
		t.Errorf("%v, closed %d times", err, d.closes)
	}
	f = mmio.NewFake(0x2000)
	f.Set(0x20, 0x1037)
	f.Set(0x1058, 1<<24) // ENHDESSEL
	d = &device{r: f}
	if got, err := mustFind(t, tree{}, platformInfo("snps,dwmac")).Prepare(t.Context(), d); got != stmmac.Device(d) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAssume: a device that is not known is what the caller says, and its node is
// read all the same.
func TestAssume(t *testing.T) {
	g := Assume(ofNode(map[string]string{"rx-fifo-depth": cells(4096)}), platformInfo("acme,x1-ethernet"), stmmac.GMAC4)
	g.Region, g.CSROffset, g.CSRClock, g.AddrWidth = 1, 0x400, 50e6, 36
	want := told{Generation: stmmac.GMAC4, RegionNo: 1, CSROffset: 0x400, CSRClock: 50e6, AddrWidth: 36, RxFIFO: 4096, AXI: stmmac.AXI{NoMixedBurst: true}}
	if d := cmp.Diff(want, tellOf(configOf(t, g.Options(1)))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := g.Support(); err != nil {
		t.Error(err)
	}
	if err := Assume(tree{}, pciInfo(1, 2), stmmac.XGMAC).Support(); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// TestFields: where the caller says that the registers are somewhere else, that is
// where they are looked for.
func TestFields(t *testing.T) {
	i := pciInfo(0x8086, 0x4b30)
	i.BARs = []vfio.BAR{{Index: 2, Size: 0x4000}}
	g := mustFind(t, tree{}, i)
	if err := g.Missing(); err == nil {
		t.Error("BAR 0 is not missed")
	}
	g.Region = 2
	if err := g.Missing(); err != nil {
		t.Error(err)
	}
	r := mmio.NewFake(0x4000)
	r.Set(0x1110, 0x52)
	p := mustFind(t, tree{}, platformInfo("snps,dwmac-5.20"))
	if _, err := p.Prepare(context.Background(), &device{r: r}); !errors.Is(err, vfio.ErrGone) || !strings.Contains(err.Error(), "its clocks run") {
		t.Errorf("found at 0: %v", err)
	}
	p.CSROffset = 0x1000
	if _, err := p.Prepare(context.Background(), &device{r: r}); err != nil {
		t.Error(err)
	}
}

// TestDeviceOptions: what a chip's bus addresses do not reach is not mapped for it.
func TestDeviceOptions(t *testing.T) {
	for _, tc := range []struct {
		i    vfio.Info
		want int
	}{{pciInfo(0x8086, 0x4ba0), 1}, {pciInfo(0x8086, 0x4b30), 0}, {platformInfo("nxp,imx8mp-dwmac-eqos"), 1}} {
		if opts := mustFind(t, tree{}, tc.i).DeviceOptions(); len(opts) != tc.want {
			t.Errorf("%s: %d options", tc.i.String(), len(opts))
		}
	}
}

// TestSystem: without a kernel the machine's own is asked.
func TestSystem(t *testing.T) {
	if g := mustFind(t, nil, pciInfo(0x8086, 0x4b30)); g.Support() != nil {
		t.Error("not supported")
	}
}
