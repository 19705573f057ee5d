package gmac4reg

// Offsets of the MMC counters that every configuration with an MMC block has.
// All are 32 bits wide. Databook: MMC registers.
const (
	TxOctetCountGoodBad             uint32 = 0x0714
	TxPacketCountGoodBad            uint32 = 0x0718
	TxBroadcastPacketsGood          uint32 = 0x071c
	TxMulticastPacketsGood          uint32 = 0x0720
	Tx64OctetsPacketsGoodBad        uint32 = 0x0724
	Tx65To127OctetsPacketsGoodBad   uint32 = 0x0728
	Tx128To255OctetsPacketsGoodBad  uint32 = 0x072c
	Tx256To511OctetsPacketsGoodBad  uint32 = 0x0730
	Tx512To1023OctetsPacketsGoodBad uint32 = 0x0734
	Tx1024ToMaxOctetsPacketsGoodBad uint32 = 0x0738
	TxUnicastPacketsGoodBad         uint32 = 0x073c
	TxMulticastPacketsGoodBad       uint32 = 0x0740
	TxBroadcastPacketsGoodBad       uint32 = 0x0744
	TxUnderflowErrorPackets         uint32 = 0x0748
	TxCarrierErrorPackets           uint32 = 0x0760
	TxOctetCountGood                uint32 = 0x0764
	TxPacketCountGood               uint32 = 0x0768
	TxPausePackets                  uint32 = 0x0770
	TxVLANPacketsGood               uint32 = 0x0774
	TxOsizePacketsGood              uint32 = 0x0778

	RxPacketsCountGoodBad           uint32 = 0x0780
	RxOctetCountGoodBad             uint32 = 0x0784
	RxOctetCountGood                uint32 = 0x0788
	RxBroadcastPacketsGood          uint32 = 0x078c
	RxMulticastPacketsGood          uint32 = 0x0790
	RxCRCErrorPackets               uint32 = 0x0794
	RxAlignmentErrorPackets         uint32 = 0x0798
	RxRuntErrorPackets              uint32 = 0x079c
	RxJabberErrorPackets            uint32 = 0x07a0
	RxUndersizePacketsGood          uint32 = 0x07a4
	RxOversizePacketsGood           uint32 = 0x07a8
	Rx64OctetsPacketsGoodBad        uint32 = 0x07ac
	Rx65To127OctetsPacketsGoodBad   uint32 = 0x07b0
	Rx128To255OctetsPacketsGoodBad  uint32 = 0x07b4
	Rx256To511OctetsPacketsGoodBad  uint32 = 0x07b8
	Rx512To1023OctetsPacketsGoodBad uint32 = 0x07bc
	Rx1024ToMaxOctetsPacketsGoodBad uint32 = 0x07c0
	RxUnicastPacketsGood            uint32 = 0x07c4
	RxLengthErrorPackets            uint32 = 0x07c8
	RxOutOfRangeTypePackets         uint32 = 0x07cc
	RxPausePackets                  uint32 = 0x07d0
	RxFIFOOverflowPackets           uint32 = 0x07d4
	RxVLANPacketsGoodBad            uint32 = 0x07d8
	RxWatchdogErrorPackets          uint32 = 0x07dc
	RxReceiveErrorPackets           uint32 = 0x07e0
	RxControlPacketsGood            uint32 = 0x07e4
)

// MMCTxFirst and MMCRxFirst are the counters of bit 0 of MMC_Tx_Interrupt and
// MMC_Rx_Interrupt; the counter of bit n lies n words behind.
const (
	MMCTxFirst = TxOctetCountGoodBad
	MMCTxLast  = TxOsizePacketsGood
	MMCRxFirst = RxPacketsCountGoodBad
	MMCRxLast  = RxControlPacketsGood
)
