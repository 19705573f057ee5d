package gmac4

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// vlanTimeout bounds an access to a VLAN filter, which needs the receive clock
// of the PHY.
const vlanTimeout = 500 * time.Millisecond

// macVLANTag is MAC_VLAN_Tag, which is called MAC_VLAN_Tag_Ctrl where there is
// more than one VLAN filter.
const macVLANTag = mmio.Reg[gmac4reg.VLANTag](gmac4reg.MACVLANTag)

const (
	vidNone    = -1 // a filter that is off
	vidUnknown = -2 // a filter whose last access failed
)

// vlanState is what the registers of the VLAN filter hold.
type vlanState struct {
	vids []int // of the VLAN filters, where there is more than one
	hash uint16
	tag  gmac4reg.VLANTag // MAC_VLAN_Tag
}

// sameKind says that two states differ in entries only.
func (v *vlanState) sameKind(w *vlanState) bool {
	const kind = gmac4reg.VTHM | gmac4reg.VTIM
	return v.tag&kind == w.tag&kind
}

// vlanStrip are the bits of MAC_VLAN_Tag that have nothing to do with the
// filter.
func (h *HW) vlanStrip() gmac4reg.VLANTag {
	var v gmac4reg.VLANTag
	if h.cfg.VLANStrip {
		v |= gmac4reg.EVLS.Of(gmac4reg.StripAlways) | gmac4reg.EVLRXS
	}
	if h.cfg.VLANDouble {
		// Without ESVL: no descriptor tells of what type a tag was that is gone, so
		// S-VLAN tags stay among the bytes.
		v |= gmac4reg.EDVLP | gmac4reg.EIVLS.Of(gmac4reg.StripAlways) | gmac4reg.EIVLRXS
	}
	return v
}

// planVLANs says what the VLAN filter shall hold for f.
func (h *HW) planVLANs(f *core.Filter, use *core.FilterUse) (vlanState, error) {
	want := vlanState{vids: make([]int, len(h.vlan.vids)), tag: h.vlanStrip()}
	for i := range want.vids {
		want.vids[i] = vidNone
	}
	var vids []int
	for _, v := range f.VLANs {
		if !slices.Contains(vids, int(v)) {
			vids = append(vids, int(v))
		}
	}
	if f.InverseVLAN {
		want.tag |= gmac4reg.VTIM
	}
	// The one register of a single filter has no enable bit: VID 0 is the filter
	// that lets every VLAN in.
	single := len(h.vlan.vids) == 1
	perfect := len(vids) <= len(h.vlan.vids) && !(single && slices.Contains(vids, 0))
	switch {
	case len(vids) == 0:
	case perfect && single:
		want.tag |= gmac4reg.ETV | gmac4reg.VL.Of(uint32(vids[0]))
		use.VLANs = 1
	case perfect:
		want.vids = core.Assign(h.vlan.vids, vids, vidNone)
		use.VLANs = len(vids)
	case h.feat.VLANHash && !f.InverseVLAN:
		want.tag |= gmac4reg.ETV | gmac4reg.VTHM
		for _, v := range vids {
			want.hash |= 1 << vidBin(v)
		}
		use.HashedVLANs = len(vids)
	case single && len(vids) == 1:
		return want, fmt.Errorf("VLAN 0, and the device has a single VLAN filter, for which 0 is every VLAN: %w", errors.ErrUnsupported)
	default:
		return want, fmt.Errorf("%d VLANs, and the device has %d VLAN filters (inverse: %v; hash table: %v): %w",
			len(vids), len(h.vlan.vids), f.InverseVLAN, h.feat.VLANHash, errors.ErrUnsupported)
	}
	return want, nil
}

// vidBin is the bin of a VLAN in the hash table. Databook: MAC_VLAN_Hash_Table,
// the upper four bits of the bit-reversed CRC-32 of the twelve bits, the lowest
// first.
func vidBin(vid int) uint32 {
	crc := ^uint32(0)
	for i := range 12 {
		out := (crc ^ uint32(vid)>>i) & 1
		crc = crc>>1 ^ out*0xedb88320
	}
	return bits.Reverse32(^crc) >> 28
}

// setVLANs writes what changes. A VLAN that both states have stays filtered all
// the time, unless they are of different kinds: then the caller has the filter
// off.
func (h *HW) setVLANs(want vlanState) error {
	if want.hash != h.vlan.hash {
		gmac4reg.MACVLANHash.Store(h.csr, uint32(want.hash))
		h.vlan.hash = want.hash
	}
	if want.tag != h.vlan.tag {
		macVLANTag.Store(h.csr, want.tag)
		h.vlan.tag = want.tag
	}
	if len(h.vlan.vids) == 1 {
		return nil // the filter is the register above
	}
	for i, vid := range want.vids {
		if vid == h.vlan.vids[i] {
			continue
		}
		if err := h.storeVID(i, vid); err != nil {
			return err
		}
	}
	return nil
}

// storeVID writes VLAN filter i, and waits until the device has it.
func (h *HW) storeVID(i, vid int) error {
	var data gmac4reg.VLANTagData
	if vid != vidNone {
		data = gmac4reg.VEN | gmac4reg.VETV | gmac4reg.VID.Of(uint32(vid))
	}
	h.vlan.vids[i] = vidUnknown
	gmac4reg.MACVLANTagData.Store(h.csr, data)
	macVLANTag.Store(h.csr, h.vlan.tag|gmac4reg.VLANOFS.Of(uint32(i))|gmac4reg.VLANOB)
	v, err := core.Await(context.Background(), h.cfg.Clock, vlanTimeout, 10*time.Microsecond, time.Millisecond,
		func() uint32 { return uint32(macVLANTag.Load(h.csr)) }, uint32(gmac4reg.VLANOB))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("OB did not clear within %v: %w", vlanTimeout, core.ErrNoClock)
	}
	if err != nil {
		return h.fail("set VLAN filter", "MAC_VLAN_Tag_Ctrl", v, err)
	}
	h.vlan.vids[i] = vid
	return nil
}
