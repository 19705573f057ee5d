//go:build hwtest

package hwtest

import (
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func mtuTests() []test {
	return []test{
		{"mtu/change", nil, mtuChange},
		{"mtu/limit", nil, mtuLimit},
		{"mtu/change-under-load", nil, mtuLoad},
		{"mtu/refused", nil, mtuRefused},
	}
}

// mtus are those that are tried.
func mtus(r *rig) (out []int) {
	for _, n := range []int{46, 576, 1500, 1501, 2000, 2048, 4000, 9000} {
		if n <= max(1500, r.env.mtu()) {
			out = append(out, n)
		}
	}
	return append(out, 1500)
}

// mtuChange changes the MTU of a MAC that runs.
func mtuChange(r *rig) {
	r.open()
	for i, mtu := range mtus(r) {
		r.sub(strconv.Itoa(i)+"-"+strconv.Itoa(mtu), func(r *rig) {
			r.must(r.mac.SetMTU(r.env.ctx, mtu))
			r.link()
			if got := r.mac.MTU(); got != mtu {
				r.Errorf("the MTU is %d", got)
			}
			r.window = 2
			r.bothWays(shortest, mtu+headerLen, mtu+headerLen)
		})
	}
}

// mtuLimit sends what is one byte too long, which is refused, and receives the
// longest.
func mtuLimit(r *rig) {
	r.open(stmmac.WithMTU(600))
	const tags = 8
	b := r.chain(make([]byte, 600+headerLen+tags+1), 0)
	if n, err := r.mac.Tx(0).Shared().Send([]*pagepool.Buf{b}); n != 0 || !errors.Is(err, stmmac.ErrFrameTooLong) {
		r.Errorf("%d were taken, %v", n, err)
	}
	r.mac.Pool().Free(b)
	f := frame(peer.DeviceAddr(), peer.PeerAddr(), 600+headerLen, r.next())
	r.same("the longest", datas(r.deliver(f)), [][]byte{f})
}

// mtuLoad changes the MTU under load, for the time of -duration.
func mtuLoad(r *rig) {
	r.open()
	l := startLoad(r)
	list := []int{1500, min(4000, max(1500, r.env.maxMTU)), min(9000, max(1500, r.env.maxMTU))}
	end := time.Now().Add(r.env.duration)
	for i := 0; i < len(list) || time.Now().Before(end); i++ {
		r.must(r.mac.SetMTU(r.env.ctx, list[(i+1)%len(list)]))
		r.link()
		l.flows()
		r.figure("changes", 1)
	}
	l.end()
	r.bothWays(shortest, 1514)
}

func mtuRefused(r *rig) {
	r.open()
	for _, n := range []int{-1, 0, 45, 9001, 1 << 20} {
		if err := r.mac.SetMTU(r.env.ctx, n); !errors.Is(err, os.ErrInvalid) {
			r.Errorf("MTU %d: %v", n, err)
		}
	}
	if r.mac.MTU() != 1500 {
		r.Errorf("the MTU is %d", r.mac.MTU())
	}
	r.bothWays(shortest, 1514)
}
