package glue

import "github.com/gostmmac/gostmmac/stmmac"

// platformEntry is what devices with one of the compatibles have in common.
type platformEntry struct {
	compatibles []string
	integration
}

// What has to be set up in other blocks, as the glue drivers of Linux do.
const (
	needsGRF      = "the GRF registers have the interface mode, the delays and the clock source of the port (rockchip,grf, rockchip,php-grf)"
	needsSyscon   = "the system controller has the interface mode of the port"
	needsTxClock  = "the transmit clock has the rate of the link's speed (125, 25 or 2.5 MHz with RGMII); nothing here changes it when the link does"
	needsDelays   = "the delay lines of RGMII are set"
	needsPHYPower = "the PHY that is in the SoC has power and is out of reset"
)

// platformTable is the compatibles of the glue drivers of Linux 7.3, and the generic
// ones of the IP. Where a chip has no quirk of its own its entry still says the
// generation, for a node that does not name a release of the IP; the release goes
// before it. The compatibles of dwmac-ingenic.c, dwmac-loongson1.c, dwmac-anarion.c,
// dwmac-lpc18xx.c, dwmac-nuvoton.c and dwmac-meson*.c were not compared with the drivers.
var platformTable = [...]platformEntry{
	// The IP alone: dwmac-generic.c, stmmac_platform.c.
	{[]string{"snps,dwmac-4.00", "snps,dwmac-4.10a", "snps,dwmac-4.20a"}, gmac4("DesignWare GMAC4")},
	{[]string{"snps,dwmac-5.00a", "snps,dwmac-5.10a", "snps,dwmac-5.20", "snps,dwmac-5.30a", "snps,dwmac-5.40a"}, gmac4("DesignWare GMAC5")},
	{[]string{"snps,dwmac", "snps,dwmac-3.40a", "snps,dwmac-3.50a", "snps,dwmac-3.610", "snps,dwmac-3.70a", "snps,dwmac-3.710", "snps,dwmac-3.72a"},
		gmac("DesignWare GMAC 3.x")},
	{[]string{"snps,dwxgmac", "snps,dwxgmac-2.10"}, integration{name: "DesignWare XGMAC", generation: stmmac.XGMAC}},
	{[]string{"st,spear600-gmac"}, gmac("ST SPEAr600")},

	// dwmac-dwc-qos-eth.c: bursts are aligned.
	{[]string{"snps,dwc-qos-ethernet-4.10", "tesla,fsd-ethqos"},
		aligned(gmac4("DesignWare QoS 4.10", "the clocks apb_pclk and phy_ref_clk run"))},
	{[]string{"nvidia,tegra186-eqos"}, aligned(gmac4("NVIDIA Tegra EQOS", needsTxClock,
		"the pads are calibrated for the link's speed (registers 0x8800 to 0x880c)"))},

	// dwmac-imx.c
	{[]string{"nxp,imx8mp-dwmac-eqos"}, width(34, gmac4("NXP i.MX 8M Plus", needsSyscon+" (intf_mode)", needsTxClock))},
	{[]string{"nxp,imx8dxl-dwmac-eqos"}, width(32, gmac4("NXP i.MX 8DXL", needsSyscon))},
	{[]string{"nxp,imx93-dwmac-eqos"}, limited(width(32, gmac4("NXP i.MX 93", needsSyscon+" (intf_mode)")),
		"with RMII a reset of the DMA ends only while the MAC is set to the speed of the reference clock")},
	// dwmac-s32.c
	{[]string{"nxp,s32g2-dwmac"}, integration{
		name: "NXP S32G/S32R", generation: stmmac.GMAC4, rxFIFO: 20480, txFIFO: 20480, queueIRQs: true,
		needs: []string{"the interface selection in region 1 is set (RGMII is 2)", needsTxClock}}},

	// dwmac-rk.c
	{[]string{"rockchip,rk3506-gmac", "rockchip,rk3528-gmac", "rockchip,rk3562-gmac", "rockchip,rk3568-gmac",
		"rockchip,rk3576-gmac", "rockchip,rk3588-gmac", "rockchip,rv1126-gmac"}, gmac4("Rockchip GMAC4", needsGRF, needsPHYPower)},
	{[]string{"rockchip,px30-gmac", "rockchip,rk3128-gmac", "rockchip,rk3228-gmac", "rockchip,rk3288-gmac", "rockchip,rk3308-gmac",
		"rockchip,rk3328-gmac", "rockchip,rk3366-gmac", "rockchip,rk3368-gmac", "rockchip,rk3399-gmac", "rockchip,rv1108-gmac"},
		fifos(4096, 2048, gmac("Rockchip GMAC", needsGRF, needsPHYPower))},

	// dwmac-starfive.c
	{[]string{"starfive,jh7110-dwmac"}, integration{
		name: "StarFive JH7110", generation: stmmac.GMAC4, descCache: true, needs: []string{needsSyscon + " (starfive,syscon)", needsTxClock}}},
	{[]string{"starfive,jh7100-dwmac"}, limited(gmac("StarFive JH7100", needsSyscon+" and the delay chain of gtxclk (starfive,syscon)", needsTxClock),
		"DMA does not see the caches of the CPU")},

	// dwmac-qcom-ethqos.c: from EMAC 3 on the channels are somewhere else.
	{[]string{"qcom,qcs404-ethqos", "qcom,sm8150-ethqos"}, named("stmmaceth", gmac4("Qualcomm EMAC 2", needsRGMII, needsTxClock))},
	{[]string{"qcom,sc8280xp-ethqos"}, named("stmmaceth", relocated(gmac4("Qualcomm EMAC 3", needsRGMII, needsTxClock)))},
	{[]string{"qcom,sa8775p-ethqos", "qcom,sa8255p-ethqos"}, named("stmmaceth", width(36, relocated(gmac4("Qualcomm EMAC 4", "the SerDes is powered up (phys)"))))},
	{[]string{"qcom,ipq806x-gmac"}, fifos(8192, 8192, gmac("Qualcomm IPQ806x", "the NSS system controller has the interface and the QSGMII PCS is set up"))},

	// dwmac-stm32.c
	{[]string{"st,stm32mp1-dwmac", "st,stm32mp13-dwmac", "st,stm32mp25-dwmac"},
		named("stmmaceth", gmac4("ST STM32MP", needsSyscon+" (st,syscon)", "the clock of the PHY runs (eth-ck)"))},
	{[]string{"st,stm32-dwmac"}, named("stmmaceth", gmac("ST STM32", needsSyscon+" (st,syscon)"))},
	{[]string{"st,stih407-dwmac"}, named("stmmaceth", gmac("ST STiH407", needsSyscon+" and the retiming clock (st,syscon)"))},

	// dwmac-mediatek.c
	{[]string{"mediatek,mt2712-gmac"}, mediatek(33, "MediaTek MT2712")},
	{[]string{"mediatek,mt8195-gmac"}, mediatek(35, "MediaTek MT8195")},

	// dwmac-renesas-gbeth.c, dwmac-rzn1.c
	{[]string{"renesas,rzv2h-gbeth"}, gmac4("Renesas RZ/V2H", "the clocks tx, rx and their inverses run", needsTxClock)},
	{[]string{"renesas,r9a09g077-gbeth"}, gmac4("Renesas RZ/T2H", "the MIIC converter is set up (pcs-handle)")},
	{[]string{"renesas,rzn1-gmac"}, gmac("Renesas RZ/N1", "the MIIC converter is set up (pcs-handle)")},

	// dwmac-sun55i.c, dwmac-sunxi.c, dwmac-sun8i.c
	{[]string{"allwinner,sun55i-a523-gmac200"}, width(32, gmac4("Allwinner A523", needsSyscon+" and the delays (syscon, offset 0x34)", "the MBUS clock runs"))},
	{[]string{"allwinner,sun7i-a20-gmac"}, fifos(16384, 4096, gmac("Allwinner A20", needsTxClock))},
	{[]string{"allwinner,sun8i-a83t-emac", "allwinner,sun8i-h3-emac", "allwinner,sun8i-r40-gmac", "allwinner,sun8i-v3s-emac", "allwinner,sun50i-a64-emac"},
		integration{name: "Allwinner EMAC", own: "its registers are of Allwinner's own and have nothing of the DesignWare MAC's map", needs: []string{needsSyscon + " (syscon)"}}},

	// dwmac-socfpga.c, dwmac-intel-plat.c
	{[]string{"altr,socfpga-stmmac-agilex5"}, integration{name: "Altera Agilex 5", generation: stmmac.XGMAC, needs: []string{needsSysmgr}}},
	{[]string{"altr,socfpga-stmmac", "altr,socfpga-stmmac-a10-s10"}, gmac("Altera SoC FPGA", needsSysmgr)},
	{[]string{"intel,keembay-dwmac"}, gmac4("Intel Keem Bay", needsTxClock)},

	// dwmac-tegra.c: the MAC is the second of three regions.
	{[]string{"nvidia,tegra234-mgbe"}, named("mac", fifos(192<<10, 128<<10, integration{
		name: "NVIDIA Tegra234 MGBE", generation: stmmac.XGMAC, needs: []string{"the UPHY lanes are up (region xpcs) and the stream id is set (region hypervisor)"}}))},

	// dwmac-visconti.c: its clock selection is in the region of the MAC.
	{[]string{"toshiba,visconti-dwmac"}, aligned(gmac4("Toshiba Visconti",
		"its registers 0x52d0 and 0x52d4 have the clocks and the interface, and its reset is released"))},
	// dwmac-eic7700.c, dwmac-spacemit.c, dwmac-sophgo.c, dwmac-thead.c
	{[]string{"eswin,eic7700-qos-eth"}, gmac4("ESWIN EIC7700", needsSyscon+" (eswin,hsp-sp-csr)", needsDelays, needsTxClock)},
	{[]string{"spacemit,k3-dwmac"}, gmac4("SpacemiT K3", needsSyscon+" (spacemit,apmu)", needsDelays)},
	{[]string{"sophgo,sg2042-dwmac", "sophgo,sg2044-dwmac"}, limited(gmac4("Sophgo SG2042/SG2044", needsTxClock), noHash)},
	{[]string{"thead,th1520-gmac"}, named("dwmac", gmac("T-Head TH1520", "the wrapper in the region apb has the clock divider, the delays and the interface"))},

	// dwmac-meson.c, dwmac-meson8b.c: the glue's registers are the second region.
	{[]string{"amlogic,meson6-dwmac", "amlogic,meson8b-dwmac", "amlogic,meson8m2-dwmac", "amlogic,meson-gxbb-dwmac",
		"amlogic,meson-axg-dwmac", "amlogic,meson-g12a-dwmac"}, gmac("Amlogic Meson", "the registers of region 1 have the interface, the clock and the delays")},

	// dwmac-nuvoton.c, dwmac-anarion.c, dwmac-ingenic.c, dwmac-loongson1.c, dwmac-lpc18xx.c
	{[]string{"nuvoton,ma35d1-dwmac"}, gmac("Nuvoton MA35D1", needsSyscon+" and the delays (nuvoton,sys)")},
	{[]string{"adaptrum,anarion-gmac"}, gmac("Adaptrum Anarion", "the register of region 1 has released the reset and selected the interface")},
	{[]string{"ingenic,jz4775-mac", "ingenic,x1000-mac", "ingenic,x1600-mac", "ingenic,x1830-mac", "ingenic,x2000-mac"},
		gmac("Ingenic", needsSyscon+" (mode-reg)")},
	{[]string{"loongson,ls1b-gmac", "loongson,ls1c-emac"}, gmac("Loongson-1", needsSyscon+" and the pins (loongson,ls1-syscon)")},
	{[]string{"nxp,lpc1850-dwmac"}, gmac("NXP LPC18xx", needsSyscon+" (CREG6)")},
}

const (
	needsRGMII  = "the RGMII macro (region rgmii) and its DLL are set for the link's speed"
	needsSysmgr = "the system manager has the interface mode (altr,sysmgr-syscon)"
	noHash      = "it has no hash filter for multicast addresses"
)

func gmac4(name string, needs ...string) integration {
	return integration{name: name, generation: stmmac.GMAC4, needs: needs}
}

func gmac(name string, needs ...string) integration {
	return integration{name: name, generation: stmmac.GMAC, needs: needs}
}

// aligned is an integration whose bursts must be aligned.
func aligned(is integration) integration {
	is.axi.AlignedBeats = true
	return is
}

// width is an integration that wired fewer address bits than the IP has.
func width(bits int, is integration) integration {
	is.addrWidth = bits
	return is
}

// fifos is an integration with FIFOs of known sizes in bytes.
func fifos(rx, tx int, is integration) integration {
	is.rxFIFO, is.txFIFO = rx, tx
	return is
}

// named is an integration whose registers are the region of that name.
func named(region string, is integration) integration {
	is.regName = region
	return is
}

func limited(is integration, limits ...string) integration {
	is.limits = limits
	return is
}

// relocated is Qualcomm's place for channels and queues: each has 4 KiB, in which
// the queue comes first.
func relocated(is integration) integration {
	is.layout = stmmac.Layout{DMABase: 0x8100, DMAStride: 0x1000, MTLBase: 0x8000, MTLStride: 0x1000}
	return is
}

func mediatek(bits int, name string) integration {
	return limited(width(bits, gmac4(name, "the pericfg registers have the interface mode and the delays (mediatek,pericfg)")),
		"the MTU is at most 1500", "the receive watchdog does not work: leave RxTime of stmmac.Coalesce 0")
}
