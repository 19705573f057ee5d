//go:build hwtest

package hwtest

import (
	"errors"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func restartTests() []test {
	return []test{
		{"restart/reopen", nil, reopen},
		{"restart/reopen-device", nil, reopenDevice},
		{"restart/close-under-load", nil, closeUnderLoad},
		{"restart/closed", nil, closed},
	}
}

// reopen opens and closes the MAC many times in one process.
func reopen(r *rig) {
	for range r.scale(100, 10) {
		r.open()
		r.bothWays(shortest, 1514)
		r.close()
		r.figure("times", 1)
	}
}

// reopenDevice closes the device and the peer too.
func reopenDevice(r *rig) {
	for range r.scale(20, 3) {
		r.open()
		r.bothWays(shortest, 1514)
		r.close()
		r.must(r.env.shut())
		r.must(r.env.open())
		r.figure("times", 1)
	}
	r.open()
	r.bothWays(shortest, 1514)
}

// closeUnderLoad closes the MAC while frames are under way in both directions.
func closeUnderLoad(r *rig) {
	for range r.scale(50, 5) {
		pool, err := pagepool.New(r.env.handle.Device, 2048)
		r.must(err)
		r.open(stmmac.WithPool(pool))
		l := startLoad(r)
		l.flows()
		err = r.mac.Close()
		l.stop()
		l.all.Wait()
		r.must(err)
		for _, err := range l.errs {
			if !errors.Is(err, stmmac.ErrClosed) {
				r.Errorf("%v", err)
			}
		}
		r.close()
		r.must(pool.Close()) // nothing is left with anybody
	}
	r.open()
	r.flush()
	r.bothWays(shortest, 1514)
}

// closed uses a MAC that was closed, twice.
func closed(r *rig) {
	r.openMAC()
	m := r.mac
	r.must(errors.Join(m.Close(), m.Close()))
	for what, err := range map[string]error{
		"set MTU": m.SetMTU(r.env.ctx, 1500), "set rings": m.SetRings(r.env.ctx, 64, 64), "set filter": m.SetFilter(stmmac.Filter{}),
		"set loopback": m.SetLoopback(true), "wait": m.Rx(0).Wait(r.env.ctx),
	} {
		if !errors.Is(err, stmmac.ErrClosed) {
			r.Errorf("%s on a MAC that was closed: %v", what, err)
		}
	}
}
