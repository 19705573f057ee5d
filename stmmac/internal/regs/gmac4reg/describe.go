package gmac4reg

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
)

// Offsets of registers that a read changes and that the driver does not use
// otherwise. Databook: MAC registers.
const (
	MACRxTxStatus       mmio.Reg[uint32] = 0x00b8
	MACPMTControlStatus mmio.Reg[uint32] = 0x00c0
	MACANStatus         mmio.Reg[uint32] = 0x00e4
	MACFPECtrlStatus    mmio.Reg[uint32] = 0x0234
	MACTimestampStatus  mmio.Reg[uint32] = 0x0b20
	// The seconds are read last: that takes the timestamp out of its queue.
	MACTxTimestampNs  mmio.Reg[uint32] = 0x0b30
	MACTxTimestampSec mmio.Reg[uint32] = 0x0b34
	MACAuxTimestampNs mmio.Reg[uint32] = 0x0b48
	MACAuxTimestamp   mmio.Reg[uint32] = 0x0b4c
)

// special are the registers that are not for who only wants to look, from first
// to last. Databook: the access types RC and R_SS_RC, and the descriptions of the
// windows. The same holds for those that are not in the map yet.
var special = []struct {
	first, last uint32
	read        regs.Read
}{
	{uint32(MACVLANTagData), uint32(MACVLANTagData), regs.ReadWindow},
	{uint32(MACInterruptStatus), uint32(MACInterruptStatus), regs.ReadClears}, // PHYIS, MDIOIS
	{uint32(MACRxTxStatus), uint32(MACRxTxStatus), regs.ReadClears},
	{uint32(MACPMTControlStatus), uint32(MACPMTControlStatus), regs.ReadClears}, // RWKPRCVD, MGKPRCVD
	{uint32(MACLPIControlStatus), uint32(MACLPIControlStatus), regs.ReadClears}, // TLPIEN to RLPIEX
	{uint32(MACANStatus), uint32(MACANStatus), regs.ReadClears},                 // LS is latched
	{uint32(MACPHYIFCtrlStatus), uint32(MACPHYIFCtrlStatus), regs.ReadClears},   // and RGSMIIIS
	{uint32(MACMDIOData), uint32(MACMDIOData), regs.ReadWindow},
	{uint32(MACFPECtrlStatus), uint32(MACFPECtrlStatus), regs.ReadClears}, // TRSP to RVER
	{uint32(MMCRxInterrupt), uint32(MMCTxInterrupt), regs.ReadClears},
	{MMCTxFirst, RxLPITran, regs.ReadClears}, // counters, with RSTONRD
	{uint32(MMCIPCInterrupt), uint32(MMCIPCInterrupt), regs.ReadClears},
	{MMCIPCFirst, RxICMPErrorPackets + IPCOctets, regs.ReadClears},
	{uint32(MMCFPETxInterrupt), uint32(MMCFPETxInterrupt), regs.ReadClears},
	{TxFPEFragment, TxHoldReq, regs.ReadClears},
	{uint32(MMCFPERxInterrupt), uint32(MMCFPERxInterrupt), regs.ReadClears},
	{RxPacketAssemblyErr, RxFPEFragment, regs.ReadClears},
	{uint32(MACTimestampStatus), uint32(MACTimestampStatus), regs.ReadClears},
	{uint32(MACTxTimestampNs), uint32(MACTxTimestampSec), regs.ReadClears},
	{uint32(MACAuxTimestampNs), uint32(MACAuxTimestamp), regs.ReadClears},
	{DefaultLayout.MTLBase + uint32(MTLTxQUnderflow), DefaultLayout.MTLBase + uint32(MTLTxQUnderflow), regs.ReadClears},
	{DefaultLayout.MTLBase + uint32(MTLRxQMissedOverflow), DefaultLayout.MTLBase + uint32(MTLRxQMissedOverflow), regs.ReadClears},
	{DefaultLayout.DMABase + uint32(DMACHMissFrameCnt), DefaultLayout.DMABase + uint32(DMACHMissFrameCnt), regs.ReadClears},
}

// texts are what the values of registers say.
var texts = map[uint32]func(uint32) string{
	uint32(MACConfiguration):      regs.Text[Configuration],
	uint32(MACPacketFilter):       regs.Text[PacketFilter],
	uint32(MACWatchdogTimeout):    regs.Text[WatchdogTimeout],
	uint32(MACVLANTag):            regs.Text[VLANTag],
	uint32(MACVLANIncl):           regs.Text[VLANIncl],
	uint32(MACInnerVLANIncl):      regs.Text[VLANIncl],
	uint32(MACQxTxFlow):           regs.Text[TxFlow],
	uint32(MACRxFlow):             regs.Text[RxFlow],
	uint32(MACRxQCtrl1):           regs.Text[RxQCtrl1],
	uint32(MACRxQCtrl4):           regs.Text[RxQCtrl4],
	uint32(MACInterruptEnable):    regs.Text[MACInterrupt],
	uint32(MACLPIControlStatus):   regs.Text[LPIControl],
	uint32(MACLPITimersControl):   regs.Text[LPITimers],
	uint32(MACVersion):            regs.Text[Version],
	uint32(MACDebug):              regs.Text[Debug],
	uint32(MACHWFeature0):         regs.Text[HWFeature0],
	uint32(MACHWFeature1):         regs.Text[HWFeature1],
	uint32(MACHWFeature2):         regs.Text[HWFeature2],
	uint32(MACHWFeature3):         regs.Text[HWFeature3],
	uint32(MACMDIOAddress):        regs.Text[MDIOAddress],
	uint32(MACExtCfg1):            regs.Text[ExtCfg1],
	uint32(MACAddressHigh):        regs.Text[AddressHigh],
	uint32(MACL3L4Control):        regs.Text[L3L4Control],
	uint32(MACLayer4Address):      regs.Text[Layer4Ports],
	uint32(MACTimestampControl):   regs.Text[TimestampControl],
	uint32(MACSubSecondIncrement): regs.Text[SubSecondIncrement],
	uint32(MACSystemTimeNsUpdate): regs.Text[TimeNsUpdate],
	uint32(MMCControl):            regs.Text[MMCCtrl],

	uint32(MTLOperationMode):                            regs.Text[MTLMode],
	DefaultLayout.MTLBase + uint32(MTLTxQOperationMode): regs.Text[MTLTxQMode],
	DefaultLayout.MTLBase + uint32(MTLTxQDebug):         regs.Text[MTLTxQDbg],
	DefaultLayout.MTLBase + uint32(MTLQInterruptCtrl):   regs.Text[MTLQInterrupt],
	DefaultLayout.MTLBase + uint32(MTLRxQOperationMode): regs.Text[MTLRxQMode],
	DefaultLayout.MTLBase + uint32(MTLRxQDebug):         regs.Text[MTLRxQDbg],
	DefaultLayout.MTLBase + uint32(MTLRxQControl):       regs.Text[RxQControl],

	uint32(DMAMode):                                      regs.Text[DMAModeVal],
	uint32(DMASysBusMode):                                regs.Text[SysBusMode],
	uint32(DMAInterruptStatus):                           regs.Text[DMAInterrupt],
	uint32(DMATBSControl):                                regs.Text[TBSControl],
	DefaultLayout.DMABase + uint32(DMACHControl):         regs.Text[CHControl],
	DefaultLayout.DMABase + uint32(DMACHTxControl):       regs.Text[CHTxControl],
	DefaultLayout.DMABase + uint32(DMACHRxControl):       regs.Text[CHRxControl],
	DefaultLayout.DMABase + uint32(DMACHInterruptEnable): regs.Text[CHInterrupt],
	DefaultLayout.DMABase + uint32(DMACHRxWatchdogTimer): regs.Text[RxWatchdog],
	DefaultLayout.DMABase + uint32(DMACHStatus):          regs.Text[CHStatus],
}

// describe adds to a map what is known of its registers beside their names.
func describe(t regs.Table) regs.Table {
	for i := range t {
		r := &t[i]
		r.Text = texts[r.Off]
		for _, s := range special {
			if r.Off >= s.first && r.Off <= s.last {
				r.Read = s.read
			}
		}
	}
	return t
}
