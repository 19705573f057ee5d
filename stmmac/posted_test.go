package stmmac_test

import (
	"net"
	"sync"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// posting is a device whose stores are on their way until a register is read, as they may be
// on PCI Express, and as they are for long in a virtual machine on a busy host.
type posting struct {
	*sim.Device

	mu     sync.Mutex
	stores []store
}

type store struct{ off, v uint32 }

func (p *posting) Region(i int) (mmio.Region, error) {
	r, err := p.Device.Region(i)
	return &postedRegion{p, r}, err
}

// waiting is how many stores are on their way.
func (p *posting) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stores)
}

type postedRegion struct {
	p *posting
	r mmio.Region
}

func (r *postedRegion) Len() uint32 { return r.r.Len() }

func (r *postedRegion) Store32(off, v uint32) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.stores = append(r.p.stores, store{off, v})
}

func (r *postedRegion) Load32(off uint32) uint32 {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	for _, s := range r.p.stores {
		r.r.Store32(s.off, s.v)
	}
	r.p.stores = nil
	return r.r.Load32(off)
}

// TestPostedStores: what the driver says is done the device has taken: who is told of a link
// may send frames to it, and who changed the filter has it.
func TestPostedStores(t *testing.T) {
	for _, g := range []sim.Generation{sim.GMAC4, sim.GMAC} {
		t.Run(g.String(), func(t *testing.T) {
			w, _ := sim.NewPair(4)
			d, err := sim.New(sim.Config{Generation: g}, w)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			p := &posting{Device: d}
			gen := map[sim.Generation]stmmac.Generation{sim.GMAC4: stmmac.GMAC4, sim.GMAC: stmmac.GMAC}[g]
			m, err := stmmac.Open(t.Context(), p, stmmac.WithGeneration(gen), stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}),
				stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = false }))
			if err != nil {
				t.Fatal(err)
			}
			done := func(what string, err error) {
				t.Helper()
				if n := p.waiting(); err != nil || n > 0 {
					t.Errorf("%s: %v, and %d stores are on their way", what, err, n)
				}
			}
			done("open", nil)
			done("link down", m.SetLink(stmmac.Link{}))
			done("link", m.SetLink(stmmac.Link{Up: true, Speed: 100, FullDuplex: true}))
			done("pause", m.SetPause(stmmac.PauseRxTx))
			done("loopback", m.SetLoopback(true))
			done("no loopback", m.SetLoopback(false))
			done("promiscuous", m.SetPromiscuous(true))
			done("multicast", m.JoinGroup(net.HardwareAddr{1, 0, 0x5e, 0, 0, 9}))
			done("unicast", m.AddUnicast(net.HardwareAddr{2, 0, 0, 0, 0, 9}))
			done("filter", m.SetFilter(stmmac.Filter{}))
			if g == sim.GMAC4 {
				done("VLAN", m.AddVLAN(5))
			}
			done("address", m.SetHardwareAddr(net.HardwareAddr{2, 0, 0, 0, 0, 8}))
			done("MTU", m.SetMTU(t.Context(), 1400))
			done("rings", m.SetRings(t.Context(), 64, 64))
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
