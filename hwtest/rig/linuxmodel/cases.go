package linuxmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/ethtool"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Case is what is done with a guest that was started, in the order of the list.
type Case struct {
	Name string
	Run  func(ctx context.Context, h *Host) error
}

// Guard is how long a case may take: far more than it needs.
const Guard = 4 * time.Minute

// Cases returns the list.
func Cases() []Case {
	return []Case{
		{"probe and link", probe},
		{"ping of 0 to 1472 bytes", func(ctx context.Context, h *Host) error { return h.ping(ctx, addresses[1], 0, 1, 56, 1472) }},
		{"20 MB of TCP each way at once", transfer},
		{"VLAN interface", vlan},
		{"frames of 14 to 1518 bytes", func(ctx context.Context, h *Host) error { return h.frames(ctx, 1514+vlanLen) }},
		{"long MTU: frames and ping", jumbo},
		{"multicast groups", groups},
		{"statistics against the model's counts", statistics},
		{"pause", pause},
		{"link down and up", cable},
		{"self-tests", selfTests},
		{"driver unloaded and loaded again", reload},
	}
}

// The two ends: the namespaces, the interfaces as the kernel names them, and addresses.
var (
	spaces     = [2]string{"a", "b"}
	interfaces = [2]string{"eth0", "eth1"}
	addresses  = [2]string{"10.77.0.1", "10.77.0.2"}
	places     = [2]string{"0000:00:01.0", "0000:00:02.0"} // on the PCI bus
)

const vlanLen = 4

// vlanInterface is the one of VLAN 5 at each end, which carries the longest frames, and
// vlanAddresses are theirs.
const vlanInterface = "vlan5"

var vlanAddresses = [2]string{"10.77.5.1", "10.77.5.2"}

// up brings both interfaces down and up again.
func (h *Host) up(ctx context.Context, mtu int) error {
	for i := range spaces {
		for _, j := range []jobs.Job[jobs.None]{
			jobs.Configure{Space: spaces[i], Interface: interfaces[i], Down: true, Up: true, MTU: mtu},
			jobs.WaitInterface{Space: spaces[i], Interface: interfaces[i], Running: true},
		} {
			if _, err := do(ctx, h, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// place makes the namespaces when first is set, waits for the interfaces, and moves them.
func (h *Host) place(ctx context.Context, first bool) error {
	for i := range spaces {
		if first {
			if _, err := do(ctx, h, jobs.Space{Space: spaces[i]}); err != nil {
				return err
			}
		}
		if err := h.appears(ctx, interfaces[i]); err != nil {
			return err
		}
	}
	for i := range spaces {
		if _, err := do(ctx, h, jobs.Move{Interface: interfaces[i], To: spaces[i]}); err != nil {
			return err
		}
	}
	for i := range spaces {
		_, err := do(ctx, h, jobs.Configure{Space: spaces[i], Interface: interfaces[i], Up: true, Addresses: []string{addresses[i] + "/24"}})
		if err != nil {
			return err
		}
	}
	if err := h.up(ctx, 1500); err != nil {
		return err
	}
	for i := range spaces {
		all, err := do(ctx, h, jobs.Interfaces{Space: spaces[i]})
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.Name == interfaces[i] {
				h.stations[i] = one.HardwareAddr
			}
		}
	}
	return nil
}

// appears waits for an interface of the guest.
func (h *Host) appears(ctx context.Context, name string) error {
	for {
		all, err := do(ctx, h, jobs.Interfaces{})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(i jobs.Interface) bool { return i.Name == name }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("there is no interface %s: %w", name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// coreName is the name by which the drivers of all chips call themselves: that of what they
// share.
const coreName = "st_gmac"

func probe(ctx context.Context, h *Host) error {
	if err := h.place(ctx, true); err != nil {
		return err
	}
	for i := range spaces {
		d, err := do(ctx, h, jobs.Driver{Space: spaces[i], Interface: interfaces[i]})
		if err != nil {
			return err
		}
		l, err := do(ctx, h, jobs.Link{Space: spaces[i], Interface: interfaces[i]})
		if err != nil {
			return err
		}
		if d.Name != coreName || !l.Up || l.Mbps != 1000 || !l.Full {
			return fmt.Errorf("%s: driver %+v, link %+v", interfaces[i], d, l)
		}
	}
	return nil
}

// ping pings from the first end.
func (h *Host) ping(ctx context.Context, to string, sizes ...int) error {
	for _, n := range sizes {
		r, err := do(ctx, h, jobs.Ping{Space: spaces[0], To: to, Size: n, Count: 10})
		if err != nil {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
		if r.Answered != 10 {
			return fmt.Errorf("%d bytes: %+v", n, r)
		}
	}
	return nil
}

func transfer(ctx context.Context, h *Host) error {
	const bytes, seed = 20 << 20, 1
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- only(do(ctx, h, jobs.Transfer{Space: spaces[1], Listen: addresses[1] + ":7", Send: bytes, Receive: bytes, Seed: seed}))
	}()
	r, err := do(ctx, h, jobs.Transfer{Space: spaces[0], Dial: addresses[1] + ":7", Send: bytes, Receive: bytes, Seed: seed})
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	note.Printf(ctx, "%.1f MB/s each way", float64(bytes)/float64(max(r.Microseconds, 1)))
	return nil
}

// frames sends frames of every length from each end, which the other one sends back.
func (h *Host) frames(ctx context.Context, longest int) error {
	const shortest = 14
	step := max(h.boot.step, 1)
	for from := range spaces {
		if err := h.echo(ctx, from, h.stations[1-from], shortest, longest, step); err != nil {
			return fmt.Errorf("from %s: %w", interfaces[from], err)
		}
	}
	note.Printf(ctx, "%d frames each way, from each end", (longest-shortest)/step+1)
	return nil
}

// inFlight is how many frames are under way at a time: the longest of them fit into what the
// rings and the cable hold.
const inFlight = 32

// echo sends frames to a station from an end, which the other end sends back.
func (h *Host) echo(ctx context.Context, from int, station string, shortest, longest, step int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := (longest-shortest)/step + 1
	var before [2]sim.Stats
	for i, k := range h.Cards {
		before[i] = k.Model().Stats()
	}
	reflected := make(chan error, 1)
	go func() {
		reflected <- only(do(ctx, h, jobs.Reflect{Space: spaces[1-from], Interface: interfaces[1-from], Count: n}))
	}()
	select {
	case <-h.ready:
	case err := <-reflected:
		return err
	}
	r, err := do(ctx, h, jobs.Frames{Space: spaces[from], Interface: interfaces[from], To: station, Min: shortest, Max: longest, Step: step, Seed: uint64(from), Window: inFlight})
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, <-reflected); err != nil {
		for i, k := range h.Cards {
			err = errors.Join(err, fmt.Errorf("the model of %s counted %+v before and %+v after", interfaces[i], before[i], k.Model().Stats()))
		}
		return err
	}
	if r.Frames != n {
		return fmt.Errorf("%d frames of %d", r.Frames, n)
	}
	return nil
}

func jumbo(ctx context.Context, h *Host) error {
	mtu := 9000
	if h.boot.mtu != 0 {
		mtu = h.boot.mtu
	}
	note.Printf(ctx, "MTU %d", mtu)
	if err := errors.Join(h.up(ctx, mtu), h.reach(ctx)); err != nil {
		return err
	}
	err := h.frames(ctx, mtu+14+vlanLen)
	if err == nil {
		err = h.ping(ctx, addresses[1], mtu-28)
	}
	return errors.Join(err, h.up(ctx, 1500), h.reach(ctx))
}

// vlan makes the interfaces of a VLAN, which stay: the MAC lets its frames in from then on.
func vlan(ctx context.Context, h *Host) error {
	const id = 5
	for i := range spaces {
		for _, j := range []jobs.Job[jobs.None]{
			jobs.VLAN{Space: spaces[i], Interface: vlanInterface, Parent: interfaces[i], ID: id},
			jobs.Configure{Space: spaces[i], Interface: vlanInterface, Up: true, Addresses: []string{vlanAddresses[i] + "/24"}},
		} {
			if _, err := do(ctx, h, j); err != nil {
				return err
			}
		}
	}
	return h.ping(ctx, vlanAddresses[1], 0, 56, 1472)
}

// groups sends frames to a group that nobody has joined, that one end has joined, and that
// it has left: the model lets in those between, by its counts.
func groups(ctx context.Context, h *Host) error {
	m := h.Cards[1].Model()
	passes := func(group string, want bool) error {
		before := m.Stats()
		// Nobody sends the frame back, so the job waits in vain until the model has counted it.
		waits, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- only(do(waits, h, jobs.Frames{Space: spaces[0], Interface: interfaces[0], To: group, Min: 200, Max: 200}))
		}()
		after := before
		for after.RxFrames == before.RxFrames && after.RxFiltered == before.RxFiltered {
			select {
			case err := <-ended:
				return fmt.Errorf("a frame to a group came back, or did not arrive: %w", err)
			case <-time.After(5 * time.Millisecond):
				after = m.Stats()
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return fmt.Errorf("a frame to a group came back: %w", err)
		}
		// The stacks say something of their own now and then.
		in, out := after.RxFrames > before.RxFrames, after.RxFiltered > before.RxFiltered
		if want && (!in || out) || !want && !out {
			return fmt.Errorf("a frame to the group: let in %v, filtered %v", in, out)
		}
		return nil
	}
	// The hash of one may be that of a group that the kernel has joined for itself.
	group := ""
	var err error
	for i := range 8 {
		group = fmt.Sprintf("01:00:5e:4d:00:%02x", 9+i)
		if err = passes(group, false); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("not joined: %w", err)
	}
	if _, err := do(ctx, h, jobs.Join{Space: spaces[1], Interface: interfaces[1], Group: group}); err != nil {
		return err
	}
	for range 8 {
		if err = passes(group, true); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("joined: %w", err)
	}
	if _, err := do(ctx, h, jobs.Leave{Space: spaces[1], Interface: interfaces[1], Group: group}); err != nil {
		return err
	}
	for range 8 { // the kernel may change the filter a moment later
		if err = passes(group, false); err == nil {
			return nil
		}
	}
	return fmt.Errorf("left: %w", err)
}

// statistics compares what the driver counts and what the model does, over some traffic.
func statistics(ctx context.Context, h *Host) error {
	// The stacks say something by themselves now and then: both counts are of one moment if
	// the model's is the same before and behind that of the driver.
	read := func(end int) (m map[string]uint64, c counts, err error) {
		for range 100 {
			c = h.counts(end)
			m, err = do(ctx, h, jobs.Statistics{Space: spaces[end], Interface: interfaces[end]})
			if err != nil || c == h.counts(end) {
				return m, c, err
			}
		}
		return nil, c, errors.New("frames pass all the time")
	}
	var before, after [2]map[string]uint64
	var err error
	var start, stop [2]counts
	for i := range spaces {
		if before[i], start[i], err = read(i); err != nil {
			return err
		}
	}
	if err := h.echo(ctx, 0, h.stations[1], 60, 1200, 7); err != nil {
		return err
	}
	for i := range spaces {
		if after[i], stop[i], err = read(i); err != nil {
			return err
		}
	}
	for i := range spaces {
		for _, c := range []struct {
			names []string
			model uint64
		}{
			{[]string{"mmc_tx_framecount_gb", "mmc_tx_framecount_g"}, stop[i].tx - start[i].tx},
			{[]string{"mmc_rx_framecount_gb"}, stop[i].rx - start[i].rx},
		} {
			for _, name := range c.names {
				v, ok := after[i][name]
				if !ok {
					return fmt.Errorf("%s has no counter %s", interfaces[i], name)
				}
				if n := v - before[i][name]; n != c.model {
					return fmt.Errorf("%s: %s has risen by %d, the model counts %d", interfaces[i], name, n, c.model)
				}
			}
		}
	}
	note.Printf(ctx, "%d and %d frames", stop[0].tx-start[0].tx, stop[1].tx-start[1].tx)
	return nil
}

// counts are what a model counts of whole frames.
type counts struct{ tx, rx uint64 }

func (h *Host) counts(i int) counts {
	s := h.Cards[i].Model().Stats()
	return counts{s.TxFrames, s.RxFrames}
}

func pause(ctx context.Context, h *Host) error {
	for _, p := range []ethtool.Pause{{Rx: true, Tx: true}, {}, {Autoneg: true, Rx: true, Tx: true}} {
		for i := range spaces {
			if _, err := do(ctx, h, jobs.SetPause{Space: spaces[i], Interface: interfaces[i], Pause: p}); err != nil {
				return fmt.Errorf("set %+v: %w", p, err)
			}
			if _, err := do(ctx, h, jobs.WaitInterface{Space: spaces[i], Interface: interfaces[i], Running: true}); err != nil {
				return err
			}
			got, err := do(ctx, h, jobs.Pause{Space: spaces[i], Interface: interfaces[i]})
			if err != nil {
				return err
			}
			if got != p {
				return fmt.Errorf("%s: asked for %+v, got %+v", interfaces[i], p, got)
			}
		}
		if err := h.reach(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reach pings until the other end answers, which may have its link a moment later, and then
// wants all answers.
func (h *Host) reach(ctx context.Context) error {
	for {
		r, err := do(ctx, h, jobs.Ping{Space: spaces[0], To: addresses[1], Size: 56, Count: 1, Patience: 500})
		if err != nil {
			return err
		}
		if r.Answered == 1 {
			return h.ping(ctx, addresses[1], 56, 1472)
		}
	}
}

func cable(ctx context.Context, h *Host) error {
	for range 3 {
		for _, plugged := range []bool{false, true} {
			h.Cards[0].Model().SetCable(plugged)
			if _, err := do(ctx, h, jobs.WaitInterface{Space: spaces[0], Interface: interfaces[0], Running: plugged}); err != nil {
				return err
			}
		}
		if err := h.reach(ctx); err != nil {
			return err
		}
	}
	return nil
}

func reload(ctx context.Context, h *Host) error {
	for range 2 {
		// The glue has a clock of its own, which the driver holds while it has a card.
		for _, card := range places {
			unbind := "/sys/bus/pci/devices/" + card + "/driver/unbind"
			if _, err := do(ctx, h, jobs.WriteFile{Path: unbind, Text: card}); err != nil {
				return err
			}
		}
		if _, err := do(ctx, h, jobs.Unload{Module: strings.ReplaceAll(h.boot.driver, "-", "_")}); err != nil {
			return err
		}
		if err := h.Guest.Load(ctx, h.Modules[len(h.Modules)-1:], map[string]string{h.boot.driver: h.boot.params}); err != nil {
			return err
		}
		if err := h.place(ctx, false); err != nil {
			return err
		}
		if err := h.reach(ctx); err != nil {
			return err
		}
	}
	return nil
}
