package gmac4

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// readFeatures decodes the four feature registers. Databook: MAC_HW_Feature0
// to MAC_HW_Feature3.
func readFeatures(csr mmio.Region, v gmac4reg.Version) core.Features {
	f0 := gmac4reg.MACHWFeature0.Load(csr)
	f1 := gmac4reg.MACHWFeature1.Load(csr)
	f2 := gmac4reg.MACHWFeature2.Load(csr)
	f3 := gmac4reg.MACHWFeature3.Load(csr)
	f := core.Features{
		Version: uint8(gmac4reg.SNPSVER.Get(v)), UserID: uint8(gmac4reg.USERVER.Get(v)),

		MII: f0&gmac4reg.MIISEL != 0, GMII: f0&gmac4reg.GMIISEL != 0, HalfDuplex: f0&gmac4reg.HDSEL != 0,
		PCS: f0&gmac4reg.PCSSEL != 0, MDIO: f0&gmac4reg.SMASEL != 0, MMC: f0&gmac4reg.MMCSEL != 0,
		Timestamps: f0&gmac4reg.TSSEL != 0, EEE: f0&gmac4reg.EEESEL != 0,
		WakeMagic: f0&gmac4reg.MGKSEL != 0, WakeFrame: f0&gmac4reg.RWKSEL != 0,
		RxChecksum: f0&gmac4reg.RXCOESEL != 0, TxChecksum: f0&gmac4reg.TXCOESEL != 0,
		ARPOffload: f0&gmac4reg.ARPOFFSEL != 0, AddressInsert: f0&gmac4reg.SAVLANINS != 0,
		VLANHash: f0&gmac4reg.VLHASH != 0, PerfectFilters: int(gmac4reg.ADDMACADRSEL.Get(f0)),

		RxFIFO: fifoSize(gmac4reg.RXFIFOSIZE.Get(f1)), TxFIFO: fifoSize(gmac4reg.TXFIFOSIZE.Get(f1)),
		AddrWidth: addrWidth(gmac4reg.ADDR64.Get(f1)), L3L4Filters: int(gmac4reg.L3L4FNUM.Get(f1)),
		TSO: f1&gmac4reg.TSOEN != 0, SplitHeader: f1&gmac4reg.SPHEN != 0,
		DCB: f1&gmac4reg.DCBEN != 0, AV: f1&gmac4reg.AVSEL != 0,

		RxQueues: counted(gmac4reg.RXQCNT.Get(f2)), TxQueues: counted(gmac4reg.TXQCNT.Get(f2)),
		RxChannels: counted(gmac4reg.RXCHCNT.Get(f2)), TxChannels: counted(gmac4reg.TXCHCNT.Get(f2)),
		PPSOutputs: int(gmac4reg.PPSOUTNUM.Get(f2)), AuxSnapshots: int(gmac4reg.AUXSNAPNUM.Get(f2)),

		DoubleVLAN: f3&gmac4reg.DVLAN != 0, FlexibleParser: f3&gmac4reg.FRPSEL != 0,
		EST: f3&gmac4reg.ESTSEL != 0, FramePreemption: f3&gmac4reg.FPESEL != 0,
		TimeBasedScheduling: f3&gmac4reg.TBSSEL != 0, SafetyFeatures: int(gmac4reg.ASP.Get(f3)),
		VLANFilters: vlanFilters(gmac4reg.NRVF.Get(f3)),
	}
	if code := gmac4reg.HASHTBLSZ.Get(f1); code != 0 {
		f.HashBins = 32 << code
	}
	return f
}

// counted decodes a count of queues or channels, which are at most eight
// whatever the four bits say.
func counted(code uint32) int { return min(int(code)+1, maxQueues) }

// fifoSize decodes the size of a FIFO. No MAC has the 128 bytes of code 0, which
// stands where an integration did not say (case D50), nor the codes behind that of
// 256 KiB.
func fifoSize(code uint32) int {
	const most = 11
	if code == 0 || code > most {
		return 0
	}
	return 128 << code
}

func addrWidth(code uint32) int {
	switch code {
	case 1:
		return 40
	case 2:
		return 48
	}
	return 32
}

func vlanFilters(code uint32) int {
	switch code {
	case 1:
		return 4
	case 2:
		return 8
	case 3:
		return 16
	case 4:
		return 24
	case 5:
		return 32
	}
	return 1
}
