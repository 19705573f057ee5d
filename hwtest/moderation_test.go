//go:build hwtest

package hwtest

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

func moderationTests() []test {
	clock := core("known clock of its registers", func(e *environment) bool { return e.phy || e.isSim() || e.features.MDIO })
	watchdog := feature("receive interrupt watchdog", func(f *stmmac.Features) bool { return f.Version >= firstWithWatchdog })
	return []test{
		{"moderation/receive-time", []need{watchdog, clock}, func(r *rig) {
			moderate(r, stmmac.Coalesce{RxTime: 100 * time.Microsecond}, stmmac.Coalesce{RxTime: 400 * time.Microsecond})
		}},
		{"moderation/receive-frames", []need{watchdog, clock}, func(r *rig) {
			moderate(r, stmmac.Coalesce{RxTime: 400 * time.Microsecond, RxFrames: 2},
				stmmac.Coalesce{RxTime: 400 * time.Microsecond, RxFrames: 25})
		}},
		{"moderation/send", nil, func(r *rig) {
			moderate(r, stmmac.Coalesce{TxTime: time.Millisecond, TxFrames: 8}, stmmac.Coalesce{TxTime: 100 * time.Microsecond, TxFrames: 64})
		}},
		{"moderation/spin", nil, func(r *rig) { moderate(r, stmmac.Coalesce{Spin: 1}, stmmac.Coalesce{Spin: 1000}) }},
		{"moderation/change-under-load", nil, moderateLoad},
		{"moderation/refused", nil, moderateRefused},
	}
}

// firstWithWatchdog is the version of the first core with DMA Receive Interrupt Watchdog
// Timer.
const firstWithWatchdog = 0x35

// moderate sends single frames and bursts while events share interrupts, as set on
// opening and on a MAC that runs: nothing may wait for ever.
func moderate(r *rig, list ...stmmac.Coalesce) {
	for i, c := range list {
		r.sub(fmt.Sprint(i), func(r *rig) {
			if i == 0 {
				r.open(stmmac.WithCoalesce(c))
			} else {
				r.open()
				got, err := r.mac.SetCoalesce(c)
				r.must(err)
				if got.RxTime == 0 != (c.RxTime == 0) || got.RxFrames != c.RxFrames || got.TxFrames != c.TxFrames {
					r.Errorf("asked for %+v, got %+v", c, got)
				}
				r.figures["rx_time_us"] = got.RxTime.Microseconds()
			}
			for range r.scale(1000, 30) {
				r.bothWays(shortest)
			}
			var sizes []int
			for i := range 200 {
				sizes = append(sizes, shortest+i)
			}
			r.bothWays(sizes...)
		})
	}
}

// moderateLoad changes how events share interrupts under load.
func moderateLoad(r *rig) {
	r.open()
	l := startLoad(r)
	for i := range r.scale(200, 12) {
		c := []stmmac.Coalesce{{}, {TxTime: time.Millisecond, TxFrames: 16}, {Spin: 100}}[i%3]
		_, err := r.mac.SetCoalesce(c)
		r.must(err)
		l.flows()
	}
	l.end()
	r.bothWays(shortest, 1514)
}

// moderateRefused asks for what makes no sense.
func moderateRefused(r *rig) {
	r.open()
	for _, c := range []stmmac.Coalesce{{RxTime: -1}, {RxFrames: 4}, {TxFrames: 8}, {TxTime: time.Second}, {Spin: -1}} {
		if _, err := r.mac.SetCoalesce(c); !errors.Is(err, os.ErrInvalid) {
			r.Errorf("%+v: %v", c, err)
		}
	}
	r.bothWays(shortest)
}
