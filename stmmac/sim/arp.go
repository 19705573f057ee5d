package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// arpState is the ARP offload (databook: IPv4 ARP Offload, MAC_ARP_Address): the MAC
// answers requests for one IPv4 address by itself, one at a time, and hands them to
// software all the same.
type arpState struct {
	on      bool
	address uint32
	waiting bool // frame has to be sent
	frame   [minPadded]byte
}

// Offsets in an ARP packet for IPv4 over Ethernet (RFC 826) and its length.
const (
	arpOperation  = 6
	arpSenderMAC  = 8
	arpSenderIPv4 = 14
	arpTargetMAC  = 18
	arpTargetIPv4 = 24
	arpLen        = 28

	arpReplies = 2
)

// arpHead are the first bytes of a request: Ethernet, IPv4, the lengths of their
// addresses and the operation.
const arpHead = 0x0001_0800_0604_0001

// deriveARP takes the registers of the offload over.
func (m *Model) deriveARP() {
	a := &m.mac.arp
	was := a.on
	a.on = m.mac.conf&r4.ARPEN != 0
	if a.address = m.regs.get(uint32(r4.MACARPAddress)); a.on && !was && a.address == 0 {
		m.report(Violation{Kind: ConfigInvalid, Channel: -1, Index: -1}, "ARPEN with 0 in MAC_ARP_Address")
	}
	a.waiting = a.waiting && a.on
}

// isARPRequest says whether an untagged frame is a request that the offload knows.
func isARPRequest(data []byte) bool {
	return len(data) >= headerLen+arpLen && binary.BigEndian.Uint16(data[headerLen-2:]) == typeARP &&
		binary.BigEndian.Uint64(data[headerLen:]) == arpHead
}

// asks says whether a good request that the address filter let through is for the
// offload: sent to all or to this MAC, and for its IPv4 address.
func (a *arpState) asks(data []byte, f *rxMeta) bool {
	return f.request && !f.bad && f.class != classMulticast && f.failed&r4.DAFFail == 0 &&
		binary.BigEndian.Uint32(data[headerLen+arpTargetIPv4:]) == a.address
}

// acceptARP is accept for a request that is to be answered. One that comes while the last
// reply waits is not, and its status says so.
func (m *Model) acceptARP(f *rxFrame, budget int, wait bool) (used int, taken bool) {
	data, busy := f.data, m.mac.arp.waiting
	if busy {
		f.meta.d2 |= r4.ARPNR
	}
	if used, taken = m.gen.accept(f, budget, wait); taken && !busy {
		m.answer(data)
	}
	return used, taken
}

// answer makes the reply to a request.
func (m *Model) answer(data []byte) {
	a := &m.mac.arp
	a.waiting = true
	q, b := data[headerLen:], a.frame[:]
	clear(b)
	mac := m.appendAddress(nil, 0)
	copy(b, q[arpSenderMAC:arpSenderIPv4])
	copy(b[6:], mac)
	binary.BigEndian.PutUint16(b[headerLen-2:], typeARP)
	r := b[headerLen:]
	copy(r, q[:arpOperation])
	binary.BigEndian.PutUint16(r[arpOperation:], arpReplies)
	copy(r[arpSenderMAC:], mac)
	binary.BigEndian.PutUint32(r[arpSenderIPv4:], a.address)
	copy(r[arpTargetMAC:], q[arpSenderMAC:arpTargetMAC])
}

// stepARP sends the reply that waits and returns 1 if it did.
func (m *Model) stepARP() int {
	a := &m.mac.arp
	if !a.waiting || m.mac.conf&r4.TE == 0 || m.clockGated() || m.paused() || m.lpiSilent() {
		return 0
	}
	// In loopback the reply comes in before the MAC is done with it.
	sent, _ := m.emit(Frame{Data: a.frame[:]})
	if !sent {
		return 0
	}
	a.waiting = false
	m.countTx(a.frame[:], minWire, true)
	m.stats.TxARP++
	return 1
}
