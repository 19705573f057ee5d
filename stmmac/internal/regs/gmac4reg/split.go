package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// MACExtCfg1 says where the split header feature splits; cores before 5.00 have only the
// split of layers 3 and 4. Databook: MAC registers.
const MACExtCfg1 mmio.Reg[ExtCfg1] = 0x0238

// ExtCfg1 is the value of MAC_Ext_Cfg1.
type ExtCfg1 uint32

// Fields of MAC_Ext_Cfg1.
const (
	SPLOFST mmio.Field[ExtCfg1] = 0x7f << 0 // bytes from the length/type field to the split of layer 2
	SPLM    mmio.Field[ExtCfg1] = 0x3 << 8
)

// Values of SPLM.
const (
	SplitL3L4   = 0 // behind the headers of layers 3 and 4
	SplitL2     = 1 // at SPLOFST
	SplitEither = 2 // L3L4 for IP packets, else L2
)

// HDSMS of MAC_Ext_Configuration is the longest header that is split off: 64 << code
// bytes, and 1,023 for code 4.
const HDSMS mmio.Field[uint32] = 0x7 << 20

// Values of HDSMS.
const (
	HDSMS256  = 2
	HDSMS1023 = 4
)
