package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// HWFeature0 is the value of MAC_HW_Feature0.
type HWFeature0 uint32

// Bits of MAC_HW_Feature0.
const (
	MIISEL    HWFeature0 = 1 << 0
	GMIISEL   HWFeature0 = 1 << 1
	HDSEL     HWFeature0 = 1 << 2
	PCSSEL    HWFeature0 = 1 << 3
	VLHASH    HWFeature0 = 1 << 4
	SMASEL    HWFeature0 = 1 << 5
	RWKSEL    HWFeature0 = 1 << 6
	MGKSEL    HWFeature0 = 1 << 7
	MMCSEL    HWFeature0 = 1 << 8
	ARPOFFSEL HWFeature0 = 1 << 9
	TSSEL     HWFeature0 = 1 << 12
	EEESEL    HWFeature0 = 1 << 13
	TXCOESEL  HWFeature0 = 1 << 14
	RXCOESEL  HWFeature0 = 1 << 16
	SAVLANINS HWFeature0 = 1 << 27

	ADDMACADRSEL mmio.Field[HWFeature0] = 0x1f << 18 // additional perfect filters
	ACTPHYSEL    mmio.Field[HWFeature0] = 0x7 << 28
)

// HWFeature1 is the value of MAC_HW_Feature1.
type HWFeature1 uint32

// Bits of MAC_HW_Feature1.
const (
	DCBEN HWFeature1 = 1 << 16
	SPHEN HWFeature1 = 1 << 17
	TSOEN HWFeature1 = 1 << 18
	AVSEL HWFeature1 = 1 << 20

	RXFIFOSIZE mmio.Field[HWFeature1] = 0x1f << 0 // 128 << code bytes
	TXFIFOSIZE mmio.Field[HWFeature1] = 0x1f << 6 // 128 << code bytes
	ADDR64     mmio.Field[HWFeature1] = 0x3 << 14 // 0: 32, 1: 40, 2: 48 address bits
	HASHTBLSZ  mmio.Field[HWFeature1] = 0x3 << 24 // 0: none, else 32 << code bins
	L3L4FNUM   mmio.Field[HWFeature1] = 0xf << 27
)

// HWFeature2 is the value of MAC_HW_Feature2. The four counts are one less
// than the number of queues or channels.
type HWFeature2 uint32

// Fields of MAC_HW_Feature2.
const (
	RXQCNT     mmio.Field[HWFeature2] = 0xf << 0
	TXQCNT     mmio.Field[HWFeature2] = 0xf << 6
	RXCHCNT    mmio.Field[HWFeature2] = 0xf << 12
	TXCHCNT    mmio.Field[HWFeature2] = 0xf << 18
	PPSOUTNUM  mmio.Field[HWFeature2] = 0x7 << 24
	AUXSNAPNUM mmio.Field[HWFeature2] = 0x7 << 28
)

// HWFeature3 is the value of MAC_HW_Feature3.
type HWFeature3 uint32

// Bits of MAC_HW_Feature3.
const (
	DVLAN  HWFeature3 = 1 << 5
	FRPSEL HWFeature3 = 1 << 10
	ESTSEL HWFeature3 = 1 << 16
	FPESEL HWFeature3 = 1 << 26
	TBSSEL HWFeature3 = 1 << 27

	NRVF   mmio.Field[HWFeature3] = 0x7 << 0 // VLAN filters: 1, 4, 8, 16, 24, 32
	FRPBS  mmio.Field[HWFeature3] = 0x3 << 11
	FRPES  mmio.Field[HWFeature3] = 0x3 << 13
	ESTDEP mmio.Field[HWFeature3] = 0x7 << 17
	ESTWID mmio.Field[HWFeature3] = 0x3 << 20
	ASP    mmio.Field[HWFeature3] = 0x3 << 28
)
