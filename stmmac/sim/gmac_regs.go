package sim

import (
	"github.com/gostmmac/gostmmac/mmio"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// buildRegs implements generation. The masks are the writable bits of the databook's
// register descriptions, without those of features that the model does not have.
func (g *gmac) buildRegs() error {
	m := g.m
	c := &m.cfg
	n := c.csrSize() / 4
	m.regs.word = make([]uint32, n)
	m.regs.desc = make([]register, n)
	b := &regMapper{m: m}

	conf := rg.RE | rg.TE | rg.DC | rg.BL.Mask() | rg.ACS | rg.DR | rg.DM | rg.LM | rg.DO | rg.FES | rg.PS | rg.DCRS |
		rg.IFG.Mask() | rg.JE | rg.BE | rg.JD | rg.WD | rg.CST | rg.TWOKPE
	if !c.NoRxChecksum {
		conf |= rg.IPC
	}
	add(b, rg.MACConfiguration, loadPlain, storeLocked, conf, 0)
	filter := rg.PR | rg.HUC | rg.HMC | rg.DAIF | rg.PM | rg.DBF | rg.PCF.Mask() | rg.SAIF | rg.SAF | rg.HPF | rg.RA
	vlan := rg.VL.Mask() | rg.ETV
	if c.Version >= 0x35 {
		filter |= rg.VTFE
		vlan |= rg.VTIM | rg.ESVL
	}
	add(b, rg.MACFrameFilter, loadPlain, storeLocked, filter, 0)
	if c.HashBins == 64 {
		add(b, rg.HashTableHigh, loadPlain, storeLocked, ^uint32(0), 0)
		add(b, rg.HashTableLow, loadPlain, storeLocked, ^uint32(0), 0)
	} else {
		for i := range c.HashBins / 32 {
			add(b, rg.HashTableReg.At(i, 4), loadPlain, storeLocked, ^uint32(0), 0)
		}
	}
	if !c.NoMDIO {
		add(b, rg.GMIIAddress, loadLocked, storeLocked, rg.GB|rg.GW|rg.CR.Mask()|rg.GR.Mask()|rg.PA.Mask(), 0)
		add(b, rg.GMIIData, loadLocked, storeLocked, 0xffff, 0)
	}
	add(b, rg.FlowControl, loadPlain, storeLocked, rg.FCBBPA|rg.TFE|rg.RFE|rg.UP|rg.PLT.Mask()|rg.DZPQ|rg.PT.Mask(), 0)
	add(b, rg.VLANTagReg, loadPlain, storeLocked, vlan, 0)
	add(b, rg.VersionReg, loadPlain, storeIgnored, 0, rg.SNPSVER.Of(uint32(c.Version))|rg.USERVER.Of(uint32(c.UserVersion)))
	add(b, rg.DebugReg, loadLocked, storeIgnored, 0, 0)
	add(b, rg.InterruptStatus, loadIRQ, storeIgnored, 0, 0)
	add(b, rg.InterruptMask, loadPlain, storePlain, rg.MACInterruptMaskAll, 0)
	g.addresses(b)
	b.gmacMMC()
	g.dma(b)
	return nil
}

// addresses are the pairs of MAC addresses; only pair 0 is on after reset.
func (g *gmac) addresses(b *regMapper) {
	a := g.m.cfg.Address
	high, low := rg.AE|rg.ADDRHI.Of(0xffff), ^uint32(0)
	if a != [6]byte{} {
		high = rg.AE | rg.ADDRHI.Of(uint32(a[5])<<8|uint32(a[4]))
		low = uint32(a[3])<<24 | uint32(a[2])<<16 | uint32(a[1])<<8 | uint32(a[0])
	}
	for i := range rg.AddressCount {
		mask := rg.AE | rg.SA | rg.MBC.Mask() | rg.ADDRHI.Mask()
		if i == 0 {
			mask = rg.ADDRHI.Mask() // AE of address 0 is always set
		}
		h, l := rg.AddressAt(i)
		add(b, h, loadPlain, storeLocked, mask, high)
		add(b, l, loadPlain, storeLocked, ^uint32(0), low)
		high, low = rg.ADDRHI.Of(0xffff), ^uint32(0)
	}
}

// gmacMMC is the MMC block.
func (b *regMapper) gmacMMC() {
	add(b, rg.MMCControl, loadPlain, storeLocked, rg.MMCCntRst|rg.MMCCntStopRO|rg.MMCRstOnRd|rg.MMCCntFreez|
		rg.MMCCntPrst|rg.MMCCntPrstLvl, 0)
	add(b, rg.MMCRxInterrupt, loadPlain, storeIgnored, 0, 0)
	add(b, rg.MMCTxInterrupt, loadPlain, storeIgnored, 0, 0)
	add(b, rg.MMCRxInterruptMask, loadPlain, storeLine, uint32(1)<<mmcRxCount-1, 0)
	add(b, rg.MMCTxInterruptMask, loadPlain, storeLine, uint32(1)<<mmcTxCount-1, 0)
	for i := range mmcTxCount {
		add(b, mmio.Reg[uint32](rg.MMCTxFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
	for i := range mmcRxCount {
		add(b, mmio.Reg[uint32](rg.MMCRxFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
	if b.m.cfg.NoRxChecksum {
		return
	}
	const ipc = uint32(1)<<rg.IPCCount - 1
	add(b, rg.MMCIPCInterruptMask, loadPlain, storeLine, ipc|ipc<<16, 0)
	add(b, rg.MMCIPCInterrupt, loadPlain, storeIgnored, 0, 0)
	for i := range rg.IPCCount {
		add(b, mmio.Reg[uint32](rg.MMCIPCFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
		add(b, mmio.Reg[uint32](rg.MMCIPCFirst+rg.IPCOctets).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
}

// demandTx is the channel of a storeDemand register that means the transmitter.
const demandTx = 1

// dma is the DMA block of the only channel.
func (g *gmac) dma(b *regMapper) {
	c := &g.m.cfg
	aligned := ^uint32(c.BusBytes - 1)
	add(b, rg.BusModeReg, loadPlain, storeLocked, rg.SWR|rg.DA|rg.DSL.Mask()|rg.PBL.Mask()|rg.PRIO.Mask()|rg.FB|
		rg.RPBL.Mask()|rg.USP|rg.PBLX8|rg.AAL|rg.MB|rg.TXPR, rg.PBL.Of(1)|rg.RPBL.Of(1))
	add(b, rg.ReceivePollDemand, loadLocked, storeDemand, 0, 0)
	b.ch = demandTx
	add(b, rg.TransmitPollDemand, loadLocked, storeDemand, 0, 0)
	b.ch = 0
	add(b, rg.ReceiveListAddress, loadPlain, storeLocked, aligned, 0)
	add(b, rg.TransmitListAddress, loadPlain, storeLocked, aligned, 0)
	add(b, rg.StatusReg, loadIRQ, storeStatus, 0, 0)
	add(b, rg.OperationModeReg, loadPlain, storeLocked, rg.SR|rg.OSF|rg.RTC.Mask()|rg.FUF|rg.FEF|rg.EFC|rg.RFA.Mask()|
		rg.RFD.Mask()|rg.ST|rg.TTC.Mask()|rg.FTF|rg.TSF|rg.RFD2|rg.RFA2|rg.DFF|rg.RSF|rg.DT, 0)
	add(b, rg.InterruptEnable, loadPlain, storeEnable, rg.TIE|rg.TSE|rg.TUE|rg.TJE|rg.OVE|rg.UNE|rg.RIE|rg.RUE|rg.RSE|
		rg.RWE|rg.ETE|rg.FBE|rg.ERE|rg.AIE|rg.NIE, 0)
	add(b, rg.MissedFrame, loadLocked, storeIgnored, 0, 0)
	if c.Version >= 0x35 {
		add(b, rg.ReceiveWatchdog, loadPlain, storeLocked, rg.RIWT.Mask(), 0)
		add(b, rg.AXIBusMode, loadPlain, storePlain, rg.UNDEF|rg.BLEN4|rg.BLEN8|rg.BLEN16|rg.BLEN32|rg.BLEN64|rg.BLEN128|
			rg.BLEN256|rg.ONEKBBE|rg.RDOSRLMT.Mask()|rg.WROSRLMT.Mask()|rg.LPIXITFR|rg.ENLPI, rg.RDOSRLMT.Of(1)|rg.WROSRLMT.Of(1))
	}
	add(b, rg.CurrentTxDescriptor, loadLocked, storeIgnored, 0, 0)
	add(b, rg.CurrentRxDescriptor, loadLocked, storeIgnored, 0, 0)
	add(b, rg.CurrentTxBuffer, loadLocked, storeIgnored, 0, 0)
	add(b, rg.CurrentRxBuffer, loadLocked, storeIgnored, 0, 0)
	if !c.NoHWFeature {
		add(b, rg.HWFeatureReg, loadPlain, storeIgnored, 0, g.features())
	}
}

// features tells of the model what it does, and of nothing else.
func (g *gmac) features() rg.HWFeature {
	c := &g.m.cfg
	f := rg.MIISEL | rg.GMIISEL | rg.HDSEL | rg.HASHSEL | rg.ADDMACADR | rg.MMCSEL
	for _, x := range []struct {
		has bool
		bit rg.HWFeature
	}{
		{c.HashBins > 64, rg.EXTHASHEN}, {!c.NoMDIO, rg.SMASEL}, {!c.NoTxChecksum, rg.TXCOESEL},
		{!c.NoRxChecksum, rg.RXTYP2COE}, {c.RxFIFO > 2048, rg.RXFIFOSIZE},
	} {
		if x.has {
			f |= x.bit
		}
	}
	return f
}
