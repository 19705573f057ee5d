package sim

import (
	"math/bits"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// regMapper describes the registers of a model. The masks are the writable bits
// of the databook's register descriptions, without those of features that the
// model does not have: these read as 0.
type regMapper struct {
	m     *Model
	off   uint32 // what the layout adds to an offset in a channel or queue
	block uint32 // what the default layout adds for channel or queue 0
	ch    int
	twice bool
}

// add describes one register.
func add[T ~uint32](b *regMapper, reg mmio.Reg[T], load, store uint8, mask, reset T) {
	r := &b.m.regs.desc[(uint32(reg)+b.off)/4]
	b.twice = b.twice || r.known
	*r = register{known: true, load: load, store: store, ch: uint8(b.ch),
		mask: uint32(mask), reset: uint32(reset), id: b.block + uint32(reg)}
}

// Where channel and queue 0 lie in the default layout: what makes the identity of a
// register unique.
const (
	idMTL = 0x0d00
	idDMA = 0x1100
)

// buildRegs lays out the register file.
func (m *Model) buildRegs() error {
	n := m.cfg.csrSize() / 4
	m.regs.word = make([]uint32, n)
	m.regs.desc = make([]register, n)
	b := &regMapper{m: m}
	b.mac()
	b.mmc()
	b.mtl()
	b.dma()
	if b.twice {
		return &ConfigError{"Layout", m.cfg.Layout, "two registers at one offset"}
	}
	return nil
}

// perfectFilters is the number of MAC addresses, all that ADDMACADRSEL can tell.
const perfectFilters = 1 + r4.MaxAdditional

// halfDuplexBits of MAC_Configuration (PRELEN, DC, BL, DR, DO, ECRSFD) are kept. Only
// DR has an effect: the wires of this package have no collisions but those of a fault.
const halfDuplexBits r4.Configuration = 0x0d7c

func (b *regMapper) mac() {
	c := &b.m.cfg
	conf := halfDuplexBits | r4.RE | r4.TE | r4.DCRS | r4.LM | r4.DM | r4.FES | r4.PS |
		r4.JE | r4.JD | r4.BE | r4.WD | r4.ACS | r4.CST | r4.S2KP | r4.GPSLCE | r4.IPG.Mask()
	if !c.NoRxChecksum {
		conf |= r4.IPC
	}
	if !c.NoVLANInsert {
		conf |= r4.SARC.Mask()
	}
	if c.ARPOffload {
		conf |= r4.ARPEN
		add(b, r4.MACARPAddress, loadPlain, storeLocked, ^uint32(0), 0)
	}
	add(b, r4.MACConfiguration, loadPlain, storeLocked, conf, 0)
	ext := r4.ExtGPSL | 1<<24 | 0x1f<<25
	if c.SplitHeader {
		ext |= uint32(r4.HDSMS.Mask())
		if c.Version >= 0x50 {
			add(b, r4.MACExtCfg1, loadPlain, storeLocked, r4.SPLOFST.Mask()|r4.SPLM.Mask(), r4.SPLOFST.Of(2))
		}
	}
	add(b, r4.MACExtConfiguration, loadPlain, storeLocked, ext, 0)
	filter := r4.PR | r4.HUC | r4.HMC | r4.DAIF | r4.PM | r4.DBF | r4.PCF.Mask() | r4.SAIF | r4.SAF | r4.HPF | r4.VTFE | r4.RA
	if c.L3L4Filters > 0 {
		filter |= r4.IPFE | r4.DNTU
	}
	add(b, r4.MACPacketFilter, loadPlain, storeLocked, filter, 0)
	add(b, r4.MACWatchdogTimeout, loadPlain, storeLocked, r4.PWE|r4.WTO.Mask(), 0)
	for i := range c.HashBins / 32 {
		add(b, r4.MACHashTable.At(i, 4), loadPlain, storeLocked, ^uint32(0), 0)
	}
	b.vlan()
	b.l34()
	b.ptp()
	b.lpi()
	for q := range c.TxQueues {
		mask := r4.PT.Mask() | r4.TFE | r4.PLT.Mask() | r4.DZPQ
		if q == 0 {
			mask |= r4.FCBBPA
		}
		add(b, r4.MACQxTxFlow.At(q, 4), loadPlain, storeLocked, mask, 0)
	}
	add(b, r4.MACRxFlow, loadPlain, storeLocked, r4.RFE|r4.UP, 0)
	queues := func(n, width int, each uint32) (v uint32) {
		for q := range n {
			v |= each << (q * width)
		}
		return v
	}
	add(b, r4.MACRxQCtrl4, loadPlain, storeLocked, r4.UFFQE|r4.UFFQ.Mask()|r4.MFFQE|r4.MFFQ.Mask()|r4.VFFQE|r4.VFFQ.Mask(), 0)
	add(b, r4.MACTxQPrtyMap0, loadPlain, storePlain, queues(min(c.TxQueues, 4), 8, 0xff), 0)
	add(b, r4.MACTxQPrtyMap1, loadPlain, storePlain, queues(max(c.TxQueues-4, 0), 8, 0xff), 0)
	add(b, r4.MACRxQCtrl0, loadPlain, storeLocked, queues(c.RxQueues, 2, 3), 0)
	add(b, r4.MACRxQCtrl1, loadPlain, storeLocked, r4.AVCPQ.Mask()|r4.PTPQ.Mask()|r4.DCBCPQ.Mask()|r4.UPQ.Mask()|
		r4.MCBCQ.Mask()|r4.MCBCQEN|r4.TACPQE|r4.TPQC.Of(1), 0)
	add(b, r4.MACRxQCtrl2, loadPlain, storeLocked, queues(min(c.RxQueues, 4), 8, 0xff), 0)
	add(b, r4.MACRxQCtrl3, loadPlain, storeLocked, queues(max(c.RxQueues-4, 0), 8, 0xff), 0)
	add(b, r4.MACInterruptStatus, loadIRQ, storeIgnored, 0, 0)
	enable := r4.RGSMIIIS | r4.PHYIS | 1<<13 | 1<<14
	if c.Timestamp {
		enable |= r4.TSIS
	}
	tic := uint8(storePlain)
	if c.EEE {
		enable |= r4.LPIIS
		tic = storeLocked
	}
	add(b, r4.MACInterruptEnable, loadPlain, storeLine, enable, 0)
	add(b, r4.MAC1USTicCounter, loadPlain, tic, 0xfff, 0x63)
	add(b, r4.MACPHYIFCtrlStatus, loadPlain, storeIgnored, 0, 0)
	add(b, r4.MACVersion, loadPlain, storeIgnored, 0, r4.SNPSVER.Put(r4.USERVER.Of(uint32(c.UserVersion)), uint32(c.Version)))
	add(b, r4.MACDebug, loadLocked, storeIgnored, 0, 0)
	b.features()
	if !c.NoMDIO {
		const bits = r4.MDIOGB | r4.MDIOC45E | r4.MDIOSKAP | r4.MDIOBTB | r4.MDIOPSE
		add(b, r4.MACMDIOAddress, loadLocked, storeLocked, uint32(bits|r4.MDIOGOC.Mask()|r4.MDIOCR.Mask()|r4.MDIONTC.Mask()|
			r4.MDIORDA.Mask()|r4.MDIOPA.Mask()), 0)
		add(b, r4.MACMDIOData, loadLocked, storeLocked, ^uint32(0), 0)
	}

	a := c.Address
	high, low := r4.AE|r4.ADDRHI.Of(0xffff), ^uint32(0)
	if a != [6]byte{} {
		high = r4.AE | r4.ADDRHI.Of(uint32(a[5])<<8|uint32(a[4]))
		low = uint32(a[3])<<24 | uint32(a[2])<<16 | uint32(a[1])<<8 | uint32(a[0])
	}
	for i := range perfectFilters {
		mask := r4.AE | r4.SA | r4.MBC.Mask() | r4.DCS.Mask() | r4.ADDRHI.Mask()
		if i == 0 {
			mask = r4.DCS.Mask() | r4.ADDRHI.Mask() // AE of address 0 is always set
		}
		add(b, r4.MACAddressHigh.At(i, r4.AddressStride), loadPlain, storeLocked, mask, high)
		add(b, r4.MACAddressLow.At(i, r4.AddressStride), loadPlain, storeLocked, ^uint32(0), low)
		high, low = r4.ADDRHI.Of(0xffff), ^uint32(0)
	}
}

// features tells of the model what it does, and of nothing else.
func (b *regMapper) features() {
	c := &b.m.cfg
	fifo := func(n int) uint32 { return uint32(bits.TrailingZeros(uint(n)) - 7) } // 128 << code
	f1 := r4.RXFIFOSIZE.Of(fifo(c.RxFIFO)) | r4.TXFIFOSIZE.Of(fifo(c.TxFIFO)) |
		r4.ADDR64.Of(uint32(c.AddrWidth-32)/8) | r4.HASHTBLSZ.Of(uint32(bits.TrailingZeros(uint(c.HashBins))-5))
	f1 |= r4.L3L4FNUM.Of(uint32(c.L3L4Filters))
	if c.SplitHeader {
		f1 |= r4.SPHEN
	}
	if c.RxQueues > 1 || c.TxQueues > 1 {
		f1 |= r4.DCBEN
	}
	f0 := r4.MIISEL | r4.GMIISEL | r4.HDSEL | r4.MMCSEL | r4.ADDMACADRSEL.Of(r4.MaxAdditional)
	f3 := r4.NRVF.Of(uint32(nrvf(c.VLANFilters)))
	for _, f := range []struct {
		lacks bool
		bit   r4.HWFeature0
	}{{c.NoRxChecksum, r4.RXCOESEL}, {c.NoTxChecksum, r4.TXCOESEL}, {c.NoVLANInsert, r4.SAVLANINS}, {c.NoVLANHash, r4.VLHASH}} {
		if !f.lacks {
			f0 |= f.bit
		}
	}
	if !c.NoMDIO {
		f0 |= r4.SMASEL
	}
	if c.ARPOffload {
		f0 |= r4.ARPOFFSEL
	}
	if c.EEE {
		f0 |= r4.EEESEL
	}
	if c.Timestamp {
		f0 |= r4.TSSEL
	}
	if !c.NoDoubleVLAN {
		f3 |= r4.DVLAN
	}
	if c.TBS {
		f3 |= r4.TBSSEL
	}
	add(b, r4.MACHWFeature0, loadPlain, storeIgnored, 0, f0)
	add(b, r4.MACHWFeature1, loadPlain, storeIgnored, 0, f1)
	rx, tx := uint32(c.RxQueues-1), uint32(c.TxQueues-1)
	add(b, r4.MACHWFeature2, loadPlain, storeIgnored, 0, r4.RXQCNT.Of(rx)|r4.TXQCNT.Of(tx)|r4.RXCHCNT.Of(rx)|r4.TXCHCNT.Of(tx))
	add(b, r4.MACHWFeature3, loadPlain, storeIgnored, 0, f3)
}

// vlan are the VLAN registers. A core with several filters has their number and the
// bits that start an access where one with a single filter has its tag.
func (b *regMapper) vlan() {
	c := &b.m.cfg
	tag := r4.ETV | r4.VTIM | r4.ESVL | r4.ERSVLM | r4.DOVLTC | r4.EVLS.Mask() | r4.EVLRXS
	if !c.NoVLANHash {
		tag |= r4.VTHM
		add(b, r4.MACVLANHash, loadPlain, storeLocked, 0xffff, 0)
	}
	if !c.NoDoubleVLAN {
		tag |= r4.EDVLP | r4.ERIVLT | r4.EIVLS.Mask() | r4.EIVLRXS
	}
	if c.VLANFilters == 1 {
		add(b, r4.MACVLANTag, loadPlain, storeLocked, uint32(tag|r4.VL.Mask()), 0)
	} else {
		data := r4.VID.Mask() | r4.VEN | r4.VETV | r4.VDOVLTC | r4.VERSVLM | r4.DMACHEN | r4.DMACHN.Mask()
		if !c.NoDoubleVLAN {
			data |= r4.VERIVLT
		}
		add(b, r4.MACVLANTag, loadLocked, storeLocked, uint32(tag|r4.VLANOB|r4.VLANCT|r4.VLANOFS.Mask()), 0)
		add(b, r4.MACVLANTagData, loadLocked, storeLocked, data, 0)
	}
	if c.NoVLANInsert {
		return
	}
	incl := r4.VLT.Mask() | r4.VLC.Mask() | r4.VLP | r4.CSVL | r4.VLTI
	add(b, r4.MACVLANIncl, loadPlain, storeLocked, incl, 0)
	if !c.NoDoubleVLAN {
		add(b, r4.MACInnerVLANIncl, loadPlain, storeLocked, incl, 0)
	}
}

// l34 are the layer 3 and layer 4 filters.
func (b *regMapper) l34() {
	const ctrl = r4.L3PEN | r4.L3SAM | r4.L3SAIM | r4.L3DAM | r4.L3DAIM | r4.L4PEN | r4.L4SPM | r4.L4SPIM | r4.L4DPM | r4.L4DPIM
	for n := range b.m.cfg.L3L4Filters {
		add(b, r4.MACL3L4Control.At(n, r4.L3L4Stride), loadPlain, storeLocked, ctrl|r4.L3HSBM.Mask()|r4.L3HDBM.Mask(), 0)
		add(b, r4.MACLayer4Address.At(n, r4.L3L4Stride), loadPlain, storeLocked, ^r4.Layer4Ports(0), 0)
		for i := range 4 {
			add(b, r4.MACLayer3Addr.At(n, r4.L3L4Stride).At(i, 4), loadPlain, storeLocked, ^uint32(0), 0)
		}
	}
}

// ptp are the registers of the system time.
func (b *regMapper) ptp() {
	if !b.m.cfg.Timestamp {
		return
	}
	add(b, r4.MACTimestampControl, loadLocked, storeLocked, r4.TSENA|r4.TSCFUPDT|r4.TSINIT|r4.TSUPDT|r4.TSADDREG|r4.TSENALL|
		r4.TSCTRLSSR|r4.TSVER2ENA|r4.TSIPENA|r4.TSIPV6ENA|r4.TSIPV4ENA|r4.TSEVNTENA|r4.TSMSTRENA|r4.SNAPTYPSEL.Mask()|
		r4.TSENMACADDR, r4.MACTimestampControlReset)
	add(b, r4.MACSubSecondIncrement, loadPlain, storeLocked, r4.SSINC.Mask()|r4.SNSINC.Mask(), 0)
	add(b, r4.MACSystemTimeSec, loadLocked, storeIgnored, 0, 0)
	add(b, r4.MACSystemTimeNs, loadLocked, storeIgnored, 0, 0)
	add(b, r4.MACSystemTimeSecUpdate, loadPlain, storeLocked, ^uint32(0), 0)
	add(b, r4.MACSystemTimeNsUpdate, loadPlain, storeLocked, ^r4.TimeNsUpdate(0), 0)
	add(b, r4.MACTimestampAddend, loadPlain, storeLocked, ^uint32(0), 0)
	add(b, r4.MACTimestampStatus, loadPlain, storeIgnored, 0, 0)
}

// lpi are the registers of Energy Efficient Ethernet.
func (b *regMapper) lpi() {
	if !b.m.cfg.EEE {
		return
	}
	add(b, r4.MACLPIControlStatus, loadLocked, storeLocked, r4.LPIEN|r4.PLS|r4.LPITXA|r4.LPIATE|r4.LPITCSE, 0)
	add(b, r4.MACLPITimersControl, loadPlain, storeLocked, r4.LPITWT.Mask()|r4.LPILST.Mask(), r4.LPITimersReset)
	add(b, r4.MACLPIEntryTimer, loadPlain, storeLocked, r4.LPIEntryMask, 0)
}

func (b *regMapper) mmc() {
	add(b, r4.MMCControl, loadPlain, storeLocked, r4.MMCCntRst|r4.MMCCntStopRO|r4.MMCRstOnRd|r4.MMCCntFreez|
		r4.MMCCntPrst|r4.MMCCntPrstLvl, 0)
	rx, tx := uint32(1)<<mmcRxCount-1, uint32(1)<<mmcTxCount-1
	if b.m.cfg.EEE {
		rx |= r4.MMCLPIUSEC | r4.MMCLPITran
		tx |= r4.MMCLPIUSEC | r4.MMCLPITran
		for i := range mmcLPICount {
			add(b, mmio.Reg[uint32](r4.TxLPIUSEC).At(i, 4), loadLocked, storeIgnored, 0, 0)
		}
	}
	add(b, r4.MMCRxInterrupt, loadPlain, storeIgnored, 0, 0)
	add(b, r4.MMCTxInterrupt, loadPlain, storeIgnored, 0, 0)
	add(b, r4.MMCRxInterruptMask, loadPlain, storeLine, rx, 0)
	add(b, r4.MMCTxInterruptMask, loadPlain, storeLine, tx, 0)
	for i := range mmcTxCount {
		add(b, mmio.Reg[uint32](r4.MMCTxFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
	for i := range mmcRxCount {
		add(b, mmio.Reg[uint32](r4.MMCRxFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
	if b.m.cfg.NoRxChecksum {
		return
	}
	const ipc = uint32(1)<<r4.IPCCount - 1
	add(b, r4.MMCIPCInterruptMask, loadPlain, storeLine, ipc|ipc<<16, 0)
	add(b, r4.MMCIPCInterrupt, loadPlain, storeIgnored, 0, 0)
	for i := range r4.IPCCount {
		add(b, mmio.Reg[uint32](r4.MMCIPCFirst).At(i, 4), loadLocked, storeIgnored, 0, 0)
		add(b, mmio.Reg[uint32](r4.MMCIPCFirst+r4.IPCOctets).At(i, 4), loadLocked, storeIgnored, 0, 0)
	}
}

func (b *regMapper) mtl() {
	c := &b.m.cfg
	add(b, r4.MTLOperationMode, loadPlain, storeLocked, r4.RAA|r4.SCHALG.Mask(), 0)
	add(b, r4.MTLInterruptStatus, loadIRQ, storeIgnored, 0, 0)
	queueMap := func(first int) (v uint32) {
		for q := first; q < min(first+4, c.RxQueues); q++ {
			v |= uint32(r4.RxQDynamic|r4.RxQChannel.Mask()) << ((q - first) * 8)
		}
		return v
	}
	add(b, r4.MTLRxQDMAMap0, loadPlain, storeLocked, queueMap(0), 0)
	add(b, r4.MTLRxQDMAMap1, loadPlain, storeLocked, queueMap(4), 0)
	b.block = idMTL
	for q := range c.channels() {
		b.ch = q
		b.off = c.Layout.MTLBase + uint32(q)*c.Layout.MTLStride
		if q < c.TxQueues {
			en := r4.TXQEN.Of(0)
			if c.TxQueues == 1 {
				en = r4.TXQEN.Of(r4.TXQENEnabled) // only with several queues they start disabled
			}
			add(b, r4.MTLTxQOperationMode, loadPlain, storeLocked, r4.FTQ|r4.TSF|r4.TXQEN.Mask()|r4.TTC.Mask()|
				r4.TQS.Of(uint32(c.TxFIFO/256-1)), en)
			add(b, r4.MTLTxQUnderflow, loadLocked, storeIgnored, 0, 0)
			add(b, r4.MTLTxQDebug, loadLocked, storeIgnored, 0, 0)
			add(b, r4.MTLTxQETSControl, loadPlain, storeIgnored, 0, 0) // credit-based shaping is not there
			add(b, r4.MTLTxQQuantumWeight, loadPlain, storeLocked, r4.ISCQW.Mask(), 0)
		}
		add(b, r4.MTLQInterruptCtrl, loadPlain, storeLine, r4.TXUIE|r4.RXOIE, 0)
		if q < c.RxQueues {
			add(b, r4.MTLRxQOperationMode, loadPlain, storeLocked, r4.RTC.Mask()|r4.FUP|r4.FEP|r4.RSF|r4.DISTCPEF|
				r4.EHFC|r4.RFA.Mask()|r4.RFD.Mask()|r4.RQS.Of(uint32(c.RxFIFO/256-1)), 0)
			add(b, r4.MTLRxQMissedOverflow, loadLocked, storeIgnored, 0, 0)
			add(b, r4.MTLRxQDebug, loadLocked, storeIgnored, 0, 0)
			add(b, r4.MTLRxQControl, loadPlain, storeLocked, r4.RXQWEGT.Mask()|r4.RXQFRMARBIT, 0)
		}
	}
	b.ch, b.off, b.block = 0, 0, 0
}

func (b *regMapper) dma() {
	c := &b.m.cfg
	mode := r4.SWR | r4.INTM.Mask() | 0x781e // arbitration bits have no effect here
	if c.Version >= 0x52 {
		mode |= r4.DCHE
	}
	add(b, r4.DMAMode, loadPlain, storeLocked, mode, 0)
	bus := r4.FB | r4.BLEN4 | r4.BLEN8 | r4.BLEN16 | r4.BLEN32 | r4.BLEN64 | r4.BLEN128 | r4.BLEN256 | r4.AAL | r4.MB |
		r4.LPIXIT | r4.ENLPI | r4.RDOSRLMT.Mask() | r4.WROSRLMT.Mask()
	if c.AddrWidth > 32 {
		bus |= r4.EAME
	}
	add(b, r4.DMASysBusMode, loadPlain, storeLocked, bus, r4.RDOSRLMT.Of(1)|r4.WROSRLMT.Of(1))
	add(b, r4.DMAInterruptStatus, loadIRQ, storeIgnored, 0, 0)
	add(b, r4.DMADebugStatus0, loadLocked, storeIgnored, 0, 0)
	add(b, r4.DMADebugStatus1, loadLocked, storeIgnored, 0, 0)
	add(b, r4.DMADebugStatus2, loadLocked, storeIgnored, 0, 0)

	tx := r4.ST | r4.OSP | r4.TXPBL.Mask() | 0xe
	if c.TBS {
		tx |= r4.EDSE
		add(b, r4.DMATBSControl, loadPlain, storePlain, r4.FTOV|r4.FGOS.Mask()|r4.FTOS.Mask(), 0) // packets are fetched at once
	}
	high := uint32(1)<<(c.AddrWidth-32) - 1
	aligned := ^uint32(c.BusBytes - 1)
	enable := r4.TIE | r4.TXSE | r4.TBUE | r4.RIE | r4.RBUE | r4.RSE | r4.RWTE | r4.ETIE | r4.ERIE | r4.FBEE | r4.CDEE
	if c.Version < 0x41 {
		enable |= r4.AIE400 | r4.NIE400
	} else {
		enable |= r4.AIE | r4.NIE
	}
	riwt := r4.RWTF.Mask()
	if c.Version >= 0x50 {
		riwt |= r4.RWTU.Mask()
	}
	b.block = idDMA
	for ch := range c.channels() {
		b.ch = ch
		b.off = c.Layout.DMABase + uint32(ch)*c.Layout.DMAStride
		ctl := r4.PBLx8 | r4.DSL.Mask()
		if c.SplitHeader && ch < c.RxQueues {
			ctl |= r4.SPH
		}
		add(b, r4.DMACHControl, loadPlain, storeLocked, ctl, 0)
		if ch < c.TxQueues {
			add(b, r4.DMACHTxControl, loadPlain, storeLocked, tx, 0)
			add(b, r4.DMACHTxDescListHAddr, loadPlain, storeLocked, high, 0)
			add(b, r4.DMACHTxDescListAddr, loadPlain, storeLocked, aligned, 0)
			add(b, r4.DMACHTxDescTailPointer, loadPlain, storeTxTail, aligned, 0)
			add(b, r4.DMACHTxDescRingLength, loadPlain, storeLocked, maxRing-1, 0)
			add(b, r4.DMACHCurAppTxDesc, loadLocked, storeIgnored, 0, 0)
			add(b, r4.DMACHCurAppTxBufferH, loadLocked, storeIgnored, 0, 0)
			add(b, r4.DMACHCurAppTxBuffer, loadLocked, storeIgnored, 0, 0)
		}
		if ch < c.RxQueues {
			// The low bits of RBSZ are read-only 0 up to the width of the bus.
			add(b, r4.DMACHRxControl, loadPlain, storeLocked, r4.SR|r4.RBSZ.Of(uint32(aligned))|r4.RXPBL.Mask()|r4.RPF, 0)
			add(b, r4.DMACHRxDescListHAddr, loadPlain, storeLocked, high, 0)
			add(b, r4.DMACHRxDescListAddr, loadPlain, storeLocked, aligned, 0)
			add(b, r4.DMACHRxDescTailPointer, loadPlain, storeRxTail, aligned, 0)
			add(b, r4.DMACHRxDescRingLength, loadPlain, storeLocked, maxRing-1, 0)
			add(b, r4.DMACHRxWatchdogTimer, loadPlain, storeLocked, uint32(riwt), 0)
			add(b, r4.DMACHCurAppRxDesc, loadLocked, storeIgnored, 0, 0)
			add(b, r4.DMACHCurAppRxBufferH, loadLocked, storeIgnored, 0, 0)
			add(b, r4.DMACHCurAppRxBuffer, loadLocked, storeIgnored, 0, 0)
			add(b, r4.DMACHMissFrameCnt, loadLocked, storeIgnored, 0, 0)
		}
		add(b, r4.DMACHInterruptEnable, loadPlain, storeEnable, enable, 0)
		add(b, r4.DMACHStatus, loadStatus, storeStatus, 0, 0)
	}
	b.ch, b.off, b.block = 0, 0, 0
}

// maxRing is the longest ring: the ring length registers have 10 bits.
const maxRing = 1024

const (
	mmcTxCount = int(r4.MMCTxLast-r4.MMCTxFirst)/4 + 1
	mmcRxCount = int(r4.MMCRxLast-r4.MMCRxFirst)/4 + 1
	// The counters of LPI lie behind them: two for each direction.
	mmcLPICount = int(r4.RxLPITran-r4.TxLPIUSEC)/4 + 1
)

// chOff and mtlOff are the offsets of a register of a channel and of a queue.
func chOff[T ~uint32](m *Model, reg mmio.Reg[T], ch int) uint32 {
	return uint32(reg) + m.cfg.Layout.DMABase + uint32(ch)*m.cfg.Layout.DMAStride
}

func mtlOff[T ~uint32](m *Model, reg mmio.Reg[T], q int) uint32 {
	return uint32(reg) + m.cfg.Layout.MTLBase + uint32(q)*m.cfg.Layout.MTLStride
}
