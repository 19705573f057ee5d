//go:build hwtest

package hwtest

import (
	"errors"
	"net"
	"os"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/stmmac"
)

func filterTests() []test {
	hash := feature("hash table", func(f *stmmac.Features) bool { return f.HashBins > 0 })
	perfect := feature("second perfect filter", func(f *stmmac.Features) bool { return f.PerfectFilters > 0 })
	two := feature("third perfect filter", func(f *stmmac.Features) bool { return f.PerfectFilters > 1 })
	filter := modelled(addressFilter)
	return []test{
		{"filter/own", []need{filter}, filterOwn},
		{"filter/broadcast", []need{filter}, filterBroadcast},
		{"filter/perfect-unicast", []need{perfect, filter}, filterUnicast},
		{"filter/perfect-multicast", []need{perfect, filter}, filterMulticast},
		{"filter/hash-multicast", []need{hash, filter}, filterHashMulticast},
		{"filter/hash-unicast", []need{hash, filter}, filterHashUnicast},
		{"filter/promiscuous", []need{filter}, filterPromiscuous},
		{"filter/all-multicast", []need{filter}, filterAllMulticast},
		{"filter/inverse-destination", []need{two, filter}, filterInverse},
		{"filter/source", []need{perfect, filter}, filterSource},
		{"filter/inverse-source", []need{perfect, filter}, filterNotSource},
		{"filter/refused", []need{filter}, filterRefused},
		{"filter/change-under-load", []need{perfect, filter}, filterLoad},
	}
}

// station is a unicast address by number, group a multicast address.
func station(n int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x11, 0x22, 0x33, byte(n >> 8), byte(n)}
}

func group(n int) net.HardwareAddr {
	return net.HardwareAddr{0x01, 0x00, 0x5e, 0x11, byte(n >> 8), byte(n)}
}

func broadcast() net.HardwareAddr { return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

// reaches fails unless frames for the stations in pass are let in, and those for the
// ones in drop are not.
func (r *rig) reaches(pass, drop []net.HardwareAddr) {
	r.Helper()
	var sent, want [][]byte
	for i := range max(len(pass), len(drop)) {
		if i < len(drop) {
			sent = append(sent, frame(drop[i], peer.PeerAddr(), shortest+i, r.next()))
		}
		if i < len(pass) {
			f := frame(pass[i], peer.PeerAddr(), shortest+i, r.next())
			sent, want = append(sent, f), append(want, f)
		}
	}
	r.same("through the filter", datas(r.deliver(sent...)), want)
	r.figure("frames", len(sent))
}

type addrs = []net.HardwareAddr

// filtered opens the MAC with a filter.
func (r *rig) filtered(f stmmac.Filter) stmmac.FilterUse {
	r.Helper()
	if r.mac == nil {
		r.open()
	}
	r.must(r.mac.SetFilter(f))
	return r.mac.FilterUse()
}

func filterOwn(r *rig) {
	r.filtered(stmmac.Filter{})
	r.reaches(addrs{peer.DeviceAddr()}, addrs{station(1), station(2), group(1), peer.PeerAddr()})
}

func filterBroadcast(r *rig) {
	r.filtered(stmmac.Filter{})
	r.reaches(addrs{broadcast()}, nil)
	r.filtered(stmmac.Filter{NoBroadcast: true})
	r.reaches(addrs{peer.DeviceAddr()}, addrs{broadcast()})
}

// some is how many addresses fit the perfect filters and are tried.
func some(r *rig) int { return min(r.env.features.PerfectFilters, r.scale(31, 8)) }

func filterUnicast(r *rig) {
	var in, out addrs
	for i := range some(r) {
		in, out = append(in, station(i)), append(out, station(1000+i))
	}
	if use := r.filtered(stmmac.Filter{Unicast: in}); use.Perfect < len(in) || use.Hashed > 0 || use.Promiscuous {
		r.Errorf("%d addresses are filtered with %+v", len(in), use)
	}
	r.reaches(in, out)
	r.must(r.mac.RemoveUnicast(in[0]))
	r.reaches(in[1:], in[:1])
	r.must(r.mac.AddUnicast(in[0]))
	r.reaches(in, out)
}

func filterMulticast(r *rig) {
	var in, out addrs
	for i := range some(r) {
		in, out = append(in, group(i)), append(out, group(1000+i))
	}
	r.filtered(stmmac.Filter{})
	r.reaches(nil, in)
	for _, g := range in {
		r.must(r.mac.JoinGroup(g))
	}
	if use := r.mac.FilterUse(); use.AllMulticast {
		r.Errorf("%d groups are filtered with %+v", len(in), use)
	}
	r.reaches(in, out)
	r.must(r.mac.LeaveGroup(in[0]))
	r.reaches(in[1:], in[:1])
}

// many are more addresses than there are perfect filters.
func many(r *rig, addr func(int) net.HardwareAddr) (in addrs) {
	for i := range r.env.features.PerfectFilters + 40 {
		in = append(in, addr(i))
	}
	return in
}

// hashed says how many of addresses that are not let in fall beside the bins.
func (r *rig) hashed(in addrs, addr func(int) net.HardwareAddr) {
	r.Helper()
	var sent, want [][]byte
	const others = 64
	for i := range others {
		sent = append(sent, frame(addr(5000+i), peer.PeerAddr(), shortest, r.next()))
	}
	stray := len(r.deliver(sent...))
	if stray == others {
		r.Errorf("the hash table lets in everything")
	}
	r.figures["strays_of_64"] = stray
	for _, a := range in {
		want = append(want, frame(a, peer.PeerAddr(), shortest, r.next()))
	}
	r.same("through the hash table", datas(r.deliver(want...)), want)
}

func filterHashMulticast(r *rig) {
	in := many(r, group)
	use := r.filtered(stmmac.Filter{Multicast: in})
	if use.Hashed == 0 || use.AllMulticast {
		r.Fatalf("%d groups are filtered with %+v", len(in), use)
	}
	r.figures["use"] = use
	r.hashed(in, group)
	r.reaches(addrs{peer.DeviceAddr()}, addrs{station(1)})
}

func filterHashUnicast(r *rig) {
	in := many(r, station)
	use := r.filtered(stmmac.Filter{Unicast: in})
	if use.Hashed == 0 || use.Promiscuous {
		r.Fatalf("%d stations are filtered with %+v", len(in), use)
	}
	r.figures["use"] = use
	r.hashed(in, station)
	r.reaches(addrs{peer.DeviceAddr()}, addrs{group(1)})
}

func filterPromiscuous(r *rig) {
	r.filtered(stmmac.Filter{})
	r.must(r.mac.SetPromiscuous(true))
	r.reaches(addrs{station(1), group(1), peer.DeviceAddr(), broadcast()}, nil)
	r.must(r.mac.SetPromiscuous(false))
	r.reaches(addrs{peer.DeviceAddr()}, addrs{station(1), group(1)})
}

func filterAllMulticast(r *rig) {
	r.filtered(stmmac.Filter{})
	r.must(r.mac.SetAllMulticast(true))
	r.reaches(addrs{group(1), group(2), peer.DeviceAddr(), broadcast()}, addrs{station(1)})
	r.must(r.mac.SetAllMulticast(false))
	r.reaches(addrs{peer.DeviceAddr()}, addrs{station(1), group(1)})
}

// filterInverse drops what the addresses name, the own one too, so that there is no
// mark: a frame that passes follows each that does not.
func filterInverse(r *rig) {
	r.filtered(stmmac.Filter{InverseDestination: true, Unicast: addrs{station(1)}, Multicast: addrs{group(1)}})
	var want [][]byte
	for i, a := range (addrs{station(2), group(2), station(3)}) {
		dropped := frame(addrs{station(1), group(1), peer.DeviceAddr()}[i], peer.PeerAddr(), shortest, r.next())
		f := frame(a, peer.PeerAddr(), shortest, r.next())
		want = append(want, f)
		r.must(r.env.peer.Send(r.env.ctx, dropped, f))
	}
	var got [][]byte
	for range want {
		f, err := r.recv()
		r.must(err)
		got = append(got, f.data)
	}
	r.same("through the inverse filter", got, want)
}

// filterSource lets in frames of one sender.
func filterSource(r *rig) {
	r.filtered(stmmac.Filter{Source: addrs{peer.PeerAddr()}, Unicast: addrs{station(1)}})
	r.must(r.env.peer.Send(r.env.ctx, frame(station(1), station(9), shortest, r.next()), frame(peer.DeviceAddr(), station(9), shortest, r.next())))
	r.reaches(addrs{station(1), peer.DeviceAddr(), broadcast()}, addrs{station(2)})
}

// filterNotSource lets in frames of all senders but one.
func filterNotSource(r *rig) {
	r.filtered(stmmac.Filter{Source: addrs{station(9)}, InverseSource: true})
	r.must(r.env.peer.Send(r.env.ctx, frame(peer.DeviceAddr(), station(9), shortest, r.next()), frame(broadcast(), station(9), shortest, r.next())))
	r.reaches(addrs{peer.DeviceAddr(), broadcast()}, addrs{station(2)})
}

func filterRefused(r *rig) {
	r.filtered(stmmac.Filter{})
	for _, f := range []stmmac.Filter{{Unicast: addrs{group(1)}}, {Multicast: addrs{station(1)}}, {Unicast: addrs{{1, 2}}},
		{VLANs: []uint16{4096}}, {InverseSource: true}} {
		if err := r.mac.SetFilter(f); !errors.Is(err, os.ErrInvalid) {
			r.Errorf("%+v: %v", f, err)
		}
	}
	if err := r.mac.LeaveGroup(group(1)); !errors.Is(err, os.ErrNotExist) {
		r.Errorf("leave a group that was not joined: %v", err)
	}
	r.reaches(addrs{peer.DeviceAddr()}, addrs{station(1), group(1)})
}

// filterLoad changes the filter in many ways while frames arrive that all of them
// let in: none is lost.
func filterLoad(r *rig) {
	r.open()
	l := startLoad(r)
	for i := range r.scale(1000, 50) {
		f := stmmac.Filter{AllMulticast: i%2 == 0, Promiscuous: !r.env.peer.Can(peer.Separate)}
		for k := range i % 9 {
			f.Unicast, f.Multicast = append(f.Unicast, station(k)), append(f.Multicast, group(k))
		}
		r.must(r.mac.SetFilter(f))
	}
	l.flows()
	l.end()
}
