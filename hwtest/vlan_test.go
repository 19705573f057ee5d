//go:build hwtest

package hwtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func vlanTests() []test {
	tags := can(peer.Tags)
	perfect := feature("perfect VLAN filter", func(f *stmmac.Features) bool { return f.VLANFilters > 1 })
	hash := feature("VLAN hash table", func(f *stmmac.Features) bool { return f.VLANHash })
	double := feature("second VLAN tag", func(f *stmmac.Features) bool { return f.DoubleVLAN })
	stripping := feature("VLAN tag stripping", func(f *stmmac.Features) bool { return f.Version >= firstOfGMAC4 })
	filter := driven("VLAN filter")
	insert := feature("VLAN insertion", func(f *stmmac.Features) bool { return f.AddressInsert })
	return []test{
		{"vlan/strip", []need{tags, stripping}, vlanStrip},
		{"vlan/strip-double", []need{tags, double}, vlanStripDouble},
		{"vlan/insert", []need{tags, insert}, func(r *rig) { vlanInsert(r, true) }},
		{"vlan/insert-by-driver", []need{tags}, func(r *rig) { vlanInsert(r, false) }},
		{"vlan/insert-service", []need{tags}, vlanService},
		{"vlan/insert-double", []need{tags, double}, vlanInsertDouble},
		{"vlan/filter", []need{tags, modelled(vlanFilters), filter}, vlanFilter},
		{"vlan/filter-perfect", []need{tags, perfect}, vlanFilterPerfect},
		{"vlan/filter-hash", []need{tags, hash}, vlanFilterHash},
		{"vlan/filter-inverse", []need{tags, modelled(vlanFilters), filter}, vlanInverse},
	}
}

func strip(c *stmmac.Config) { c.VLANStrip = true }

// vlanStrip receives frames whose tag is beside them.
func vlanStrip(r *rig) {
	r.open(stmmac.WithConfig(strip))
	for _, n := range r.sample(shortest, 1514, 211) {
		for _, tci := range []uint16{0x0001, 0x6123, 0xffff} {
			plain := frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
			got := r.deliver(tagged(plain, typeVLAN, tci), plain)
			r.same(fmt.Sprint(n, " bytes"), datas(got), [][]byte{plain, plain})
			if m := got[0].meta; m.Flags&pagepool.VLANTag == 0 || m.VLAN != tci {
				r.Errorf("a frame with tag %#04x has flags %#x and tag %#04x beside it", tci, m.Flags, m.VLAN)
			}
			if m := got[1].meta; m.Flags&pagepool.VLANTag != 0 {
				r.Errorf("a frame without a tag has %#04x beside it", m.VLAN)
			}
		}
	}
}

func vlanStripDouble(r *rig) {
	r.open(stmmac.WithConfig(func(c *stmmac.Config) { c.VLANStrip, c.VLANDouble = true, true }))
	for _, n := range r.sample(shortest, 1500, 211) {
		plain := frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
		got := r.deliver(tagged(tagged(plain, typeVLAN, 0x0111), typeVLAN, 0x6222))
		r.same(fmt.Sprint(n, " bytes"), datas(got), [][]byte{plain})
		const both = pagepool.VLANTag | pagepool.InnerVLANTag
		if m := got[0].meta; m.Flags&both != both || m.VLAN != 0x6222 || m.InnerVLAN != 0x0111 {
			r.Errorf("flags %#x, tags %#04x and %#04x", m.Flags, m.VLAN, m.InnerVLAN)
		}
	}
}

// beside is a frame with a tag beside it.
func (r *rig) beside(f []byte, flags pagepool.Flags, outer, inner uint16) *pagepool.Buf {
	r.Helper()
	b := r.chain(f, 0)
	b.Flags |= flags
	b.VLAN, b.InnerVLAN = outer, inner
	return b
}

// vlanInsert sends frames whose tag is beside them.
func vlanInsert(r *rig, device bool) {
	r.open(stmmac.WithConfig(func(c *stmmac.Config) { c.VLANInsert = device }))
	for _, n := range r.sample(shortest, 1514, 211) {
		plain := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		got := r.emitBufs(r.beside(plain, pagepool.VLANTag, 0x6123, 0), r.chain(plain, 0), r.beside(plain, pagepool.VLANTag, 0x0001, 0))
		// A packet socket of Linux gives frames with a tag out before those without one that
		// were received just before them (__netif_receive_skb_list_core).
		want := [][]byte{tagged(plain, typeVLAN, 0x6123), plain, tagged(plain, typeVLAN, 1)}
		slices.SortFunc(got, bytes.Compare)
		slices.SortFunc(want, bytes.Compare)
		r.same(fmt.Sprint(n, " bytes"), got, want)
	}
	if n := r.mac.Tx(0).Stats().TagDriver; (n > 0) == device {
		r.Errorf("the driver has put %d tags into frames", n)
	}
}

// vlanService sends S-VLAN tags.
func vlanService(r *rig) {
	r.open()
	for _, n := range r.sample(shortest, 1514, 211) {
		plain := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		got := r.emitBufs(r.beside(plain, pagepool.VLANTag|pagepool.VLANService, 0x2345, 0))
		r.same(fmt.Sprint(n, " bytes"), got, [][]byte{tagged(plain, typeSVLAN, 0x2345)})
	}
}

func vlanInsertDouble(r *rig) {
	// What comes back by a loopback would be stripped too.
	if !r.env.peer.Can(peer.Separate) {
		r.skip("the peer has no " + string(peer.Separate))
	}
	r.open(stmmac.WithConfig(func(c *stmmac.Config) { c.VLANStrip, c.VLANDouble = true, true }))
	for _, n := range r.sample(shortest, 1510, 211) {
		plain := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		got := r.emitBufs(r.beside(plain, pagepool.VLANTag|pagepool.InnerVLANTag, 0x6222, 0x0111))
		r.same(fmt.Sprint(n, " bytes"), got, [][]byte{tagged(tagged(plain, typeVLAN, 0x0111), typeVLAN, 0x6222)})
	}
}

// ofVLAN are frames of VLANs for the device.
func (r *rig) ofVLAN(vids ...uint16) (out [][]byte) {
	for _, v := range vids {
		out = append(out, tagged(frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()), typeVLAN, v))
	}
	return out
}

// vids are the VLANs of frames.
func vids(l []received) (out []uint16) {
	for _, f := range l {
		out = append(out, binary.BigEndian.Uint16(f.data[14:])&0xfff)
	}
	return out
}

func (r *rig) vlans(sent []uint16, want ...uint16) {
	r.Helper()
	if got := vids(r.deliver(r.ofVLAN(sent...)...)); fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("VLANs %v came in, want %v of %v", got, want, sent)
	}
}

func vlanFilter(r *rig) {
	r.filtered(stmmac.Filter{})
	r.vlans([]uint16{1, 5, 100}, 1, 5, 100)
	r.must(r.mac.AddVLAN(5))
	r.vlans([]uint16{1, 5, 100, 5}, 5, 5)
	r.reaches(addrs{peer.DeviceAddr()}, nil) // without a tag
	r.must(r.mac.RemoveVLAN(5))
	r.vlans([]uint16{1, 5, 100}, 1, 5, 100)
}

func vlanFilterPerfect(r *rig) {
	n := min(r.env.features.VLANFilters, r.scale(32, 4))
	r.filtered(stmmac.Filter{})
	var in []uint16
	for i := range n {
		in = append(in, uint16(10+i*7))
		r.must(r.mac.AddVLAN(in[i]))
	}
	if use := r.mac.FilterUse(); use.VLANs < n || use.HashedVLANs > 0 {
		r.Errorf("%d VLANs are filtered with %+v", n, use)
	}
	var sent []uint16
	for _, v := range in {
		sent = append(sent, v-1, v, v+1)
	}
	r.vlans(sent, in...)
}

func vlanFilterHash(r *rig) {
	r.filtered(stmmac.Filter{})
	var in []uint16
	for i := range r.env.features.VLANFilters + 3 {
		in = append(in, uint16(300+i))
		r.must(r.mac.AddVLAN(in[i]))
	}
	use := r.mac.FilterUse()
	if use.HashedVLANs == 0 {
		r.Fatalf("%d VLANs are filtered with %+v", len(in), use)
	}
	r.vlans(in, in...)
	r.figures["use"] = use
}

func vlanInverse(r *rig) {
	r.filtered(stmmac.Filter{VLANs: []uint16{5}, InverseVLAN: true})
	r.vlans([]uint16{1, 5, 100}, 1, 100)
}
