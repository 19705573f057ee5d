package core

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
)

// Filter says which received frames the MAC lets in. The zero value lets in
// frames for the MAC's own address and broadcasts.
//
// An address or a VLAN may stand in its list several times, once for each user
// that wants it: it is let in while it is there at all.
type Filter struct {
	Promiscuous  bool // all frames, whatever else is set
	AllMulticast bool // all multicasts
	NoBroadcast  bool // no broadcasts (MAC_Packet_Filter.DBF)

	Unicast   []net.HardwareAddr // addresses beside the MAC's own
	Multicast []net.HardwareAddr // groups
	// InverseDestination lets in what the addresses do not name: frames for the
	// own address and for those of both lists are the ones that are dropped
	// (MAC_Packet_Filter.DAIF). The lists must fit into the perfect filters then.
	InverseDestination bool

	// Source, if there is one, lets in only frames of these senders, broadcasts
	// too (MAC_Packet_Filter.SAF), or with InverseSource only those of others
	// (SAIF). Each takes one of the perfect filters.
	Source        []net.HardwareAddr
	InverseSource bool

	// VLANs, if there are any, lets in only frames of these VLANs, 0 to 4095,
	// and frames without a tag (MAC_Packet_Filter.VTFE), or with InverseVLAN only
	// those of others (MAC_VLAN_Tag.VTIM).
	VLANs       []uint16
	InverseVLAN bool
}

// maxVID is the largest VLAN identifier of IEEE 802.1Q; 4095 is reserved there,
// but a filter may name it.
const maxVID = 4095

// Check returns an error that is os.ErrInvalid if the filter names something
// that is no address of its kind or no VLAN.
func (f *Filter) Check() error {
	for _, l := range []struct {
		what  string
		addrs []net.HardwareAddr
		ok    func(net.HardwareAddr) bool
	}{
		{"unicast", f.Unicast, IsUnicast},
		{"source", f.Source, IsUnicast},
		{"multicast", f.Multicast, IsMulticast},
	} {
		for _, a := range l.addrs {
			if !l.ok(a) {
				return fmt.Errorf("%v is no %s address of six bytes: %w", a, l.what, os.ErrInvalid)
			}
		}
	}
	for _, v := range f.VLANs {
		if v > maxVID {
			return fmt.Errorf("VLAN %d is not in 0..%d: %w", v, maxVID, os.ErrInvalid)
		}
	}
	if f.InverseSource && len(f.Source) == 0 || f.InverseVLAN && len(f.VLANs) == 0 {
		return fmt.Errorf("an inverse filter without a list: %w", os.ErrInvalid)
	}
	return nil
}

// Clone returns a copy that shares no memory with f.
func (f Filter) Clone() Filter {
	f.Unicast = cloneAddrs(f.Unicast)
	f.Multicast = cloneAddrs(f.Multicast)
	f.Source = cloneAddrs(f.Source)
	f.VLANs = slices.Clone(f.VLANs)
	return f
}

func cloneAddrs(l []net.HardwareAddr) []net.HardwareAddr {
	l = slices.Clone(l)
	for i := range l {
		l[i] = bytes.Clone(l[i])
	}
	return l
}

// IsUnicast says whether a is the address of one station.
func IsUnicast(a net.HardwareAddr) bool {
	return len(a) == 6 && a[0]&1 == 0 && a[0]|a[1]|a[2]|a[3]|a[4]|a[5] != 0
}

// IsMulticast says whether a is the address of a group other than that of all
// stations.
func IsMulticast(a net.HardwareAddr) bool {
	return len(a) == 6 && a[0]&1 != 0 && a[0]&a[1]&a[2]&a[3]&a[4]&a[5] != 0xff
}

// FilterUse says how the device does a [Filter]. What does not fit into its
// perfect filters is filtered less exactly: frames that nobody asked for may
// come in too.
type FilterUse struct {
	Perfect     int  // addresses, of destinations and of sources, with a filter of their own
	Hashed      int  // addresses that share a bin of the hash table with others
	Promiscuous bool // all unicasts come in: there are too many, and no hash table
	// AllMulticast: all multicasts come in, since there are too many and no hash
	// table.
	AllMulticast bool
	VLANs        int // VLANs with a filter of their own
	HashedVLANs  int // VLANs that share one of the 16 bins of the VLAN hash table
}
