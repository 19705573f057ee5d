package gmacreg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of the MMC block. Databook: MMC registers.
const (
	MMCControl          mmio.Reg[MMCCtrl] = 0x0100
	MMCRxInterrupt      mmio.Reg[uint32]  = 0x0104 // read-clear by its counters
	MMCTxInterrupt      mmio.Reg[uint32]  = 0x0108
	MMCRxInterruptMask  mmio.Reg[uint32]  = 0x010c // 1 masks; the reset value is 0
	MMCTxInterruptMask  mmio.Reg[uint32]  = 0x0110
	MMCIPCInterruptMask mmio.Reg[uint32]  = 0x0200
	MMCIPCInterrupt     mmio.Reg[uint32]  = 0x0208
)

// MMCCtrl is the value of MMC_Control.
type MMCCtrl uint32

// Bits of MMC_Control.
const (
	MMCCntRst     MMCCtrl = 1 << 0 // CNTRST, self-clearing
	MMCCntStopRO  MMCCtrl = 1 << 1 // CNTSTOPRO
	MMCRstOnRd    MMCCtrl = 1 << 2 // RSTONRD
	MMCCntFreez   MMCCtrl = 1 << 3 // CNTFREEZ
	MMCCntPrst    MMCCtrl = 1 << 4 // CNTPRST, self-clearing
	MMCCntPrstLvl MMCCtrl = 1 << 5 // CNTPRSTLVL
	MMCUCDBC      MMCCtrl = 1 << 8 // count broadcasts that the filter dropped
)

// Offsets of the MMC counters, which have 32 bits. Databook: MMC registers.
const (
	TxOctetCountGB      uint32 = 0x0114
	TxFrameCountGB      uint32 = 0x0118
	TxBroadcastFramesG  uint32 = 0x011c
	TxMulticastFramesG  uint32 = 0x0120
	Tx64OctetsGB        uint32 = 0x0124
	Tx65To127OctetsGB   uint32 = 0x0128
	Tx128To255OctetsGB  uint32 = 0x012c
	Tx256To511OctetsGB  uint32 = 0x0130
	Tx512To1023OctetsGB uint32 = 0x0134
	Tx1024ToMaxOctetsGB uint32 = 0x0138
	TxUnicastFramesGB   uint32 = 0x013c
	TxMulticastFramesGB uint32 = 0x0140
	TxBroadcastFramesGB uint32 = 0x0144
	TxUnderflowError    uint32 = 0x0148
	TxSingleColG        uint32 = 0x014c
	TxMultiColG         uint32 = 0x0150
	TxDeferred          uint32 = 0x0154
	TxLateCol           uint32 = 0x0158
	TxExessCol          uint32 = 0x015c
	TxCarrierError      uint32 = 0x0160
	TxOctetCountG       uint32 = 0x0164
	TxFrameCountG       uint32 = 0x0168
	TxExcessDef         uint32 = 0x016c
	TxPauseFrames       uint32 = 0x0170
	TxVLANFramesG       uint32 = 0x0174
	TxOversizeG         uint32 = 0x0178

	RxFrameCountGB      uint32 = 0x0180
	RxOctetCountGB      uint32 = 0x0184
	RxOctetCountG       uint32 = 0x0188
	RxBroadcastFramesG  uint32 = 0x018c
	RxMulticastFramesG  uint32 = 0x0190
	RxCRCError          uint32 = 0x0194
	RxAlignmentError    uint32 = 0x0198
	RxRuntError         uint32 = 0x019c
	RxJabberError       uint32 = 0x01a0
	RxUndersizeG        uint32 = 0x01a4
	RxOversizeG         uint32 = 0x01a8
	Rx64OctetsGB        uint32 = 0x01ac
	Rx65To127OctetsGB   uint32 = 0x01b0
	Rx128To255OctetsGB  uint32 = 0x01b4
	Rx256To511OctetsGB  uint32 = 0x01b8
	Rx512To1023OctetsGB uint32 = 0x01bc
	Rx1024ToMaxOctetsGB uint32 = 0x01c0
	RxUnicastFramesG    uint32 = 0x01c4
	RxLengthError       uint32 = 0x01c8
	RxOutOfRangeType    uint32 = 0x01cc
	RxPauseFrames       uint32 = 0x01d0
	RxFIFOOverflow      uint32 = 0x01d4
	RxVLANFramesGB      uint32 = 0x01d8
	RxWatchdogError     uint32 = 0x01dc
	RxReceiveError      uint32 = 0x01e0
	RxControlFramesG    uint32 = 0x01e4
)

// Offsets of the MMC counters of the receive checksum engine. Each counter of
// frames has one of octets IPCOctets behind it.
const (
	RxIPv4Good        uint32 = 0x0210
	RxIPv4HeaderError uint32 = 0x0214
	RxIPv4NoPayload   uint32 = 0x0218
	RxIPv4Fragmented  uint32 = 0x021c
	RxIPv4UDPDisabled uint32 = 0x0220
	RxIPv6Good        uint32 = 0x0224
	RxIPv6HeaderError uint32 = 0x0228
	RxIPv6NoPayload   uint32 = 0x022c
	RxUDPGood         uint32 = 0x0230
	RxUDPError        uint32 = 0x0234
	RxTCPGood         uint32 = 0x0238
	RxTCPError        uint32 = 0x023c
	RxICMPGood        uint32 = 0x0240
	RxICMPError       uint32 = 0x0244

	IPCOctets uint32 = 0x40
)

// IPCCount is how many counters of frames the checksum engine has, and of octets.
const IPCCount = 14

// MMCTxFirst, MMCRxFirst and MMCIPCFirst are the counters of bit 0 of
// MMC_Transmit_Interrupt, MMC_Receive_Interrupt and MMC_IPC_Receive_Interrupt; the
// counter of bit n lies n words behind.
const (
	MMCTxFirst  = TxOctetCountGB
	MMCTxLast   = TxOversizeG
	MMCRxFirst  = RxFrameCountGB
	MMCRxLast   = RxControlFramesG
	MMCIPCFirst = RxIPv4Good
	MMCIPCLast  = RxICMPError + IPCOctets
)
