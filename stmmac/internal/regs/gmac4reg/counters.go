package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of MMC registers that depend on what a configuration has. Databook:
// MMC registers. All counters are 32 bits wide.
const (
	MMCFPETxInterrupt     mmio.Reg[uint32] = 0x08a0
	MMCFPETxInterruptMask mmio.Reg[uint32] = 0x08a4
	MMCFPERxInterrupt     mmio.Reg[uint32] = 0x08c0
	MMCFPERxInterruptMask mmio.Reg[uint32] = 0x08c4
)

// The counters of low power idle are there with EEE.
const (
	TxLPIUSEC uint32 = 0x07ec
	TxLPITran uint32 = 0x07f0
	RxLPIUSEC uint32 = 0x07f4
	RxLPITran uint32 = 0x07f8
)

// The counters of frame preemption are there with it.
const (
	TxFPEFragment       uint32 = 0x08a8
	TxHoldReq           uint32 = 0x08ac
	RxPacketAssemblyErr uint32 = 0x08c8
	RxPacketSMDErr      uint32 = 0x08cc
	RxPacketAssemblyOK  uint32 = 0x08d0
	RxFPEFragment       uint32 = 0x08d4
)
