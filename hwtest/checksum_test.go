//go:build hwtest

package hwtest

import (
	"bytes"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func checksumTests() []test {
	rx, verdict := rxChecksumNeed(), modelled(rxChecksums)
	tx := feature("transmit checksum engine", func(f *stmmac.Features) bool { return f.TxChecksum })
	list := []test{
		{"checksum/receive-good", []need{rx, verdict}, checksumGood},
		{"checksum/receive-bad", []need{rx, verdict}, checksumBad},
		{"checksum/receive-fragments", []need{rx}, checksumFragments},
		{"checksum/receive-off", nil, checksumOff},
		{"checksum/send-fragments", nil, checksumSendFragments},
		{"checksum/send-not-asked", nil, checksumLeft},
	}
	for _, k := range kinds() {
		device := []need{tx}
		if k.six || k.proto == protoICMP {
			device = append(device, modelled(txChecksums))
		}
		list = append(list,
			test{"checksum/send-" + k.name, device, func(r *rig) { checksumSend(r, k, true) }},
			test{"checksum/send-tagged-" + k.name, append(device[:len(device):len(device)], can(peer.Tags)), func(r *rig) { checksumTagged(r, k) }},
			test{"checksum/send-by-driver-" + k.name, nil, func(r *rig) { checksumSend(r, k, false) }})
	}
	return list
}

func rxChecksumNeed() need {
	return feature("receive checksum engine", func(f *stmmac.Features) bool { return f.RxChecksum })
}

// lengths are those of packets that are tried.
func lengths(r *rig) []int { return r.sample(82, 1514, 239) }

func checksumGood(r *rig) {
	r.open()
	for _, k := range kinds() {
		r.sub(k.name, func(r *rig) {
			for _, n := range lengths(r) {
				f := k.build(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
				got := r.deliver(f)
				r.same(fmt.Sprint(n, " bytes"), datas(got), [][]byte{f})
				if v := got[0].meta.Flags; v&pagepool.RxCsumGood == 0 || v&pagepool.RxCsumBad != 0 {
					r.Errorf("%d bytes with right checksums have the verdict %#x", n, v)
				}
			}
		})
	}
}

// checksumBad damages the checksum of the protocol, and that of the IPv4 header.
func checksumBad(r *rig) {
	r.open()
	for _, k := range kinds() {
		r.sub(k.name, func(r *rig) {
			_, where := k.l4()
			at := []int{where, 81}
			if !k.six {
				at = append(at, headerLen+10)
			}
			for _, n := range lengths(r) {
				for _, i := range at {
					f := k.build(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
					f[i] ^= 0x10
					got := r.deliver(f)
					r.same(fmt.Sprint(n, " bytes"), datas(got), [][]byte{f})
					if v := got[0].meta.Flags; v&pagepool.RxCsumGood != 0 || v&pagepool.RxCsumBad == 0 {
						r.Errorf("%d bytes that are wrong at %d have the verdict %#x", n, i, v)
					}
				}
			}
		})
	}
}

// fragments are packets of which the engine sees a part only.
func fragments() []packet {
	return []packet{{"first", false, protoUDP, 0x2000}, {"middle", false, protoUDP, 0x2010}, {"last", false, protoUDP, 0x0020}}
}

// checksumFragments receives fragments, about which the engine cannot know.
func checksumFragments(r *rig) {
	r.open()
	for _, k := range fragments() {
		for _, n := range lengths(r) {
			f := k.build(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
			got := r.deliver(f)
			r.same(k.name, datas(got), [][]byte{f})
			if v := got[0].meta.Flags; v&pagepool.RxCsumBad != 0 {
				r.Errorf("the %s fragment, of %d bytes, has the verdict %#x", k.name, n, v)
			}
		}
	}
}

// checksumOff receives without the engine: nothing is known of any frame.
func checksumOff(r *rig) {
	r.open(stmmac.WithChecksums(false, true))
	for _, k := range kinds() {
		f := k.build(peer.DeviceAddr(), peer.PeerAddr(), 200, r.next())
		bad := bytes.Clone(f)
		k.spoil(bad)
		for _, g := range r.deliver(f, bad) {
			if v := g.meta.Flags; v&(pagepool.RxCsumGood|pagepool.RxCsumBad) != 0 {
				r.Errorf("%s: verdict %#x without the engine", k.name, v)
			}
		}
	}
}

// asked is a frame with wrong checksums whose right ones are asked for.
func (r *rig) asked(k packet, f []byte) *pagepool.Buf {
	r.Helper()
	f = bytes.Clone(f)
	k.spoil(f)
	b := r.chain(f, 0)
	b.Flags |= pagepool.TxCsum
	return b
}

// checksumSend has checksums inserted, by the device or by the driver.
func checksumSend(r *rig, k packet, device bool) {
	r.open(stmmac.WithChecksums(true, device))
	for _, n := range lengths(r) {
		f := k.build(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		r.same(fmt.Sprint(n, " bytes"), r.emitBufs(r.asked(k, f)), [][]byte{f})
	}
	s := r.mac.Tx(0).Stats()
	r.figures["by_device"], r.figures["by_driver"] = s.CsumDevice, s.CsumDriver
	if device != (s.CsumDevice > 0) {
		r.Errorf("the device has inserted the checksums of %d frames, the driver of %d", s.CsumDevice, s.CsumDriver)
	}
}

// checksumTagged has them inserted behind a tag, in the bytes and beside them.
func checksumTagged(r *rig, k packet) {
	r.open()
	for _, n := range lengths(r) {
		f := k.build(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		beside := r.asked(k, f)
		beside.Flags |= pagepool.VLANTag
		beside.VLAN = 0x6123
		spoilt := bytes.Clone(f)
		k.spoil(spoilt)
		inside := r.chain(tagged(spoilt, typeVLAN, 0x2007), 0)
		inside.Flags |= pagepool.TxCsum
		r.same(fmt.Sprint(n, " bytes"), r.emitBufs(beside, inside), [][]byte{tagged(f, typeVLAN, 0x6123), tagged(f, typeVLAN, 0x2007)})
	}
}

// checksumSendFragments asks for the checksums of fragments: that of the header can
// be inserted, and nothing else may be changed.
func checksumSendFragments(r *rig) {
	r.open()
	for _, k := range fragments() {
		for _, n := range lengths(r) {
			f := k.build(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
			b := bytes.Clone(f)
			b[headerLen+10] ^= 0xff
			buf := r.chain(b, 0)
			buf.Flags |= pagepool.TxCsum
			r.same(k.name, r.emitBufs(buf), [][]byte{f})
		}
	}
}

// checksumLeft sends wrong checksums of which nobody asked anything.
func checksumLeft(r *rig) {
	r.open()
	for _, k := range kinds() {
		f := k.build(peer.PeerAddr(), peer.DeviceAddr(), 300, r.next())
		k.spoil(f)
		r.same(k.name, r.emit(f), [][]byte{f})
	}
}
