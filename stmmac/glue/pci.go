package glue

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

type pciEntry struct {
	vendor, device uint16
	integration
}

// Vendors.
const (
	loongson  = 0x0014
	stmmacPCI = 0x0700 // no vendor's: evaluation boards of the first driver
	stmicro   = 0x104a
	synopsys  = 0x16c3
	motorcomm = 0x1f0a
	intelCorp = 0x8086
)

// pciTable is every PCI function that Linux has a glue driver for. The ids are those
// of the tables of dwmac-motorcomm.c, dwmac-intel.c, dwmac-loongson.c and stmmac_pci.c;
// 104a:cc09, which stands in pci_ids.h, was not compared. Of Raptor Lake only P is
// there.
var pciTable = [...]pciEntry{
	{motorcomm, 0x6801, yt6801Integration},

	{intelCorp, 0x4b30, intelMGBE("Intel Elkhart Lake RGMII 1G", 8, 8, "")},
	{intelCorp, 0x4b31, intelMGBE("Intel Elkhart Lake SGMII 1G", 8, 8, serdesByMDIO)},
	{intelCorp, 0x4b32, intelMGBE("Intel Elkhart Lake SGMII 2.5G", 8, 8, serdesByMDIO)},
	{intelCorp, 0x4ba0, intelPSE("Intel Elkhart Lake PSE 0 RGMII 1G", "")},
	{intelCorp, 0x4ba1, intelPSE("Intel Elkhart Lake PSE 0 SGMII 1G", serdesByMDIO)},
	{intelCorp, 0x4ba2, intelPSE("Intel Elkhart Lake PSE 0 SGMII 2.5G", serdesByMDIO)},
	{intelCorp, 0x4bb0, intelPSE("Intel Elkhart Lake PSE 1 RGMII 1G", "")},
	{intelCorp, 0x4bb1, intelPSE("Intel Elkhart Lake PSE 1 SGMII 1G", serdesByMDIO)},
	{intelCorp, 0x4bb2, intelPSE("Intel Elkhart Lake PSE 1 SGMII 2.5G", serdesByMDIO)},
	{intelCorp, 0xa0ac, intelMGBE("Intel Tiger Lake SGMII 1G", 6, 4, serdesByMDIO)},
	{intelCorp, 0x43ac, intelMGBE("Intel Tiger Lake-H SGMII 1G port 0", 6, 4, serdesByMDIO)},
	{intelCorp, 0x43a2, intelMGBE("Intel Tiger Lake-H SGMII 1G port 1", 6, 4, serdesByMDIO)},
	{intelCorp, 0x7aac, intelMGBE("Intel Alder Lake-S SGMII 1G port 0", 6, 4, serdesByFirmware)},
	{intelCorp, 0x7aad, intelMGBE("Intel Alder Lake-S SGMII 1G port 1", 6, 4, serdesByFirmware)},
	{intelCorp, 0x54ac, intelMGBE("Intel Alder Lake-N SGMII 1G", 6, 4, serdesByMDIO)},
	{intelCorp, 0x51ac, intelMGBE("Intel Raptor Lake-P SGMII 1G", 6, 4, serdesByMDIO)},

	{intelCorp, 0x0937, integration{
		name: "Intel Quark X1000", generation: stmmac.GMAC,
		axi: stmmac.AXI{FixedBurst: true, PBL: 16},
		// Address 1 on the boards that Linux knows (Galileo, SIMATIC IOT2000).
		phy: &stmmac.PHY{Addr: 1},
	}},

	{loongson, 0x7a03, loongsonGMAC("Loongson LS7A1000 GMAC")},
	{loongson, 0x7a23, loongsonGMAC("Loongson LS7A2000 GMAC")},
	{loongson, 0x7a13, loongsonGMAC("Loongson LS2K2000 GNET")},

	{synopsys, 0x7102, integration{
		name: "Synopsys GMAC5 evaluation board", generation: stmmac.GMAC4, firstBAR: true,
		csrClock: clockOfCode5,
		// Linux asks for 32 outstanding requests of a field that holds 16.
		axi: stmmac.AXI{NoMixedBurst: true, MaxReads: 16, MaxWrites: 16, PBL: 32},
	}},
	{stmicro, 0xcc09, evaluationGMAC("STMicroelectronics GMAC")},
	{stmmacPCI, 0x1108, evaluationGMAC("stmmac evaluation board")},
}

// clockOfCode5 is the highest CSR clock of the MDC divider that Linux gives these
// devices, code 5 for 250 to 300 MHz: the divider comes out the same here. Intel's
// timers are said to run at 200 MHz, so that a receive watchdog takes 1.5 times
// what it was asked for.
const clockOfCode5 = 300_000_000

// What powers up the SerDes of an SGMII port.
const (
	serdesByMDIO = "the SGMII SerDes is powered up, which dwmac-intel does over MDIO at address 0x15 and undoes when it is unbound: " +
		"leave the link up while it is, and check that the firmware powers the port up"
	serdesByFirmware = "the firmware has powered up the SGMII SerDes"
)

// intelMGBE is a port of Intel's PCH with rx and tx queues (dwmac-intel.c).
func intelMGBE(name string, rx, tx int, serdes string) integration {
	is := integration{
		name: name, generation: stmmac.GMAC4,
		csrClock: clockOfCode5,
		rxFIFO:   rx * 4096, txFIFO: tx * 4096,
		axi:       stmmac.AXI{NoMixedBurst: true, BurstLens: 4 + 8 + 16, PBL: 32},
		descCache: true,
		// Beside these, 26 and 27 are for uncorrectable and correctable errors of
		// its memories and 28 is for LPI, which stmmac does not enable.
		vectors: &vectors{least: 30, msi: stmmac.MSI{Common: 29}},
	}
	for q := range rx {
		is.vectors.msi.Rx = append(is.vectors.msi.Rx, 2*q)
	}
	for q := range tx {
		is.vectors.msi.Tx = append(is.vectors.msi.Tx, 2*q+1)
	}
	if serdes != "" {
		is.needs = []string{serdes}
		is.limits = []string{"addresses 0x15 and 0x16 of the MDIO bus are the SerDes and the PCS, not PHYs"}
	}
	return is
}

// intelPSE is a port of Elkhart Lake's Programmable Services Engine: its bus
// addresses have 32 bits.
func intelPSE(name, serdes string) integration {
	is := intelMGBE(name, 8, 8, serdes)
	is.addrWidth = 32
	is.needs = append(is.needs, "the firmware has given the PSE port to the host")
	return is
}

// loongsonGMAC is a GMAC 3.x with channels of its own kind (dwmac-loongson.c).
func loongsonGMAC(name string) integration {
	return integration{
		name: name, generation: stmmac.GMAC,
		own: "its DMA splits the normal and abnormal interrupts by direction and has up to 8 channels, as no other GMAC",
		axi: stmmac.AXI{PBL: 32},
	}
}

// evaluationGMAC is a GMAC 3.x on an evaluation board (stmmac_pci.c).
func evaluationGMAC(name string) integration {
	return integration{name: name, generation: stmmac.GMAC, firstBAR: true, axi: stmmac.AXI{PBL: 32}, phy: &stmmac.PHY{}}
}

// readPCI looks at what sysfs tells of the function.
func (g *Glue) readPCI(fsys fs.FS) {
	if bars := g.bars(); g.is.firstBAR && len(bars) > 0 {
		g.Region = bars[0]
	}
	if !g.is.noL1 {
		return
	}
	// There is no such file where the link has no ASPM or the kernel does not
	// manage it.
	file := path.Join("sys/bus/pci/devices", g.info.Name, "link/l1_aspm")
	if state, err := fs.ReadFile(fsys, file); err == nil && strings.TrimSpace(string(state)) == "1" {
		g.lacks(fmt.Errorf("ASPM L1 is on, with which some cards of this chip send no MSI: %w", os.ErrInvalid), "echo 0 > /"+file)
	}
}

// bars are the numbers of the BARs that there are, without that of the ROM.
func (g *Glue) bars() []int {
	var n []int
	const rom = 6
	for _, b := range g.info.BARs {
		if b.Index < rom && b.Size > 0 {
			n = append(n, b.Index)
		}
	}
	slices.Sort(n)
	return n
}

// lacksBAR says that the BAR with the registers is not there.
func (g *Glue) lacksBAR() error {
	if g.info.Bus != vfio.PCI || slices.Contains(g.bars(), g.Region) {
		return nil
	}
	return g.fail("prepare", fmt.Errorf("BAR %d, where its registers are, has no address: the firmware or the kernel gave it none: %w", g.Region, vfio.ErrGone),
		fmt.Sprintf("echo 1 > /sys/bus/pci/devices/%s/remove; echo 1 > /sys/bus/pci/rescan", g.info.Name))
}
