package gmacreg

import "github.com/gostmmac/gostmmac/stmmac/internal/regs"

// special are the registers that are not for who only wants to look, from first
// to last. Databook: the access types RC and R_SS_RC, and those of which a read
// has no meaning.
var special = []struct {
	first, last uint32
	read        regs.Read
}{
	{uint32(GMIIData), uint32(GMIIData), regs.ReadWindow},
	{uint32(PMTControlStatus), uint32(LPIControlStatus), regs.ReadClears}, // frames seen; LPI entry and exit
	{uint32(ANStatus), uint32(ANStatus), regs.ReadClears},                 // LS is latched
	{uint32(SGMIIRGMIIStatus), uint32(SGMIIRGMIIStatus), regs.ReadClears}, // and RGSMIIIS
	{uint32(MMCRxInterrupt), uint32(MMCTxInterrupt), regs.ReadClears},
	{MMCTxFirst, MMCRxLast, regs.ReadClears},
	{uint32(MMCIPCInterrupt), uint32(MMCIPCInterrupt), regs.ReadClears},
	{MMCIPCFirst, MMCIPCLast, regs.ReadClears},
	{uint32(TimestampStatus), uint32(TimestampStatus), regs.ReadClears},
	{uint32(TransmitPollDemand), uint32(ReceivePollDemand), regs.ReadWindow}, // the current descriptor is fetched on a write
	{uint32(MissedFrame), uint32(MissedFrame), regs.ReadClears},
}

// texts tell what registers with bits hold.
var texts = map[uint32]func(uint32) string{
	uint32(MACConfiguration): regs.Text[Configuration],
	uint32(MACFrameFilter):   regs.Text[FrameFilter],
	uint32(GMIIAddress):      regs.Text[MIIAddress],
	uint32(FlowControl):      regs.Text[Flow],
	uint32(VLANTagReg):       regs.Text[VLANTag],
	uint32(VersionReg):       regs.Text[Version],
	uint32(DebugReg):         regs.Text[Debug],
	uint32(InterruptStatus):  regs.Text[MACInterrupt],
	uint32(InterruptMask):    regs.Text[MACInterrupt],
	uint32(MACAddressHigh):   regs.Text[AddressHigh],
	uint32(MMCControl):       regs.Text[MMCCtrl],
	uint32(BusModeReg):       regs.Text[BusMode],
	uint32(StatusReg):        regs.Text[Status],
	uint32(OperationModeReg): regs.Text[Operation],
	uint32(InterruptEnable):  regs.Text[Interrupt],
	uint32(ReceiveWatchdog):  regs.Text[Watchdog],
	uint32(AXIBusMode):       regs.Text[AXIMode],
	uint32(HWFeatureReg):     regs.Text[HWFeature],
}

// describe adds to a map what is known of its registers beside their names.
func describe(t regs.Table) regs.Table {
	for i := range t {
		r := &t[i]
		r.Text = texts[r.Off]
		if r.Off >= uint32(MACAddress16High) && r.Off < uint32(BusModeReg) && (r.Off-uint32(MACAddress16High))%AddressStride == 0 {
			r.Text = regs.Text[AddressHigh]
		}
		for _, s := range special {
			if r.Off >= s.first && r.Off <= s.last {
				r.Read = s.read
			}
		}
	}
	return t
}
