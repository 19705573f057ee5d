package stmmac_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// choosy is a MAC that lets in what its filter says, with an own address of its
// own.
func choosy(c *stmmac.Config) { c.Promiscuous = false }

// to returns frame n for an address.
func to(a net.HardwareAddr, n uint64) []byte {
	f := frame(60, n)
	copy(f, a)
	return f
}

func group(last byte) net.HardwareAddr { return net.HardwareAddr{1, 0, 0x5e, 0, 0, last} }

var (
	ownMAC   = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	otherMAC = net.HardwareAddr{2, 0, 0, 0, 0, 9}
	everyone = net.HardwareAddr{255, 255, 255, 255, 255, 255}
)

// hears fails unless exactly those frames for the addresses of all come in that
// are for those of want.
func (r *rig) hears(all []net.HardwareAddr, want ...net.HardwareAddr) {
	r.Helper()
	var in, out [][]byte
	for i, a := range all {
		f := to(a, uint64(i))
		in = append(in, f)
		if slices.ContainsFunc(want, func(b net.HardwareAddr) bool { return bytes.Equal(a, b) }) {
			out = append(out, f)
		}
	}
	r.wire.deliver(in...)
	r.same(r.recv(len(in)+1), out)
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// hashTwins are two groups in one bin of 256, and so in one of fewer bins, and
// a third in another bin of 64.
var hashTwins = [3]net.HardwareAddr{{1, 0, 0x5e, 0, 0, 0x01}, {1, 0, 0x5e, 0, 1, 0x65}, {1, 0, 0x5e, 0, 0, 0xfb}}

// TestJoinLeave is case D45: joins and leaves of groups whose bins collide, with
// the link going down and up and the own address changing in between.
func TestJoinLeave(t *testing.T) { onEach(t, testJoinLeave) }

func testJoinLeave(t *testing.T) {
	for _, bins := range []int{64, 128, 256} {
		t.Run(fmt.Sprint(bins), func(t *testing.T) {
			r := newRig(t, rigConfig{sim: sim.Config{HashBins: bins}, opts: []stmmac.Option{stmmac.WithConfig(choosy)}})
			a, b, c := hashTwins[0], hashTwins[1], hashTwins[2]
			all := []net.HardwareAddr{ownMAC, otherMAC, a, b, c, everyone}
			r.hears(all, ownMAC, everyone)
			r.must(r.mac.JoinGroup(a))
			r.hears(all, ownMAC, a, everyone) // a perfect filter: b stays out
			r.must(r.mac.LeaveGroup(a))

			// With the perfect filters taken, groups go to the hash table.
			for i := range r.mac.Features().PerfectFilters {
				r.must(r.mac.AddUnicast(net.HardwareAddr{6, 0, 0, 0, 0, byte(i)}))
			}
			r.must(r.mac.JoinGroup(a))
			r.must(r.mac.JoinGroup(b))
			if u := r.mac.FilterUse(); u.Hashed != 2 || u.Perfect != r.mac.Features().PerfectFilters {
				t.Fatalf("%+v", u)
			}
			both := []net.HardwareAddr{ownMAC, a, b, everyone}
			r.hears(all, both...)
			r.must(r.mac.JoinGroup(c))
			r.hears(all, append(both, c)...)
			r.must(r.mac.LeaveGroup(c))
			r.hears(all, both...)
			r.must(r.mac.LeaveGroup(a))
			r.hears(all, both...) // a shares b's bin
			r.must(r.mac.JoinGroup(b))
			r.must(r.mac.LeaveGroup(b)) // joined twice, left once
			for _, up := range []bool{false, true} {
				r.must(r.mac.SetLink(stmmac.Link{Up: up, Speed: 100, FullDuplex: true}))
			}
			r.must(r.mac.SetHardwareAddr(otherMAC))
			r.hears(all, otherMAC, a, b, everyone)
			r.must(r.mac.LeaveGroup(b))
			r.hears(all, otherMAC, everyone)
			mustFail(t, r.mac.LeaveGroup(b), os.ErrNotExist, "leave group", b.String())
			r.settled()
		})
	}
}

// TestResetBites is cases D46 and D47: whatever the reset left in the hash
// table, the broadcast block, the enable bit of the address and the receive
// queues, with 1, 2 and 4 queues, each class of frames arrives in the queue that
// was chosen for it and nothing else comes in.
func TestResetBites(t *testing.T) { onEach(t, testResetBites) }

func testResetBites(t *testing.T) {
	for _, n := range queueCounts(t, 1, 2, 4) {
		for _, routed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d queues, routed %v", n, routed), func(t *testing.T) {
				last := 0
				var q stmmac.Queues
				if routed {
					last = n - 1
					q = stmmac.Queues{Untagged: last, Control: last, PTP: last, RouteGroups: true, Groups: n / 2,
						PriorityQueue: []int{last, 0, 0, 0, 0, 0, 0, 0}}
				}
				groups := last
				if routed {
					groups = n / 2
				}
				r := newRig(t, rigConfig{
					sim: sim.Config{RxQueues: n, TxQueues: n, Faults: sim.Faults{
						Reset: sim.ResetFaults{GarbageHash: true, BroadcastOff: true, AddressOff: true}}},
					opts: []stmmac.Option{stmmac.WithQueues(n, n), stmmac.WithConfig(choosy), stmmac.WithConfig(func(c *stmmac.Config) { c.Queues = q })},
				})
				typed := func(a net.HardwareAddr, etype ...byte) []byte {
					f := to(a, 0)
					copy(f[12:], etype)
					return f
				}
				r.must(r.mac.JoinGroup(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}))
				r.must(r.mac.JoinGroup(net.HardwareAddr{1, 0x1b, 0x19, 0, 0, 0}))
				r.must(r.mac.JoinGroup(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0x0e}))
				of := func(pcp int) int {
					if routed {
						return q.PriorityQueue[pcp]
					}
					return pcp * n / 8
				}
				// LLDP and PTP are for groups, so routed they may count as either.
				for _, c := range []struct {
					what  string
					f     []byte
					queue int // -1: any
				}{
					{"unicast", typed(ownMAC, 8, 0), last},
					{"ARP request", typed(everyone, 8, 6), groups},
					{"IPv6 multicast", typed(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, 0x86, 0xdd), groups},
					{"PCP 0", typed(ownMAC, 0x81, 0, 0, 5), of(0)},
					{"PCP 7", typed(ownMAC, 0x81, 0, 0xe0, 5), of(7)},
					{"PTP", typed(net.HardwareAddr{1, 0x1b, 0x19, 0, 0, 0}, 0x88, 0xf7), -1},
					{"LLDP", typed(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0x0e}, 0x88, 0xcc), -1},
					{"foreign unicast", typed(otherMAC, 8, 0), -2},
					{"foreign group", typed(group(7), 8, 0), -2},
				} {
					r.wire.deliver(c.f)
					got := -2
					for i := range n {
						if in := r.recvQ(i, 2); len(in) == 1 {
							r.same(in, [][]byte{c.f})
							got = i
						}
					}
					if got != c.queue && !(c.queue == -1 && got >= 0) {
						t.Errorf("%s came to queue %d, want %d", c.what, got, c.queue)
					}
				}
				r.settled()
			})
		}
	}
}

// TestForeignUnicast is case D48, with one, two and four queues.
func TestForeignUnicast(t *testing.T) { onEach(t, testForeignUnicast) }

func testForeignUnicast(t *testing.T) {
	own, foreign := net.HardwareAddr{0x56, 0x13, 0x3c, 0x10, 0x16, 0x42}, net.HardwareAddr{0x2a, 0x10, 0x2f, 0x1b, 0x03, 0x45}
	for _, n := range queueCounts(t, 1, 2, 4) {
		r := newRig(t, rigConfig{sim: sim.Config{RxQueues: n, TxQueues: n},
			opts: []stmmac.Option{stmmac.WithQueues(n, n), stmmac.WithHardwareAddr(own), stmmac.WithConfig(choosy)}})
		all := []net.HardwareAddr{own, foreign, own, foreign, foreign, own}
		for _, on := range []bool{false, true, false, true, false} {
			r.must(r.mac.SetPromiscuous(on))
			if on {
				r.hears(all, own, foreign)
			} else {
				r.hears(all, own)
			}
		}
		r.settled()
	}
}

// TestFilterKinds asks for one filter after another.
func TestFilterKinds(t *testing.T) { onEach(t, testFilterKinds) }

func testFilterKinds(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithConfig(choosy)}})
	uni, a, b := net.HardwareAddr{2, 9, 9, 9, 9, 9}, group(1), group(2)
	all := []net.HardwareAddr{ownMAC, otherMAC, uni, a, b, everyone}
	sender := net.HardwareAddr(frame(60, 0)[6:12])
	for _, c := range []struct {
		f    stmmac.Filter
		want []net.HardwareAddr
	}{
		{stmmac.Filter{}, []net.HardwareAddr{ownMAC, everyone}},
		{stmmac.Filter{NoBroadcast: true}, []net.HardwareAddr{ownMAC}},
		{stmmac.Filter{AllMulticast: true}, []net.HardwareAddr{ownMAC, a, b, everyone}},
		{stmmac.Filter{Unicast: []net.HardwareAddr{uni}, Multicast: []net.HardwareAddr{b}}, []net.HardwareAddr{ownMAC, uni, b, everyone}},
		{stmmac.Filter{Unicast: []net.HardwareAddr{uni}, Multicast: []net.HardwareAddr{b}, InverseDestination: true}, []net.HardwareAddr{otherMAC, a, everyone}},
		{stmmac.Filter{Source: []net.HardwareAddr{otherMAC}}, nil},
		{stmmac.Filter{Source: []net.HardwareAddr{otherMAC, sender}}, []net.HardwareAddr{ownMAC, everyone}},
		{stmmac.Filter{Source: []net.HardwareAddr{sender}, InverseSource: true}, nil},
		{stmmac.Filter{Source: []net.HardwareAddr{otherMAC}, InverseSource: true, Multicast: []net.HardwareAddr{a}}, []net.HardwareAddr{ownMAC, a, everyone}},
		{stmmac.Filter{Promiscuous: true, NoBroadcast: true}, all},
		{stmmac.Filter{}, []net.HardwareAddr{ownMAC, everyone}},
	} {
		r.must(r.mac.SetFilter(c.f))
		r.hears(all, c.want...)
	}
	r.must(r.mac.SetAllMulticast(true))
	r.hears(all, ownMAC, a, b, everyone)
	r.must(r.mac.SetAllMulticast(false))
	r.must(r.mac.AddUnicast(uni))
	r.must(r.mac.AddUnicast(uni))
	r.must(r.mac.RemoveUnicast(uni))
	r.hears(all, ownMAC, uni, everyone)
	r.must(r.mac.RemoveUnicast(uni))
	r.hears(all, ownMAC, everyone)
	r.settled()
}

// TestFilterUnderTraffic: no change loses a frame that the filters before and
// after it let in, wherever in the traffic it comes.
func TestFilterUnderTraffic(t *testing.T) { onEach(t, testFilterUnderTraffic) }

func testFilterUnderTraffic(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithConfig(choosy)}})
	kept := group(200)
	r.must(r.mac.JoinGroup(kept))
	var added []net.HardwareAddr
	for round := range 120 {
		r.wire.elastic = true
		var in [][]byte
		for i := range 10 {
			in = append(in, to([]net.HardwareAddr{ownMAC, kept, everyone}[i%3], uint64(round*10+i)))
		}
		r.wire.deliver(in...)
		r.dev.Step(round % 7)
		switch a := group(byte(round)); {
		case round%40 == 39:
			for _, a := range added { // from the hash table and the perfect filters
				r.must(r.mac.LeaveGroup(a))
			}
			added = nil
		case round%10 == 9:
			r.must(r.mac.SetPromiscuous(round%20 == 9))
		default:
			r.must(r.mac.JoinGroup(a))
			added = append(added, a)
		}
		r.same(r.recv(len(in)+1), in)
	}
	r.settled()
}

// TestFilterFull: with more unicasts than filters and bins all come in, and the
// counters and FilterUse say so.
func TestFilterFull(t *testing.T) {
	f := fakeGMAC4()
	f.ReadOnly(0x0120, 0)
	f.Set(0x0120, 7|7<<6|1<<14) // no hash table
	d := newFakeDevice(f)
	m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}), stmmac.WithHardwareAddr(ownMAC))
	if err != nil {
		t.Fatal(err)
	}
	full := func() (v uint64) {
		for name, n := range m.Counters() {
			if name == "filter_full" {
				v = n
			}
		}
		return v
	}
	if u := m.FilterUse(); u != (stmmac.FilterUse{}) || full() != 0 {
		t.Errorf("%+v, full %d times", u, full())
	}
	for _, add := range []func(net.HardwareAddr) error{m.AddUnicast, m.AddUnicast} {
		if err := add(otherMAC); err != nil {
			t.Fatal(err)
		}
	}
	if u := m.FilterUse(); !u.Promiscuous || f.Peek(8) != 1 || full() != 1 {
		t.Errorf("%+v, filter %#x, full %d times", u, f.Peek(8), full())
	}
	if err := m.SetFilter(stmmac.Filter{Multicast: []net.HardwareAddr{group(1)}}); err != nil {
		t.Fatal(err)
	}
	if u := m.FilterUse(); u.Promiscuous || !u.AllMulticast || f.Peek(8) != 1<<4 || full() != 2 {
		t.Errorf("%+v, filter %#x, full %d times", u, f.Peek(8), full())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	d.mustUnmap(t)
}

func TestSetHardwareAddr(t *testing.T) { onEach(t, testSetHardwareAddr) }

func testSetHardwareAddr(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithConfig(choosy)}})
	all := []net.HardwareAddr{ownMAC, otherMAC, everyone}
	r.hears(all, ownMAC, everyone)
	a := slices.Clone(otherMAC)
	r.must(r.mac.SetHardwareAddr(a))
	a[5]++ // the MAC keeps a copy
	r.hears(all, otherMAC, everyone)
	if got := r.mac.HardwareAddr(); !bytes.Equal(got, otherMAC) {
		t.Error(got)
	}
	for _, bad := range []net.HardwareAddr{nil, {}, {2, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 1, 2, 3}, make(net.HardwareAddr, 6), group(1), everyone} {
		mustFail(t, r.mac.SetHardwareAddr(bad), os.ErrInvalid, "sim", "set hardware address")
	}
	if got := r.mac.HardwareAddr(); !bytes.Equal(got, otherMAC) {
		t.Error(got)
	}
	r.hears(all, otherMAC, everyone)
}

// TestFilterBadInput: what cannot be is refused with the call and the reason,
// and changes nothing.
func TestFilterBadInput(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithConfig(choosy)}})
	r.must(r.mac.JoinGroup(group(1)))
	short := net.HardwareAddr{1, 0}
	for _, c := range []struct {
		err    error
		target error
		words  []string
	}{
		{r.mac.JoinGroup(ownMAC), os.ErrInvalid, []string{"join group", ownMAC.String()}},
		{r.mac.JoinGroup(everyone), os.ErrInvalid, nil},
		{r.mac.JoinGroup(short), os.ErrInvalid, nil},
		{r.mac.JoinGroup(nil), os.ErrInvalid, nil},
		{r.mac.LeaveGroup(short), os.ErrNotExist, nil},
		{r.mac.LeaveGroup(group(2)), os.ErrNotExist, []string{"leave group"}},
		{r.mac.AddUnicast(group(1)), os.ErrInvalid, []string{"add unicast"}},
		{r.mac.RemoveUnicast(ownMAC), os.ErrNotExist, []string{"remove unicast"}},
		{r.mac.AddVLAN(4096), os.ErrInvalid, []string{"add VLAN", "4096"}},
		{r.mac.AddVLAN(0xffff), os.ErrInvalid, nil},
		{r.mac.RemoveVLAN(7), os.ErrNotExist, []string{"remove VLAN", "7"}},
		{r.mac.SetFilter(stmmac.Filter{InverseSource: true}), os.ErrInvalid, []string{"set filter"}},
		{r.mac.SetFilter(stmmac.Filter{Source: make([]net.HardwareAddr, 1)}), os.ErrInvalid, nil},
	} {
		mustFail(t, c.err, c.target, c.words...)
		var e *stmmac.Error
		if !errors.As(c.err, &e) || e.Dev != "sim" || errors.As(e.Err, new(*stmmac.Error)) {
			t.Errorf("%#v", c.err)
		}
	}
	var many []net.HardwareAddr
	for i := range r.mac.Features().PerfectFilters + 1 {
		many = append(many, net.HardwareAddr{2, 0, 0, 0, 1, byte(i)})
	}
	mustFail(t, r.mac.SetFilter(stmmac.Filter{Source: many}), errors.ErrUnsupported, "source", "perfect filters")
	f := r.mac.Filter()
	if len(f.Multicast) != 1 || len(f.Unicast) != 0 || len(f.Source) != 0 || len(f.VLANs) != 0 {
		t.Errorf("%+v", f)
	}
	f.Multicast[0][5] = 99 // a copy
	r.hears([]net.HardwareAddr{ownMAC, otherMAC, group(1), group(99), everyone}, ownMAC, group(1), everyone)

	r.must(r.mac.Close())
	for _, err := range []error{r.mac.JoinGroup(group(1)), r.mac.LeaveGroup(group(1)), r.mac.AddUnicast(otherMAC), r.mac.RemoveUnicast(otherMAC),
		r.mac.AddVLAN(1), r.mac.RemoveVLAN(1), r.mac.SetFilter(stmmac.Filter{}), r.mac.SetAllMulticast(true), r.mac.SetHardwareAddr(otherMAC)} {
		mustFail(t, err, stmmac.ErrClosed)
	}
}

// TestVLANFilter joins and leaves VLANs, with one, two and four queues.
func TestVLANFilter(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		r := newRig(t, rigConfig{sim: sim.Config{RxQueues: n, TxQueues: n}, opts: []stmmac.Option{stmmac.WithQueues(n, n), stmmac.WithConfig(choosy)}})
		hears := func(want ...int) {
			t.Helper()
			for _, vid := range []int{-1, 1, 5, 0xabc, 4094} { // -1: no tag
				f := to(ownMAC, 1)
				if vid >= 0 {
					f = slices.Concat(f[:12], []byte{0x81, 0, byte(vid>>8) | 0xa0, byte(vid)}, f[12:])
				}
				r.wire.deliver(f)
				var got [][]byte
				for q := range n {
					got = append(got, r.recvQ(q, 2)...)
				}
				if in := len(got) == 1 && bytes.Equal(got[0], f); in != (vid < 0 || slices.Contains(want, vid)) || len(got) > 1 {
					t.Errorf("VLAN %d: came in %v, want those of %v", vid, in, want)
				}
			}
		}
		hears(1, 5, 0xabc, 4094)
		r.must(r.mac.AddVLAN(5))
		r.must(r.mac.AddVLAN(5))
		hears(5)
		r.must(r.mac.RemoveVLAN(5))
		hears(5)
		r.must(r.mac.SetPromiscuous(true))
		hears(1, 5, 0xabc, 4094)
		r.must(r.mac.SetPromiscuous(false))
		hears(5)
		r.must(r.mac.SetFilter(stmmac.Filter{VLANs: []uint16{0xabc}, InverseVLAN: true}))
		hears(1, 5, 4094)
		r.must(r.mac.RemoveVLAN(0xabc))
		hears(1, 5, 0xabc, 4094)
		r.settled()
	}
}

// TestQueuesRefused: queues that do not fit the device or each other are
// refused when the MAC is opened.
func TestQueuesRefused(t *testing.T) {
	for name, c := range map[string]struct {
		f      func(*stmmac.Config)
		target error
		words  []string
	}{
		"route":         {func(c *stmmac.Config) { c.Queues.Untagged = 2 }, os.ErrInvalid, []string{"untagged", "2"}},
		"priority":      {func(c *stmmac.Config) { c.Queues.PriorityQueue = []int{0, 1, 2, 0, 0, 0, 0, 0} }, os.ErrInvalid, []string{"priority 2"}},
		"weights":       {func(c *stmmac.Config) { c.Queues.TxWeights = []int{1, 2, 3} }, os.ErrInvalid, []string{"3 transmit weights", "2 queues"}},
		"AV":            {func(c *stmmac.Config) { c.Queues.AVControl = 1 }, errors.ErrUnsupported, []string{"AV"}},
		"double tags":   {func(c *stmmac.Config) { c.VLANDouble = true }, os.ErrInvalid, []string{"VLANStrip"}},
		"one tag alone": {func(c *stmmac.Config) { c.VLANStrip, c.VLANDouble = true, true }, errors.ErrUnsupported, []string{"one VLAN tag"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fakeGMAC4()
			d := newFakeDevice(f)
			_, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}),
				stmmac.WithQueues(2, 2), stmmac.WithConfig(c.f))
			mustFail(t, err, c.target, append(c.words, "open")...)
			d.mustUnmap(t)
		})
	}
}

// TestSchedulers sends on all queues with each scheduler that the device has.
func TestSchedulers(t *testing.T) {
	for _, s := range []stmmac.TxSched{stmmac.TxWRR, stmmac.TxWFQ, stmmac.TxDWRR, stmmac.TxSP} {
		t.Run(s.String(), func(t *testing.T) {
			r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 4}, opts: []stmmac.Option{stmmac.WithQueues(2, 4),
				stmmac.WithConfig(func(c *stmmac.Config) { c.Queues = stmmac.Queues{TxSched: s, RxArb: stmmac.RxWSP} })}})
			var want [][]byte
			for q := range 4 {
				f := frame(100, uint64(q))
				want = append(want, f)
				if n, err := r.mac.Tx(q).Send([]*pagepool.Buf{r.buf(f, len(f))}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				r.step()
			}
			r.same(r.wire.take(), want)
			r.settled()
		})
	}
}

// TestFilterGone: on a device that is gone each change says so and changes
// nothing, and the counts stay.
func TestFilterGone(t *testing.T) {
	f := fakeGMAC4()
	d := newFakeDevice(f)
	m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}), stmmac.WithHardwareAddr(ownMAC))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddVLAN(7); err != nil {
		t.Fatal(err)
	}
	f.Set(0x794, 3) // Rx_CRC_Error_Packets; it does not clear here
	errors := func() (n uint64) {
		for name, v := range m.Counters() {
			if name == "Rx_CRC_Error_Packets" {
				n = v
			}
		}
		return n
	}
	if n := errors(); n != 3 {
		t.Errorf("%d errors", n)
	}
	for off := uint32(0); off < f.Len(); off += 4 {
		f.OnLoad(off, func(uint32) uint32 { return mmio.AllOnes })
	}
	for op, err := range map[string]error{
		"join group": m.JoinGroup(group(1)), "add unicast": m.AddUnicast(otherMAC), "add VLAN": m.AddVLAN(7), "remove VLAN": m.RemoveVLAN(7),
		"set promiscuous": m.SetPromiscuous(true), "set hardware address": m.SetHardwareAddr(otherMAC),
	} {
		mustFail(t, err, stmmac.ErrGone, op)
	}
	if g := m.Filter(); len(g.Multicast)+len(g.Unicast) != 0 || len(g.VLANs) != 1 || g.Promiscuous || !bytes.Equal(m.HardwareAddr(), ownMAC) {
		t.Errorf("%+v, address %v", g, m.HardwareAddr())
	}
	if n := errors(); n != 3 {
		t.Errorf("%d errors on a device that is gone", n)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	d.mustUnmap(t)
}
