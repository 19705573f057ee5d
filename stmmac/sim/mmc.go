package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mmcHalf is where a counter raises its interrupt first; it does so again when it wraps.
const mmcHalf = 1 << 31

// Presets of CNTPRST (databook: MMC_Control): 2 KiB for octets, 16 for packets
// short of half or, with CNTPRSTLVL, of full.
const (
	mmcPresetOctets  = 0x800
	mmcPresetPackets = 0x10
)

// mmc and setMMC access a register of the MMC block, which is the same in all
// generations but for its place; its registers are named by their offsets in GMAC4.
func (m *Model) mmc(off uint32) uint32 { return m.regs.get(off - m.at.mmc) }

func (m *Model) setMMC(off, v uint32) { m.regs.set(off-m.at.mmc, v) }

// countMMC adds n to a counter.
func (m *Model) countMMC(off uint32, n uint32) {
	word := &m.regs.word[(off-m.at.mmc)/4]
	v := *word
	sum := v + n
	if (v^sum)&mmcHalf == 0 && sum >= v && !m.mmcSpecial {
		*word = sum
		return
	}
	ctl := r4.MMCCtrl(m.mmc(uint32(r4.MMCControl)))
	if ctl&r4.MMCCntFreez != 0 {
		return
	}
	if sum < v && ctl&r4.MMCCntStopRO != 0 {
		sum = ^uint32(0)
	}
	*word = sum
	if (v^sum)&mmcHalf != 0 {
		reg, bit := mmcInterrupt(off)
		m.setMMC(reg, m.mmc(reg)|bit)
		m.raiseShared()
	}
}

// mmcInterrupt is the interrupt register and bit of a counter.
func mmcInterrupt(off uint32) (reg, bit uint32) {
	if off >= r4.MMCIPCFirst {
		return uint32(r4.MMCIPCInterrupt), 1 << ((off - r4.MMCIPCFirst) / 4)
	}
	if off >= r4.TxLPIUSEC {
		n := (off - r4.TxLPIUSEC) / 4
		if n >= 2 {
			return uint32(r4.MMCRxInterrupt), r4.MMCLPIUSEC << (n - 2)
		}
		return uint32(r4.MMCTxInterrupt), r4.MMCLPIUSEC << n
	}
	if off >= r4.MMCRxFirst {
		return uint32(r4.MMCRxInterrupt), 1 << ((off - r4.MMCRxFirst) / 4)
	}
	return uint32(r4.MMCTxInterrupt), 1 << ((off - r4.MMCTxFirst) / 4)
}

// loadMMC is the load of a counter.
func (m *Model) loadMMC(off uint32) uint32 {
	v := m.mmc(off)
	reg, bit := mmcInterrupt(off)
	if i := m.mmc(reg); i&bit != 0 {
		m.setMMC(reg, i&^bit)
		m.raiseShared()
	}
	if r4.MMCCtrl(m.mmc(uint32(r4.MMCControl)))&r4.MMCRstOnRd != 0 {
		m.setMMC(off, 0)
	}
	return v
}

// mmcControl is a store to MMC_Control. A reset wins over a preset.
func (m *Model) mmcControl(v r4.MMCCtrl) {
	m.setMMC(uint32(r4.MMCControl), uint32(v&^(r4.MMCCntRst|r4.MMCCntPrst)))
	m.mmcSpecial = v&(r4.MMCCntFreez|r4.MMCCntStopRO) != 0
	if v&(r4.MMCCntRst|r4.MMCCntPrst) == 0 {
		return
	}
	preset := func(first uint32, n int) {
		for i := range uint32(n) {
			off := first + 4*i
			switch level := uint32(mmcHalf); {
			case v&r4.MMCCntRst != 0:
				m.setMMC(off, 0)
			default:
				if v&r4.MMCCntPrstLvl != 0 {
					level = 0
				}
				short := uint32(mmcPresetPackets)
				switch {
				case off == r4.TxOctetCountGoodBad, off == r4.TxOctetCountGood, off == r4.RxOctetCountGoodBad,
					off == r4.RxOctetCountGood, off >= r4.MMCIPCFirst+r4.IPCOctets:
					short = mmcPresetOctets
				}
				m.setMMC(off, level-short)
			}
		}
	}
	preset(r4.MMCTxFirst, mmcTxCount)
	preset(r4.MMCRxFirst, mmcRxCount)
	if m.cfg.EEE {
		m.countLPI()
		preset(r4.TxLPIUSEC, mmcLPICount)
	}
	if !m.cfg.NoRxChecksum {
		preset(r4.MMCIPCFirst, r4.IPCCount)
		preset(r4.MMCIPCFirst+r4.IPCOctets, r4.IPCCount)
	}
}

// sizeBin is the place of a frame, counted with its FCS, among the six counters of
// frame sizes; frames shorter than 64 bytes have none.
func sizeBin(n int) (uint32, bool) {
	switch {
	case n < 64:
		return 0, false
	case n == 64:
		return 0, true
	case n < 128:
		return 4, true
	case n < 256:
		return 8, true
	case n < 512:
		return 12, true
	case n < 1024:
		return 16, true
	}
	return 20, true
}

// countRx counts a frame that passed the filters.
func (m *Model) countRx(f *rxMeta) {
	n := uint32(f.wire)
	m.countMMC(r4.RxPacketsCountGoodBad, 1)
	m.countMMC(r4.RxOctetCountGoodBad, n)
	if b, ok := sizeBin(f.wire); ok {
		m.countMMC(r4.Rx64OctetsPacketsGoodBad+b, 1)
	}
	if f.tagged {
		m.countMMC(r4.RxVLANPacketsGoodBad, 1)
	}
	switch {
	case f.d3&r4.RxRWT != 0:
		m.countMMC(r4.RxWatchdogErrorPackets, 1)
		return
	case f.bad && f.wire < minWire:
		m.countMMC(r4.RxCRCErrorPackets, 1)
		m.countMMC(r4.RxRuntErrorPackets, 1)
		return
	case f.bad:
		m.countMMC(r4.RxCRCErrorPackets, 1)
		if f.d3&r4.RxGP != 0 {
			m.countMMC(r4.RxJabberErrorPackets, 1)
		}
		return
	case f.wire < minWire:
		m.countMMC(r4.RxUndersizePacketsGood, 1)
	case f.d3&r4.RxGP != 0:
		m.countMMC(r4.RxOversizePacketsGood, 1)
	}
	m.countMMC(r4.RxOctetCountGood, n)
	m.countIPC(&f.check)
	switch f.class {
	case classUnicast:
		m.countMMC(r4.RxUnicastPacketsGood, 1)
	case classMulticast:
		m.countMMC(r4.RxMulticastPacketsGood, 1)
	default:
		m.countMMC(r4.RxBroadcastPacketsGood, 1)
	}
	if r4.RxLT.Get(f.d3) == ltControl {
		m.countMMC(r4.RxControlPacketsGood, 1)
		if f.pause {
			m.countMMC(r4.RxPausePackets, 1)
		}
	}
}

// countTx counts a frame that left; good is false for one that was cut.
func (m *Model) countTx(data []byte, wire int, good bool) {
	n := uint32(wire)
	m.countMMC(r4.TxOctetCountGoodBad, n)
	m.countMMC(r4.TxPacketCountGoodBad, 1)
	if b, ok := sizeBin(wire); ok {
		m.countMMC(r4.Tx64OctetsPacketsGoodBad+b, 1)
	}
	all, only := r4.TxUnicastPacketsGoodBad, uint32(0)
	if len(data) >= 6 && data[0]&groupBit != 0 {
		all, only = r4.TxMulticastPacketsGoodBad, r4.TxMulticastPacketsGood
		if macAddr(data) == broadcast {
			all, only = r4.TxBroadcastPacketsGoodBad, r4.TxBroadcastPacketsGood
		}
	}
	m.countMMC(all, 1)
	if !good {
		return
	}
	m.countMMC(r4.TxOctetCountGood, n)
	m.countMMC(r4.TxPacketCountGood, 1)
	if only != 0 {
		m.countMMC(only, 1)
	}
	if len(data) < headerLen {
		return
	}
	switch uint32(data[12])<<8 | uint32(data[13]) {
	case typeVLAN, typeSVLAN:
		m.countMMC(r4.TxVLANPacketsGood, 1)
	case typeControl:
		if isPause(data) {
			m.countMMC(r4.TxPausePackets, 1)
		}
	}
	if wire > m.mac.giant {
		m.countMMC(r4.TxOsizePacketsGood, 1)
	}
}
