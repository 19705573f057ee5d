package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// macState is what the registers of the MAC and the receive routing say, in the
// form that the data path needs.
type macState struct {
	conf    r4.Configuration
	filter  r4.PacketFilter
	vlan    r4.VLANTag
	tags    vlanState
	l34     l34State
	arp     arpState
	split   splitState
	slots   [perfectFilters]perfect
	entries []perfect // those of slots that are enabled
	hash    [r4.HashWords]uint32
	bins    int

	watchdog int // longest received frame, with FCS
	giant    int // longest frame that is not a giant, with FCS and without tag
	jabber   int // longest transmitted frame, with FCS

	routed bool // frames do not all go to queue 0
	route  r4.RxQCtrl1
	failQ  r4.RxQCtrl4
	byPCP  [8]uint8 // queue by VLAN priority
}

// derive recomputes the state from the registers.
func (m *Model) derive() {
	s := &m.mac
	s.conf = r4.Configuration(m.regs.get(uint32(r4.MACConfiguration)))
	s.filter = r4.PacketFilter(m.regs.get(uint32(r4.MACPacketFilter)))
	m.deriveVLAN()
	m.deriveL34()
	m.deriveARP()
	m.deriveSplit()
	s.bins = m.cfg.HashBins
	for i := range m.cfg.HashBins / 32 {
		s.hash[i] = m.regs.get(uint32(r4.MACHashTable.At(i, 4)))
	}

	long := watchdogLen
	if s.conf&r4.JE != 0 {
		long = watchdogLong
	}
	s.jabber = long
	if s.conf&r4.JD != 0 {
		s.jabber = maxPacket
	}
	s.watchdog = long
	wt := r4.WatchdogTimeout(m.regs.get(uint32(r4.MACWatchdogTimeout)))
	switch {
	case s.conf&r4.WD != 0:
		s.watchdog = maxPacket
	case wt&r4.PWE != 0:
		s.watchdog = min(2048+1024*int(r4.WTO.Get(wt)), maxPacket)
	}
	switch {
	case s.conf&r4.JE != 0:
		s.giant = maxJumbo
	case s.conf&r4.S2KP != 0:
		s.giant = max2K
	case s.conf&r4.GPSLCE != 0:
		s.giant = max(int(m.regs.get(uint32(r4.MACExtConfiguration))&r4.ExtGPSL), maxWithFCS)
	default:
		s.giant = maxWithFCS
	}

	s.route = r4.RxQCtrl1(m.regs.get(uint32(r4.MACRxQCtrl1)))
	s.byPCP = [8]uint8{}
	s.failQ = r4.RxQCtrl4(m.regs.get(uint32(r4.MACRxQCtrl4)))
	s.routed = s.route != 0 || s.failQ&(r4.UFFQE|r4.MFFQE|r4.VFFQE) != 0
	enable := m.regs.get(uint32(r4.MACRxQCtrl0))
	for q := range m.rxq {
		word, dmaMap := r4.MACRxQCtrl2, r4.MTLRxQDMAMap0
		if q >= 4 {
			word, dmaMap = r4.MACRxQCtrl3, r4.MTLRxQDMAMap1
		}
		prio := m.regs.get(uint32(word)) >> (q % 4 * 8) & 0xff
		for p := range s.byPCP {
			if prio>>p&1 != 0 {
				s.byPCP[p] = uint8(q)
				s.routed = s.routed || q != 0
			}
		}
		x := &m.rxq[q]
		x.enabled = enable>>(2*q)&3 != r4.RxQDisabled
		qm := r4.MTLRxQMap(m.regs.get(uint32(dmaMap)) >> (q % 4 * 8))
		x.channel, x.dynamic = uint8(r4.RxQChannel.Get(qm)), qm&r4.RxQDynamic != 0
	}
	m.deriveSched()
	m.deriveFlow()
	m.gate()
}

// rxMeta is what the MAC says of a received frame.
type rxMeta struct {
	d0    uint32   // VLAN tags
	check rxCheck  // of the checksum engine
	d2    r4.RDES2 // filter status
	d3    r4.RDES3 // length/type and error bits, RS0V
	// failed are the fail bits of the address filter; d2 has them too, but for PR.
	failed r4.RDES2
	n      int // bytes that go to memory, without FCS
	cutAt  int // place and length of the tags that do not go there
	cut    int
	wire   int  // bytes on the wire, with FCS
	fcs    int  // bytes of the FCS that go to memory behind them
	bad    bool // the FCS is wrong
	queue  uint8
	ch     uint8
	class  uint8 // of the destination
	// header is the length in memory of what is split off, 0 for nothing.
	header uint16

	tagged  bool
	pause   bool
	request bool // of ARP, with the offload enabled
}

// Classes of destination addresses.
const (
	classUnicast = iota
	classMulticast
	classBroadcast
)

// rxErrors are the bits that ES sums up (databook: RDES3, ES). The errors of the
// checksum engine, IPHE and IPCE, are not among them (databook: RDES1, IPCE): a frame
// that has no others goes to software with ES clear.
const rxErrors = r4.RxDE | r4.RxRE | r4.RxOE | r4.RxRWT | r4.RxGP | r4.RxCE

// rxFate is what becomes of a frame.
type rxFate int

const (
	fateKeep     rxFate = iota
	fateFiltered        // address, VLAN, layer 3 and 4 or control packet filter
	fateError           // error or runt that the queue does not forward
	fateQueue           // the queue is disabled or has no channel
)

// Length/type codes of RDES3.
const (
	ltLength  = 0
	ltType    = 1
	ltARP     = 3 // a request, with the offload enabled
	ltVLAN    = 4
	ltVLAN2   = 5
	ltControl = 6
	ltOAM     = 7
)

// classify decides what the MAC does with a frame from the wire.
func (m *Model) classify(data []byte, bad bool, f *rxMeta) rxFate {
	s := &m.mac
	*f = rxMeta{n: len(data), wire: len(data) + fcsLen, fcs: fcsLen, bad: bad}
	if len(data) < headerLen {
		return fateError
	}
	pass, d2, daChannel := s.filterAddress(data)
	f.d2, f.failed = d2, d2&(r4.DAFFail|r4.SAFFail)
	if s.filter&r4.PR != 0 {
		f.d2 &^= f.failed // databook: MAC_Packet_Filter, PR
	}
	if data[0]&groupBit != 0 {
		f.class = classMulticast
		if macAddr(data) == broadcast {
			f.class = classBroadcast
		}
	}
	etype := uint32(binary.BigEndian.Uint16(data[12:]))
	tagged, giant := false, s.giant
	lt := uint32(ltType)
	tag := uint32(0)
	switch {
	case etype < typeMin:
		lt = ltLength
	case (etype == typeVLAN || etype == typeSVLAN && s.vlan&r4.ESVL != 0) && len(data) >= headerLen+vlanLen:
		lt, tagged, f.tagged = ltVLAN, true, true
		tag = uint32(binary.BigEndian.Uint16(data[14:]))
		if s.conf&(r4.JE|r4.S2KP) != r4.S2KP {
			giant += vlanLen
		}
		if inner := binary.BigEndian.Uint16(data[16:]); inner == typeVLAN || inner == typeSVLAN && s.vlan&r4.ESVL != 0 {
			lt = ltVLAN2
		}
	case s.arp.on && isARPRequest(data):
		lt, f.request = ltARP, true
	case etype == typeSlow:
		lt = ltOAM
	case etype == typeControl:
		lt, f.pause = ltControl, m.pauseForUs(data)
		f.d3 = r4.RxLT.Of(ltControl)
		switch r4.PCF.Get(s.filter) {
		case 0:
			pass = false
		case 1:
			pass = !f.pause
		case 2:
			pass = true
		}
	}
	var vlan vlanFate
	if tagged {
		vlan = m.filterVLAN(data)
		f.d2 |= vlan.status
		pass = pass && (!vlan.fails || s.filter&r4.VTFE == 0)
	}
	if s.l34.active {
		fails, status := s.filterL34(data)
		f.d2 |= status
		pass = pass && !fails
	}
	if !pass && s.filter&r4.RA == 0 {
		return fateFiltered
	}
	f.d3 = r4.RxLT.Of(lt)
	if tagged {
		s.stripVLAN(&vlan, f)
	}

	f.queue, f.ch = s.queue(data, f, tag), 0
	if int(f.queue) >= len(m.rxq) {
		return fateQueue
	}
	q := &m.rxq[f.queue]
	f.ch = q.channel
	if q.dynamic {
		f.ch = daChannel
		if vlan.routed {
			f.ch = vlan.channel
		}
	}

	if f.wire > giant {
		f.d3 |= r4.RxGP
	}
	if bad {
		f.d3 |= r4.RxCE
	}
	switch {
	case f.wire > s.watchdog:
		// The rest is cut off.
		f.d3 |= r4.RxRWT
		f.n = min(s.watchdog, len(data))
		f.fcs = s.watchdog - f.n
	case lt == ltLength && s.conf&r4.ACS != 0:
		f.fcs = 0
		f.n = min(f.n, headerLen+int(etype))
	case lt != ltLength && s.conf&r4.CST != 0:
		f.fcs = 0
	}
	if s.conf&r4.IPC != 0 {
		f.check = s.checkRx(data[:min(f.n, len(data))])
		f.d3 |= r4.RxRS1V
	}
	whole := data[:min(f.n, len(data))]
	f.n -= f.cut
	if int(f.ch) < len(m.rx) && m.rx[f.ch].sph {
		f.header = uint16(s.headerLength(whole, f))
	}
	drop := !q.fep && f.d3&(r4.RxCE|r4.RxRWT|r4.RxRE|r4.RxOE|r4.RxDE) != 0 ||
		f.wire < minWire && !q.fup && !bad || q.dropsChecksum(&f.check)
	if drop && (q.storeForward || f.wire < q.threshold) {
		return fateError
	}
	if !q.enabled || int(f.ch) >= m.cfg.RxQueues {
		return fateQueue
	}
	if f.d3&rxErrors != 0 {
		f.d3 |= r4.RxES
	}
	return fateKeep
}

func isPause(data []byte) bool {
	return len(data) >= headerLen+2 && macAddr(data) == pauseAddr && binary.BigEndian.Uint16(data[14:]) == opPause
}
