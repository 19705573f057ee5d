package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// MTLRxQControl lies at this offset from the base of an MTL queue. Databook:
// MTL_RxQx_Control.
const MTLRxQControl mmio.Reg[MTLRxQCtrl] = 0x3c

// MTLRxQCtrl is the value of MTL_RxQx_Control.
type MTLRxQCtrl uint32

// RXQWEGT is the weight of the queue in weighted arbitration.
const RXQWEGT mmio.Field[MTLRxQCtrl] = 0x7 << 0

// ISCQW is the weight or quantum in MTL_TxQx_Quantum_Weight; what it counts
// depends on SCHALG.
const ISCQW mmio.Field[uint32] = 0x1fffff << 0
