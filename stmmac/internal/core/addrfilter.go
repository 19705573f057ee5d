package core

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"net"
	"slices"
)

// FilterBits are the bits of the register that says what the address filter does,
// which are the same in GMAC 3.x (MAC_Frame_Filter) and GMAC4 (MAC_Packet_Filter).
type FilterBits uint32

// Bits of the address filter.
const (
	FilterPR   FilterBits = 1 << 0  // promiscuous
	FilterHUC  FilterBits = 1 << 1  // hash unicast
	FilterHMC  FilterBits = 1 << 2  // hash multicast
	FilterDAIF FilterBits = 1 << 3  // destination address inverse filtering
	FilterPM   FilterBits = 1 << 4  // pass all multicast
	FilterDBF  FilterBits = 1 << 5  // disable broadcast
	FilterSAIF FilterBits = 1 << 8  // source address inverse filtering
	FilterSAF  FilterBits = 1 << 9  // source address filter
	FilterHPF  FilterBits = 1 << 10 // hash or perfect
	FilterVTFE FilterBits = 1 << 16 // VLAN filter

	// Those that let frames in, and those that keep frames out.
	permissive  = FilterPR | FilterPM | FilterHUC | FilterHMC | FilterHPF
	restrictive = FilterDBF | FilterDAIF | FilterSAF | FilterSAIF | FilterVTFE
)

// FilterHashWords is the largest number of words of a hash table.
const FilterHashWords = 8

// FilterSlot is what a perfect filter compares; the zero value compares nothing.
type FilterSlot struct {
	Addr   [6]byte
	Source bool // with the sender's address
}

// FilterRegs are the registers of an address filter.
type FilterRegs interface {
	// StoreFilter says what the filter does.
	StoreFilter(v FilterBits)
	// StoreHash stores bins 32*i to 32*i+31 of the hash table.
	StoreHash(i int, v uint32)
	// StoreSlot makes perfect filter i, from 1 on, compare s.
	StoreSlot(i int, s FilterSlot)
}

// AddressFilter is what the registers of an address filter hold. It changes them
// so that after each store the device lets in at least what both the filter before
// and that after let in: an entry of both stays where it is, or has its new place
// before it loses the old one.
type AddressFilter struct {
	regs FilterRegs
	bins int
	have FilterPlan
	// fresh: the device was reset, and only the hash table was written since.
	fresh bool
}

// FilterPlan is what the registers of an address filter shall hold.
type FilterPlan struct {
	slots []FilterSlot // of MAC address 1 on
	hash  [FilterHashWords]uint32
	ctrl  FilterBits
}

// Reset notes that the registers have their reset values. There are perfect
// filters beside the MAC's own address, and bins of the hash table, 0, 64, 128 or
// 256.
func (a *AddressFilter) Reset(regs FilterRegs, perfect, bins int) {
	*a = AddressFilter{regs: regs, bins: bins, have: FilterPlan{slots: make([]FilterSlot, perfect)}, fresh: true}
}

// Change makes the filter hold p. In between it calls rest, which may change
// another filter of the device and has the error of Change; sameVLANs says that
// the VLAN filter works the same way before and after, so that it may stay on
// meanwhile. After an error it is off, and the addresses are as they were.
func (a *AddressFilter) Change(p FilterPlan, sameVLANs bool, rest func() error) error {
	both := a.have.hash
	for i, w := range p.hash {
		both[i] |= w
	}
	a.storeHash(both)
	if !a.fresh { // else the receiver is still off
		a.storeFilter(between(a.have.ctrl, p.ctrl, sameVLANs))
	}
	// First of the rest what can fail: until here nothing was taken away.
	if err := rest(); err != nil {
		a.storeFilter(a.have.ctrl &^ FilterVTFE)
		return err
	}
	a.storeSlots(p.slots)
	a.storeFilter(p.ctrl)
	a.storeHash(p.hash)
	a.fresh = false
	return nil
}

// between is the filter while the tables change from those of a to those of b.
// sameVLANs says that the VLAN filter works the same way in both, so that its
// tables may change while it is on.
func between(a, b FilterBits, sameVLANs bool) FilterBits {
	v := (a|b)&permissive | a&b&restrictive
	if (a^b)&FilterDAIF != 0 {
		// What the one names is what the other does not.
		v |= FilterPR
	}
	if (a^b)&FilterSAIF != 0 {
		v &^= FilterSAF | FilterSAIF
	}
	if !sameVLANs {
		v &^= FilterVTFE
	}
	return v
}

// Plan says what the address filter shall hold for f: perfect filters
// while they suffice, the hash table for what goes beyond, and all frames of a
// kind where there is none.
func (a *AddressFilter) Plan(f *Filter) (FilterPlan, FilterUse, error) {
	want := FilterPlan{slots: make([]FilterSlot, len(a.have.slots))}
	var use FilterUse
	var in []FilterSlot
	sources, unicasts, multicasts := slots(f.Source, true), slots(f.Unicast, false), slots(f.Multicast, false)
	room := len(want.slots)
	if len(sources) > room {
		return want, use, fmt.Errorf("%d source addresses, and the device has %d perfect filters: %w",
			len(sources), room, errors.ErrUnsupported)
	}
	if len(sources) > 0 {
		in = append(in, sources...)
		want.ctrl |= FilterSAF
		if f.InverseSource {
			want.ctrl |= FilterSAIF
		}
	}
	if f.InverseDestination {
		if n := len(unicasts) + len(multicasts); len(in)+n > room {
			return want, use, fmt.Errorf("an inverse filter of %d addresses beside %d sources, and the device has %d perfect filters: %w",
				n, len(in), room, errors.ErrUnsupported)
		}
		want.ctrl |= FilterDAIF
	}
	if f.AllMulticast {
		want.ctrl |= FilterPM
	}
	if f.NoBroadcast {
		want.ctrl |= FilterDBF
	}

	// take gives addresses a perfect filter, or bins of the hash table.
	take := func(list []FilterSlot, useHash FilterBits) bool {
		n := min(len(list), room-len(in))
		if n < len(list) && a.bins == 0 {
			return false
		}
		in = append(in, list[:n]...)
		for _, s := range list[n:] {
			bin := hashBin(s.Addr, a.bins)
			want.hash[bin/32] |= 1 << (bin % 32)
			// Without HPF the hash table alone would decide, about the MAC's own
			// address too.
			want.ctrl |= useHash | FilterHPF
			use.Hashed++
		}
		return true
	}
	if !take(unicasts, FilterHUC) {
		use.Promiscuous = true
		want.ctrl |= FilterPR
	}
	if !f.AllMulticast && !take(multicasts, FilterHMC) {
		use.AllMulticast = true
		want.ctrl |= FilterPM
	}
	use.Perfect = len(in)
	want.slots = Assign(a.have.slots, in, FilterSlot{})

	if len(f.VLANs) > 0 && !f.Promiscuous {
		want.ctrl |= FilterVTFE
	}
	if f.Promiscuous {
		want.ctrl |= FilterPR
	}
	return want, use, nil
}

// slots are the different addresses of a list, in its order.
func slots(l []net.HardwareAddr, source bool) []FilterSlot {
	var out []FilterSlot
	seen := map[FilterSlot]bool{}
	for _, a := range l {
		s := FilterSlot{[6]byte(a), source}
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// Assign places the wanted entries in a table as large as have, which has room
// for them: what is there already stays where it is, the others take what is
// free, then the places of those that go.
func Assign[T comparable](have, want []T, free T) []T {
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

func (a *AddressFilter) storeHash(words [FilterHashWords]uint32) {
	for i := range a.bins / 32 {
		if words[i] != a.have.hash[i] {
			a.regs.StoreHash(i, words[i])
			a.have.hash[i] = words[i]
		}
	}
}

func (a *AddressFilter) storeFilter(v FilterBits) {
	// After a reset it is written whatever it should hold: on some devices it
	// blocks broadcasts then.
	if v != a.have.ctrl || a.fresh {
		a.regs.StoreFilter(v)
		a.have.ctrl = v
	}
}

// storeSlots writes the perfect filters that change, or all after a reset.
func (a *AddressFilter) storeSlots(want []FilterSlot) {
	for i, s := range want {
		if s != a.have.slots[i] || a.fresh {
			a.regs.StoreSlot(1+i, s)
			a.have.slots[i] = s
		}
	}
}
