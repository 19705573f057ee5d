package core

import (
	"encoding/binary"

	"github.com/gostmmac/gostmmac/pagepool"
)

// TPIDs of VLAN tags.
const (
	tpidCustomer = 0x8100 // IEEE 802.1Q
	tpidService  = 0x88a8 // IEEE 802.1ad
)

// MaxTags is the length of the tags that can be beside a frame in bytes.
const MaxTags = 2 * VLANTagLen

// tagsLen is the length in bytes of the tags that are beside a frame.
func tagsLen(m *pagepool.Meta) int {
	switch {
	case m.Flags&pagepool.VLANTag == 0:
		return 0
	case m.Flags&pagepool.InnerVLANTag != 0:
		return 2 * VLANTagLen
	}
	return VLANTagLen
}

// PutTags writes the tags that are beside a frame to p, as they stand between its
// addresses and its type, and returns their length: 0, 4 or 8 bytes.
func PutTags(p []byte, m *pagepool.Meta) int {
	n, tpid := tagsLen(m), uint16(tpidCustomer)
	if m.Flags&pagepool.VLANService != 0 {
		tpid = tpidService
	}
	if n > 0 {
		putTag(p, tpid, m.VLAN)
	}
	if n > VLANTagLen {
		putTag(p[VLANTagLen:], tpidCustomer, m.InnerVLAN)
	}
	return n
}

func putTag(p []byte, tpid, tci uint16) {
	binary.BigEndian.PutUint16(p, tpid)
	binary.BigEndian.PutUint16(p[2:], tci)
}
