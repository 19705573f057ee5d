//go:build hwtest

package hwtest

import (
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/stmmac"
)

func identifyTests() []test {
	return []test{
		{"identify/features", nil, identifyFeatures},
		{"identify/registers", nil, identifyRegisters},
		{"identify/address", []need{modelled(addressFilter)}, identifyAddress},
		{"reset/soft", nil, softReset},
		{"reset/device", nil, deviceReset},
	}
}

// identifyFeatures holds what the feature registers of every core must tell.
func identifyFeatures(r *rig) {
	r.open()
	f := r.mac.Features()
	r.figures["version"] = fmt.Sprintf("%d.%d0", f.Version>>4, f.Version&15)
	r.figures["features"] = fmt.Sprintf("%+v", f)
	for _, c := range []struct {
		what      string
		v, lo, hi int
	}{
		{"receive queues", f.RxQueues, 1, 16}, {"transmit queues", f.TxQueues, 1, 16},
		{"receive channels", f.RxChannels, 1, 16}, {"transmit channels", f.TxChannels, 1, 16},
		{"bits of an address", f.AddrWidth, 32, 64}, {"perfect filters", f.PerfectFilters, 0, 127},
		{"bins", f.HashBins, 0, 256}, {"version", int(f.Version), 0x10, 0x7f},
	} {
		if c.v < c.lo || c.v > c.hi {
			r.Errorf("%d %s, want %d to %d", c.v, c.what, c.lo, c.hi)
		}
	}
}

// identifyRegisters reads every register that the device has.
func identifyRegisters(r *rig) {
	r.open()
	n, ones, last := 0, 0, -1
	for reg := range r.mac.Dump() {
		if int(reg.Off) <= last {
			r.Errorf("%s at %#x comes behind %#x", reg.Name, reg.Off, last)
		}
		last = int(reg.Off)
		n++
		if reg.Val == ^uint32(0) {
			ones++
		}
	}
	if n == 0 || ones == n {
		r.Fatalf("%d registers, %d of them all ones: the device does not answer", n, ones)
	}
	r.figures["registers"] = n
}

// identifyAddress changes the address of the station, and the filter follows.
func identifyAddress(r *rig) {
	r.open()
	r.must(r.mac.SetFilter(stmmac.Filter{}))
	other := peer.DeviceAddr()
	other[5] = 0x77
	old := frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, 1)
	r.same("to the own address", datas(r.deliver(old)), [][]byte{old})
	r.must(r.mac.SetHardwareAddr(other))
	if got := r.mac.HardwareAddr(); got.String() != other.String() {
		r.Errorf("address %v, want %v", got, other)
	}
	// The mark behind it is for the old address, which is one of two then.
	r.must(r.mac.AddUnicast(peer.DeviceAddr()))
	fresh := frame(other, peer.PeerAddr(), shortest, 2)
	r.same("to the new address", datas(r.deliver(fresh)), [][]byte{fresh})
	r.must(r.mac.SetHardwareAddr(peer.DeviceAddr()))
	r.same("to the address before", datas(r.deliver(fresh, old)), [][]byte{old})
}

// softReset opens and closes the MAC, which resets it both times, and expects it as
// new: without a filter, counts, or rings of before.
func softReset(r *rig) {
	for range r.scale(20, 3) {
		r.open()
		if f := r.mac.Filter(); len(f.Unicast)+len(f.Multicast)+len(f.VLANs) > 0 {
			r.Errorf("the filter has %+v behind a reset", f)
		}
		if n := r.mac.Rx(0).Stats().Packets; r.alone() && n > 0 {
			r.Errorf("%d frames were received before any was sent", n)
		}
		r.must(r.mac.AddUnicast(peer.PeerAddr()))
		r.bothWays(shortest, 1514)
		r.close()
	}
}

// deviceReset resets the device from outside.
func deviceReset(r *rig) {
	err := r.env.handle.Device.Reset(r.env.ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		r.skip("the core has no reset from outside")
	}
	r.must(err)
	r.open()
	r.bothWays(shortest, 1514)
}
