package gmac4

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"net"
	"slices"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// slot is what a perfect filter compares; the zero value compares nothing.
type slot struct {
	addr   [6]byte
	source bool // with the sender's address
}

// filterState is what the registers of the address filter hold.
type filterState struct {
	slots []slot // of MAC_Address1 on
	hash  [gmac4reg.HashWords]uint32
	ctrl  gmac4reg.PacketFilter
	// fresh: the device was reset, and only the hash table was written since.
	fresh bool
}

// Bits of MAC_Packet_Filter that let frames in, and those that keep frames out.
const (
	permissive  = gmac4reg.PR | gmac4reg.PM | gmac4reg.HUC | gmac4reg.HMC | gmac4reg.HPF
	restrictive = gmac4reg.DBF | gmac4reg.DAIF | gmac4reg.SAF | gmac4reg.SAIF | gmac4reg.VTFE
)

// resetFilter notes that the filter registers have their reset values.
func (h *HW) resetFilter() {
	h.filter = filterState{slots: make([]slot, h.feat.PerfectFilters), fresh: true}
	h.vlan = vlanState{vids: make([]int, h.feat.VLANFilters)}
	for i := range h.vlan.vids {
		h.vlan.vids[i] = vidNone
	}
}

// SetFilter implements core.Hardware. After each store the device lets in at
// least what both the filter before and that after let in: an entry of both
// stays where it is, or has its new place before it loses the old one.
func (h *HW) SetFilter(f core.Filter) (core.FilterUse, error) {
	if err := f.Check(); err != nil {
		return core.FilterUse{}, h.fail("set filter", "", 0, err)
	}
	want, use, err := h.planFilter(&f)
	if err != nil {
		return use, h.fail("set filter", "", 0, err)
	}
	vlan, err := h.planVLANs(&f, &use)
	if err != nil {
		return use, h.fail("set filter", "", 0, err)
	}
	have := &h.filter
	both := have.hash
	for i, w := range want.hash {
		both[i] |= w
	}
	h.storeHash(both)
	if !have.fresh { // else the receiver is still off
		h.storePacketFilter(between(have.ctrl, want.ctrl, vlan.sameKind(&h.vlan)))
	}
	// First of the rest what can fail: until here nothing was taken away.
	if err := h.setVLANs(vlan); err != nil {
		h.storePacketFilter(have.ctrl &^ gmac4reg.VTFE)
		return use, err
	}
	h.storeSlots(want.slots)
	h.storePacketFilter(want.ctrl)
	h.storeHash(want.hash)
	have.fresh = false
	// The read flushes the stores: the filter is in force when this returns.
	if v := gmac4reg.MACPacketFilter.Load(h.csr); uint32(v) == mmio.AllOnes {
		return use, h.fail("set filter", "MAC_Packet_Filter", uint32(v), core.ErrGone)
	}
	return use, nil
}

// between is the filter while the tables change from those of a to those of b.
// sameVLANs says that the VLAN filter works the same way in both, so that its
// tables may change while it is on.
func between(a, b gmac4reg.PacketFilter, sameVLANs bool) gmac4reg.PacketFilter {
	v := (a|b)&permissive | a&b&restrictive
	if (a^b)&gmac4reg.DAIF != 0 {
		// What the one names is what the other does not.
		v |= gmac4reg.PR
	}
	if (a^b)&gmac4reg.SAIF != 0 {
		v &^= gmac4reg.SAF | gmac4reg.SAIF
	}
	if !sameVLANs {
		v &^= gmac4reg.VTFE
	}
	return v
}

// planFilter says what the address filter shall hold for f: perfect filters
// while they suffice, the hash table for what goes beyond, and all frames of a
// kind where there is none.
func (h *HW) planFilter(f *core.Filter) (filterState, core.FilterUse, error) {
	want := filterState{slots: make([]slot, len(h.filter.slots))}
	var use core.FilterUse
	var in []slot
	sources, unicasts, multicasts := slots(f.Source, true), slots(f.Unicast, false), slots(f.Multicast, false)
	room := len(want.slots)
	if len(sources) > room {
		return want, use, fmt.Errorf("%d source addresses, and the device has %d perfect filters: %w",
			len(sources), room, errors.ErrUnsupported)
	}
	if len(sources) > 0 {
		in = append(in, sources...)
		want.ctrl |= gmac4reg.SAF
		if f.InverseSource {
			want.ctrl |= gmac4reg.SAIF
		}
	}
	if f.InverseDestination {
		if n := len(unicasts) + len(multicasts); len(in)+n > room {
			return want, use, fmt.Errorf("an inverse filter of %d addresses beside %d sources, and the device has %d perfect filters: %w",
				n, len(in), room, errors.ErrUnsupported)
		}
		want.ctrl |= gmac4reg.DAIF
	}
	if f.AllMulticast {
		want.ctrl |= gmac4reg.PM
	}
	if f.NoBroadcast {
		want.ctrl |= gmac4reg.DBF
	}

	// take gives addresses a perfect filter, or bins of the hash table.
	take := func(list []slot, useHash gmac4reg.PacketFilter) bool {
		n := min(len(list), room-len(in))
		if n < len(list) && h.feat.HashBins == 0 {
			return false
		}
		in = append(in, list[:n]...)
		for _, s := range list[n:] {
			bin := hashBin(s.addr, h.feat.HashBins)
			want.hash[bin/32] |= 1 << (bin % 32)
			// Without HPF the hash table alone would decide, about the MAC's own
			// address too.
			want.ctrl |= useHash | gmac4reg.HPF
			use.Hashed++
		}
		return true
	}
	if !take(unicasts, gmac4reg.HUC) {
		use.Promiscuous = true
		want.ctrl |= gmac4reg.PR
	}
	if !f.AllMulticast && !take(multicasts, gmac4reg.HMC) {
		use.AllMulticast = true
		want.ctrl |= gmac4reg.PM
	}
	use.Perfect = len(in)
	want.slots = assign(h.filter.slots, in, slot{})

	if len(f.VLANs) > 0 && !f.Promiscuous {
		want.ctrl |= gmac4reg.VTFE
	}
	if f.Promiscuous {
		want.ctrl |= gmac4reg.PR
	}
	return want, use, nil
}

// slots are the different addresses of a list, in its order.
func slots(l []net.HardwareAddr, source bool) []slot {
	var out []slot
	seen := map[slot]bool{}
	for _, a := range l {
		s := slot{[6]byte(a), source}
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// assign places the wanted entries in a table as large as have, which has room
// for them: what is there already stays where it is, the others take what is
// free, then the places of those that go.
func assign[T comparable](have, want []T, free T) []T {
	out := make([]T, len(have))
	for i, e := range have {
		out[i] = free
		if e != free && slices.Contains(want, e) && !slices.Contains(out[:i], e) {
			out[i] = e
		}
	}
	for _, e := range want {
		if slices.Contains(out, e) {
			continue
		}
		at := -1
		for i := range out {
			if out[i] == free && (at < 0 || have[at] != free && have[i] == free) {
				at = i
			}
		}
		out[at] = e
	}
	return out
}

// hashBin is the bin of an address in a hash table. Databook:
// MAC_Hash_Table_Reg0, the upper bits of the bit-reversed CRC-32 of the address
// as it stands on the wire.
func hashBin(a [6]byte, bins int) int {
	return int(bits.Reverse32(crc32.ChecksumIEEE(a[:])) >> (33 - bits.Len(uint(bins))))
}

func (h *HW) storeHash(words [gmac4reg.HashWords]uint32) {
	for i := range h.feat.HashBins / 32 {
		if words[i] != h.filter.hash[i] {
			gmac4reg.MACHashTable.At(i, 4).Store(h.csr, words[i])
			h.filter.hash[i] = words[i]
		}
	}
}

func (h *HW) storePacketFilter(v gmac4reg.PacketFilter) {
	// After a reset it is written whatever it should hold: on some devices it
	// blocks broadcasts then.
	if v != h.filter.ctrl || h.filter.fresh {
		gmac4reg.MACPacketFilter.Store(h.csr, v)
		h.filter.ctrl = v
	}
}

// storeSlots writes the perfect filters that change, or all after a reset.
func (h *HW) storeSlots(want []slot) {
	for i := range want {
		if want[i] == h.filter.slots[i] && !h.filter.fresh {
			continue
		}
		var high gmac4reg.AddressHigh
		if s := want[i]; s != (slot{}) {
			high = gmac4reg.AE
			if s.source {
				high |= gmac4reg.SA
			}
		}
		h.storeAddress(1+i, high, want[i].addr)
		h.filter.slots[i] = want[i]
	}
}

// storeAddress writes address register pair i, which takes effect with its low
// half.
func (h *HW) storeAddress(i int, high gmac4reg.AddressHigh, a [6]byte) {
	gmac4reg.MACAddressHigh.At(i, gmac4reg.AddressStride).Store(h.csr, high|gmac4reg.ADDRHI.Of(uint32(a[5])<<8|uint32(a[4])))
	gmac4reg.MACAddressLow.At(i, gmac4reg.AddressStride).Store(h.csr, uint32(a[3])<<24|uint32(a[2])<<16|uint32(a[1])<<8|uint32(a[0]))
}

// SetAddr implements core.Hardware.
func (h *HW) SetAddr(a net.HardwareAddr) error {
	h.storeAddress(0, gmac4reg.AE, [6]byte(a))
	// The read flushes the stores: the address is in force when this returns.
	if v := gmac4reg.MACAddressHigh.Load(h.csr); uint32(v) == mmio.AllOnes {
		return h.fail("set address", "MAC_Address0_High", uint32(v), core.ErrGone)
	}
	return nil
}
