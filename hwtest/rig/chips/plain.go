package chips

import (
	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// ehl is the Ethernet of Intel's Elkhart Lake with RGMII: a GMAC5 with eight queues, of
// which each has two of 32 MSI vectors (dwmac-intel.c).
func ehl() Chip {
	return Chip{
		Name: "ehl", What: "Intel Elkhart Lake RGMII 1G, 8086:4b30, a GMAC5 with 8 queues",
		pci: vfiouser.Config{
			Name: "EHL", Vendor: 0x8086, Device: 0x4b30, SubVendor: 0x8086, SubDevice: 0x7270, Revision: 1, Class: 0x020000,
			BARs: [6]vfiouser.BAR{0: {Size: 0x4000, Wide: true}},
			MSI:  vfiouser.MSI{Vectors: 32, Maskable: true}, INTx: true, PM: true, PCIe: true,
		},
		sim: sim.Config{RxQueues: 8, TxQueues: 8, RxFIFO: 32768, TxFIFO: 32768, AddrWidth: 40, HashBins: 64,
			CSRClock: 250_000_000},
		vector: func(l line) int {
			switch l.kind {
			case rxLine:
				return 2 * l.ch
			case txLine:
				return 2*l.ch + 1
			}
			return 29
		},
	}
}

// ehlPSE is the Ethernet of Elkhart Lake's service engine: the same MAC with bus addresses of
// 32 bits.
func ehlPSE() Chip {
	c := ehl()
	c.Name, c.What = "ehl-pse", "Intel Elkhart Lake PSE 0 RGMII 1G, 8086:4ba0, a GMAC5 with 8 queues"
	c.pci.Name, c.pci.Device = "EHL PSE", 0x4ba0
	c.sim.AddrWidth = 32
	return c
}

// modelVendor is the vendor of the functions that the module dwmac-modelpci takes.
const modelVendor = 0x1f0a

// bare is a MAC with nothing around it. The vectors of a function with several are the
// common one, those of the receive channels and those of the transmit channels.
func bare(name, what string, device uint16, cfg sim.Config) Chip {
	return Chip{
		Name: name, What: what,
		pci: vfiouser.Config{
			Vendor: modelVendor, Device: device, SubVendor: modelVendor, SubDevice: device, Class: 0x020000,
			BARs: [6]vfiouser.BAR{0: {Size: 0x2000}, 2: {Size: 0x1000}},
			MSI:  vfiouser.MSI{Vectors: 32, Maskable: true}, MSIX: vfiouser.MSIX{Vectors: 32, BAR: 2, PBA: 0x800},
			INTx: true, PM: true, PCIe: true,
		},
		sim: cfg,
		vector: func(l line) int {
			switch l.kind {
			case rxLine:
				return 1 + l.ch
			case txLine:
				return 1 + l.queues + l.ch
			}
			return 0
		},
	}
}

func bareGMAC() Chip {
	c := bare("gmac", "a GMAC 3.70 with normal descriptors, 1f0a:ff01, for the module dwmac-modelpci", 0xff01, sim.Config{Generation: sim.GMAC})
	c.vector = nil // it has one
	return c
}

func bareGMAC4() Chip {
	return bare("gmac4", "a GMAC5 5.20, 1f0a:ff02, for the module dwmac-modelpci", 0xff02,
		sim.Config{HashBins: 256})
}
