package sim

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// perfect is one MAC address filter. Addresses are numbers with the first byte on
// the wire lowest, as in the register pair.
type perfect struct {
	addr, mask uint64
	sa         bool // compared with the source address
	n          uint8
	channel    uint8 // DCS
}

const (
	macMask   = 1<<48 - 1
	groupBit  = 1 // in the first byte of an address
	broadcast = macMask
	// Reserved addresses and types of IEEE 802.3 annex 31A and IEEE 802.1Q.
	pauseAddr    = 0x010000c28001
	typeControl  = 0x8808
	typeSlow     = 0x8809
	typeARP      = 0x0806
	typeVLAN     = 0x8100
	typeSVLAN    = 0x88a8
	typeMin      = 0x0600 // smaller values are lengths
	opPause      = 1
	headerLen    = 14
	vlanLen      = 4
	fcsLen       = 4
	minWire      = 64 // with FCS
	minPadded    = minWire - fcsLen
	maxWithFCS   = 1518
	max2K        = 2000
	maxJumbo     = 9018
	watchdogLen  = 2048
	watchdogLong = 10240
	maxPacket    = 16383
)

func macAddr(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
}

// latchAddress takes over the register pair of address i.
func (m *Model) latchAddress(i int) {
	highOff, lowOff := m.at.address(i)
	high := r4.AddressHigh(m.regs.get(highOff))
	low := m.regs.get(lowOff)
	p := &m.mac.slots[i]
	*p = perfect{n: uint8(i)}
	if high&r4.AE != 0 {
		p.addr = uint64(low) | uint64(r4.ADDRHI.Get(high))<<32
		p.mask = macMask
		p.sa = i > 0 && high&r4.SA != 0
		p.channel = uint8(r4.DCS.Get(high))
		if i > 0 {
			for b, mbc := 0, r4.MBC.Get(high); b < 6; b++ {
				if mbc>>b&1 != 0 {
					// Bit 5 masks the upper byte of the high register, bit 0 the
					// lowest byte of the low one.
					p.mask &^= 0xff << (8 * b)
				}
			}
		}
		p.addr &= p.mask
	}
	m.mac.entries = m.mac.entries[:0]
	for _, p := range m.mac.slots {
		if p.mask != 0 {
			m.mac.entries = append(m.mac.entries, p)
		}
	}
}

// hashBin is the bin of an address: the upper bits of the bit-reversed CRC-32
// (databook: MAC_Hash_Table_Reg).
func hashBin(addr []byte, bins int) int {
	n := bits.TrailingZeros(uint(bins))
	return int(bits.Reverse32(crc32.ChecksumIEEE(addr[:6])) >> (32 - n))
}

// filterAddress is the address filter (databook: MAC_Packet_Filter). It returns the
// filter bits of RDES2 and the DMA channel of the address that matched.
func (s *macState) filterAddress(data []byte) (pass bool, d2 r4.RDES2, channel uint8) {
	f := s.filter
	dst := macAddr(data)
	switch {
	case dst == broadcast:
		pass = f&r4.DBF == 0
	default:
		match, hash := false, false
		for i := range s.entries {
			if p := &s.entries[i]; !p.sa && dst&p.mask == p.addr {
				match = true
				channel = p.channel
				d2 = r4.MADRM.Of(uint32(p.n))
				break
			}
		}
		useHash := r4.HUC
		if dst&groupBit != 0 {
			useHash = r4.HMC
		}
		if f&useHash != 0 && !match {
			bin := hashBin(data, s.bins)
			hash = s.hash[bin/32]>>(bin%32)&1 != 0
			if hash {
				d2 = r4.HF | r4.MADRM.Of(uint32(bin))
			}
		}
		switch {
		case dst&groupBit != 0 && f&r4.PM != 0:
			pass = true
		case f&useHash == 0:
			pass = match != (f&r4.DAIF != 0)
		case f&r4.HPF != 0:
			pass = match || hash
		default:
			// The hash alone decides; a perfect match was only looked for to
			// spare the CRC.
			pass = hash
			if match {
				bin := hashBin(data, s.bins)
				pass = s.hash[bin/32]>>(bin%32)&1 != 0
			}
		}
	}
	if !pass {
		d2 |= r4.DAFFail
	}
	if f&r4.SAF != 0 {
		src, match := macAddr(data[6:]), false
		for i := range s.entries {
			if p := &s.entries[i]; p.sa && src&p.mask == p.addr {
				match = true
				break
			}
		}
		if match == (f&r4.SAIF != 0) {
			d2 |= r4.SAFFail
			pass = false
		}
	}
	return pass || f&r4.PR != 0, d2, channel
}
