//go:build hwtest

package hwtest

import (
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func linkTests() []test {
	wired := []need{phyNeed(), can(peer.Separate)}
	partner := []need{phyNeed(), modelled(linkPartner), can(peer.Separate), can(peer.Partner)}
	return []test{
		{"link/autonegotiation", wired, linkNegotiate},
		{"link/renegotiate-traffic", wired, linkAgain},
		{"link/advertise", partner, linkAdvertise},
		{"link/forced", partner, linkForced},
		{"link/half-duplex", append(partner[:len(partner):len(partner)],
			feature("half duplex", func(f *stmmac.Features) bool { return f.HalfDuplex })), linkHalf},
		{"link/down-up", []need{phyNeed(), can(peer.Separate), can(peer.Cable)}, linkDownUp},
		{"link/down-while-sending", []need{phyNeed(), can(peer.Separate), can(peer.Cable)}, linkDownSending},
		{"link/loopback", []need{modelled(loopback)}, linkLoopback},
	}
}

// linkNegotiate negotiates again and expects the same mode.
func linkNegotiate(r *rig) {
	r.open()
	before := r.mac.Link()
	start := time.Now()
	r.must(r.mac.Renegotiate())
	r.link()
	r.figures["seconds_to_link"] = time.Since(start).Round(time.Millisecond).Seconds()
	if got := r.mac.Link(); got != before {
		r.Errorf("%v, and %v before", got, before)
	}
	r.figures["link"] = before.String()
	r.bothWays(shortest, 1514)
}

// linkAgain negotiates again several times, with traffic between.
func linkAgain(r *rig) {
	r.open()
	for range r.scale(20, 3) {
		r.must(r.mac.Renegotiate())
		r.link()
		r.bothWays(shortest, 777, 1514)
	}
}

// modes are those of the PHY that can be tried, without half duplex.
func modes(r *rig) (out []stmmac.LinkModes) {
	info, _ := r.mac.PHY()
	for _, m := range []stmmac.LinkModes{stmmac.Mode10Full, stmmac.Mode100Full, stmmac.Mode1000Full} {
		if info.Abilities&m != 0 && (m != stmmac.Mode1000Full || r.env.features.GMII) {
			out = append(out, m)
		}
	}
	return out
}

// expect waits for a mode of the link.
func (r *rig) expect(m stmmac.LinkModes) {
	r.Helper()
	if !awaitLinkThat(r.env.ctx, r.mac, linkPatience, func(l stmmac.Link) bool { return l.Up && l.Mode() == m }) {
		r.Fatalf("the link is %v, want %v: %s", r.mac.Link(), m, r.mac.LinkReason())
	}
	r.link()
}

// partner sets the modes of the other end until the end of the test.
func (r *rig) partner(m stmmac.LinkModes, fixed bool) {
	r.Helper()
	r.must(r.env.peer.(peer.Partnered).SetModes(m, fixed))
}

// linkAdvertise negotiates each mode alone.
func linkAdvertise(r *rig) {
	r.open()
	defer r.partner(0, false)
	for _, m := range modes(r) {
		r.sub(m.String(), func(r *rig) {
			r.must(r.mac.SetAdvertise(m))
			r.expect(m)
			r.bothWays(shortest, 1514)
		})
	}
	r.must(r.mac.SetAdvertise(0))
	r.link()
}

// linkForced forces each mode at both ends; from 1000 Mbit/s on negotiation stays.
func linkForced(r *rig) {
	r.open()
	defer r.partner(0, false)
	for _, m := range modes(r) {
		r.sub(m.String(), func(r *rig) {
			r.partner(m, m.Link().Speed < 1000)
			r.must(r.mac.SetForced(m.Link()))
			r.expect(m)
			r.bothWays(shortest, 1514)
		})
	}
}

// linkHalf runs in half duplex, one way at a time.
func linkHalf(r *rig) {
	r.open()
	defer r.partner(0, false)
	info, _ := r.mac.PHY()
	for _, m := range []stmmac.LinkModes{stmmac.Mode10Half, stmmac.Mode100Half} {
		if info.Abilities&m == 0 {
			continue
		}
		r.sub(m.String(), func(r *rig) {
			r.partner(m, true)
			r.must(r.mac.SetForced(m.Link()))
			r.expect(m)
			r.bothWays(shortest, 1514)
		})
	}
}

// linkDownUp pulls the cable and plugs it again.
func linkDownUp(r *rig) {
	r.open()
	cable := r.env.peer.(peer.Puller)
	defer func() { r.must(cable.Plug(true)) }()
	for range r.scale(10, 3) {
		r.must(cable.Plug(false))
		if !awaitLinkThat(r.env.ctx, r.mac, linkPatience, func(l stmmac.Link) bool { return !l.Up }) {
			r.Fatalf("the link is up without a cable")
		}
		if r.mac.LinkReason() == "" {
			r.Errorf("nobody says why the link is down")
		}
		start := time.Now()
		r.must(cable.Plug(true))
		r.link()
		r.figures["seconds_to_link"] = time.Since(start).Round(time.Millisecond).Seconds()
		r.bothWays(shortest, 1514)
	}
}

// linkDownSending pulls the cable while frames are sent: the MAC goes on afterwards.
func linkDownSending(r *rig) {
	r.open()
	cable := r.env.peer.(peer.Puller)
	defer func() { r.must(cable.Plug(true)) }()
	for range r.scale(10, 2) {
		l := startLoad(r)
		r.must(cable.Plug(false))
		if !awaitLinkThat(r.env.ctx, r.mac, linkPatience, func(l stmmac.Link) bool { return !l.Up }) {
			r.Fatalf("the link is up without a cable")
		}
		r.must(cable.Plug(true))
		r.link()
		l.end()
		r.bothWays(shortest, 1514)
	}
}

// linkLoopback loops the MAC back while it is open, and ends that.
func linkLoopback(r *rig) {
	r.open()
	r.must(r.mac.SetPromiscuous(true))
	r.must(r.mac.SetLoopback(true))
	var want, got [][]byte
	for _, n := range []int{shortest, 61, 777, 1514} {
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		want = append(want, f)
		r.must(r.send(0, []*pagepool.Buf{r.chain(f, 0)}))
		back, err := r.recv()
		r.must(err)
		got = append(got, back.data)
	}
	r.same("through the loopback", got, want)
	if r.env.peer.Can(peer.Separate) {
		r.must(r.mac.SetLoopback(false))
		r.bothWays(shortest, 1514)
	}
}
