//go:build hwtest

package hwtest

import (
	"fmt"
	"strconv"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/stmmac"
)

func jumboTests() []test {
	room := core("room for jumbo frames", func(e *environment) bool { return e.maxMTU > 1500 })
	large := feature("receive buffers for jumbo frames", func(f *stmmac.Features) bool { return f.Version >= firstOfGMAC4 })
	several := feature("second transmit queue", func(f *stmmac.Features) bool { return f.TxQueues > 1 && f.TxChannels > 1 })
	return []test{
		{"jumbo/sizes", []need{room, can(peer.Jumbo)}, jumboSizes},
		{"jumbo/large-buffers", []need{room, large, can(peer.Jumbo)}, jumboLarge},
		{"jumbo/queues", []need{room, can(peer.Jumbo), several}, jumboQueues},
		{"jumbo/longest-refused", []need{room}, jumboRefused},
	}
}

// jumboSizes sends frames up to the longest.
func jumboSizes(r *rig) {
	mtu := r.env.mtu()
	r.open(stmmac.WithMTU(mtu))
	r.window = 2 // the FIFOs hold one or two
	for _, n := range r.sample(1515, mtu+headerLen, 499) {
		r.sub(strconv.Itoa(n), func(r *rig) { r.bothWays(n, n) })
	}
	r.figures["mtu"] = mtu
}

// jumboLarge receives each into a buffer of its own.
func jumboLarge(r *rig) {
	mtu := r.env.mtu()
	r.open(stmmac.WithMTU(mtu), stmmac.WithBufSize(mtu+512), stmmac.WithRings(64, 64))
	r.window = 2
	for _, n := range r.sample(1515, mtu+headerLen, 1013) {
		r.bothWays(n, shortest, n)
	}
	if l := r.mac.Rx(0).Layout(); l.First < l.MaxFrame {
		r.Errorf("a frame of MTU %d does not fit into a buffer: %+v", mtu, l)
	}
}

// jumboQueues sends long frames from several queues, as long as the part of the FIFO
// that each has.
func jumboQueues(r *rig) {
	for _, mtu := range []int{9000, 7000, 4000, 3000, 2000} {
		m, err := stmmac.Open(r.env.ctx, r.env.handle.Device, r.env.options(stmmac.WithQueues(1, 2), stmmac.WithMTU(mtu))...)
		if err != nil {
			continue
		}
		r.must(m.Close())
		mtu = min(mtu, r.env.mtu())
		r.open(stmmac.WithQueues(1, 2), stmmac.WithMTU(mtu))
		r.window = 1
		for i := range 20 {
			r.tx = i % 2
			f := frame(peer.PeerAddr(), peer.DeviceAddr(), mtu+headerLen-i, r.next())
			r.same(fmt.Sprint("queue ", r.tx), r.emit(f), [][]byte{f})
		}
		r.figures["mtu"] = mtu
		return
	}
	r.Fatalf("no MTU above 1500 fits two queues")
}

// jumboRefused asks for a longer MTU than there is.
func jumboRefused(r *rig) {
	r.open()
	if err := r.mac.SetMTU(r.env.ctx, 9001); err == nil {
		r.Errorf("an MTU of 9001 was taken")
	}
	r.bothWays(shortest, 1514)
}
