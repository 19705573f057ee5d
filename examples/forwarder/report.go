package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tally is what the queues of a direction count.
type tally struct{ packets, bytes, drops uint64 }

// got is what the driver received on a side, and what it dropped instead.
func (f *forwarder) got(d int) (t tally) {
	for _, w := range f.workers[d] {
		s := w.rx.Stats()
		t.packets += s.Packets
		t.bytes += s.Bytes
		t.drops += s.Drops()
	}
	return t
}

// sent is what the driver sent from side d to the other.
func (f *forwarder) sent(d int) (t tally) {
	for _, w := range f.workers[d] {
		s := w.tx.Stats()
		t.packets += s.Packets
		t.bytes += s.Bytes
	}
	return t
}

// workerDrops is how many received frames the workers of a side did not send.
func (f *forwarder) workerDrops(d int) (n uint64) {
	for _, w := range f.workers[d] {
		for i := range w.dropped {
			n += w.dropped[i].Load()
		}
	}
	return n
}

// rxDrops are the counts of RxStats that are frames which arrived and were not
// given out.
var rxDrops = []string{"crc", "overflow", "watchdog", "giant", "dribble", "receive", "other",
	"length", "oversize", "truncated", "aborted", "dropped"}

// txDrops are the counts of TxStats that are frames which were not sent well.
var txDrops = []string{"underflow", "collision", "carrier", "deferral", "jabber", "flushed", "checksum", "other"}

// drops counts the frames from side d that went nowhere, by reason. What was
// filtered (-learn) is not among them.
func (f *forwarder) drops(d int) map[string]uint64 {
	all := map[string]uint64{}
	add := func(reason string, n uint64) {
		if n > 0 {
			all[reason] += n
		}
	}
	for _, w := range f.workers[d] {
		for name, n := range w.rx.Stats().All() {
			if slices.Contains(rxDrops, name) {
				add("rx_"+name, n)
			}
		}
		for name, n := range w.tx.Stats().All() {
			if slices.Contains(txDrops, name) {
				add("tx_"+name, n)
			}
		}
		for i := range numDrops {
			if i != dropFiltered {
				add(i.String(), w.dropped[i].Load())
			}
		}
	}
	if dev := f.side[d].handle.Sim; dev != nil { // what the MAC itself kept back
		s := dev.Stats()
		add("mac_error", s.RxDropped) // bad FCS, runt
		add("mac_filtered", s.RxFiltered)
		add("mac_fifo_full", s.RxOverflow)
		add("mac_no_buffer", s.RxMissed)
	} else {
		for _, w := range f.workers[d] {
			s := w.rx.Stats()
			add("mac_fifo_full", s.FIFOFull)
			add("mac_no_buffer", s.Missed)
		}
	}
	if tap := f.side[d].handle.TAP; tap != nil {
		add("wire_too_long", tap.Stats().RxTooLong)
	}
	if tap := f.side[1-d].handle.TAP; tap != nil {
		s := tap.Stats()
		add("wire_refused", s.TxRefused) // the interface is down, for example
		add("wire_bad_fcs", s.TxBadFCS)
	}
	return all
}

// direction is what happened to the frames of one direction.
type direction struct {
	Name    string `json:"name"`
	Packets uint64 `json:"packets"` // sent by the driver
	Bytes   uint64 `json:"bytes"`   // of them, without FCS
	// How the frames arrived. A generator knows all of it, a capture file only
	// what is lost; with other devices, lost is what the forwarder dropped.
	Checked    bool              `json:"checked"` // by a generator
	Lost       uint64            `json:"lost"`
	Corrupted  uint64            `json:"corrupted"`
	Duplicated uint64            `json:"duplicated"`
	Reordered  uint64            `json:"reordered"`
	Foreign    uint64            `json:"foreign"` // came out and never went in
	Filtered   uint64            `json:"filtered"`
	Drops      map[string]uint64 `json:"drops"`
	// Injected are the faults of -fault.
	Injected map[string]uint64 `json:"injected,omitempty"`
}

// result is what happened. The first fields are the sums of the directions.
type result struct {
	Packets        uint64            `json:"packets"`
	Bytes          uint64            `json:"bytes"`
	Lost           uint64            `json:"lost"`
	Corrupted      uint64            `json:"corrupted"`
	Duplicated     uint64            `json:"duplicated"`
	Reordered      uint64            `json:"reordered"`
	Foreign        uint64            `json:"foreign"`
	Filtered       uint64            `json:"filtered"`
	Unlearned      uint64            `json:"unlearned"` // frames of stations for which -learn had no room
	DurationS      float64           `json:"duration_s"`
	PPS            float64           `json:"pps"`
	Mbps           float64           `json:"mbps"`
	Drops          map[string]uint64 `json:"drops"`
	CPUNsPerPacket float64           `json:"cpu_ns_per_packet"`
	CPUScope       string            `json:"cpu_scope"` // threads, process or none
	Directions     []direction       `json:"directions"`
	Errors         []string          `json:"errors"`
}

// result is called when the workers have ended and the devices are still open.
func (f *forwarder) result(forwarding time.Duration) *result {
	r := &result{DurationS: forwarding.Seconds(), Drops: map[string]uint64{}, CPUScope: cpuScope, Errors: []string{}}
	for d := range f.side {
		x := f.direction(d)
		r.Directions = append(r.Directions, x)
		r.Packets += x.Packets
		r.Bytes += x.Bytes
		r.Lost += x.Lost
		r.Corrupted += x.Corrupted
		r.Duplicated += x.Duplicated
		r.Reordered += x.Reordered
		r.Foreign += x.Foreign
		r.Filtered += x.Filtered
		for reason, n := range x.Drops {
			r.Drops[reason] += n
		}
	}
	if f.learn != nil {
		r.Unlearned = f.learn.unlearned
	}
	r.PPS = ratio(float64(r.Packets), r.DurationS)
	r.Mbps = ratio(float64(r.Bytes)*8/1e6, r.DurationS)
	r.CPUNsPerPacket = ratio(float64(f.cpu()), float64(r.Packets))
	return r
}

func (f *forwarder) direction(d int) direction {
	from, to := f.side[d], f.side[1-d]
	sent := f.sent(d)
	x := direction{
		Name:    from.name + " to " + to.name,
		Packets: sent.packets, Bytes: sent.bytes,
		Drops: f.drops(d),
	}
	for _, w := range f.workers[d] {
		x.Filtered += w.dropped[dropFiltered].Load()
	}
	injected := uint64(0)
	if i := from.handle.Injector; i != nil {
		c := i.Counts()
		x.Injected = map[string]uint64{"drop": c.Drop, "crc": c.CRC, "corrupt": c.Corrupt, "dup": c.Dup, "reorder": c.Reorder}
		injected = c.Drop
	}
	switch h := from.handle; {
	case h.Loop != nil:
		c := h.Loop.Counters()
		x.Checked = true
		// What did not arrive by the end of the wait for it is lost too.
		x.Lost = c.Lost + c.Outstanding
		x.Corrupted, x.Duplicated, x.Reordered, x.Foreign = c.Corrupted, c.Duplicated+c.Stale, c.Reordered, c.Foreign
	case h.Pcap != nil && to.handle.Sim != nil:
		out := to.handle.Sim.Stats().TxFrames
		x.Lost = injected + h.Input() - min(h.Input(), out+x.Filtered)
	default:
		for reason, n := range x.Drops {
			if reason != dropStopped.String() {
				x.Lost += n
			}
		}
	}
	return x
}

// cpu is the CPU time that forwarding took so far.
func (f *forwarder) cpu() (sum time.Duration) {
	for _, w := range f.all() {
		if sum += w.clock.used(); cpuScope != "threads" {
			break // all workers read the same clock
		}
	}
	return sum
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// note adds errors to the result.
func (r *result) note(errs []error) {
	for _, err := range errs {
		if err != nil {
			r.Errors = append(r.Errors, strings.Split(err.Error(), "\n")...)
		}
	}
}

// good says whether each frame went where it should.
func (r *result) good() bool {
	return r.Lost+r.Corrupted+r.Duplicated+r.Reordered+r.Foreign == 0 && len(r.Errors) == 0
}

func (r *result) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *result) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "direction\tpackets\tbytes\tpackets/s\tMbit/s\tlost\tcorrupted\tduplicated\treordered\t")
	row := func(name string, packets, bytes, lost, corrupted, duplicated, reordered uint64) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.1f\t%d\t%d\t%d\t%d\t\n", name, packets, bytes,
			ratio(float64(packets), r.DurationS), ratio(float64(bytes)*8/1e6, r.DurationS), lost, corrupted, duplicated, reordered)
	}
	for _, d := range r.Directions {
		row(d.Name, d.Packets, d.Bytes, d.Lost, d.Corrupted, d.Duplicated, d.Reordered)
	}
	row("both", r.Packets, r.Bytes, r.Lost, r.Corrupted, r.Duplicated, r.Reordered)
	err := t.Flush()
	var b strings.Builder
	fmt.Fprintf(&b, "%.2f s, CPU %s, drops: %s", r.DurationS, cpuText(r.CPUNsPerPacket), dropText(r.Drops))
	if r.Filtered > 0 {
		fmt.Fprintf(&b, ", stayed on their side: %d", r.Filtered)
	}
	if r.Unlearned > 0 {
		fmt.Fprintf(&b, ", no room to learn: %d", r.Unlearned)
	}
	if r.Foreign > 0 {
		fmt.Fprintf(&b, ", foreign: %d", r.Foreign)
	}
	for _, d := range r.Directions {
		if d.Injected != nil {
			fmt.Fprintf(&b, "\ninjected from %s: %s", d.Name, dropText(d.Injected))
		}
	}
	verdict := "every frame was forwarded"
	if r.Directions[0].Checked && r.Directions[1].Checked {
		verdict = "every frame arrived once, unchanged and in order"
	}
	if !r.good() {
		verdict = "FAILED"
	}
	_, err2 := fmt.Fprintf(w, "%s\n%s\n", b.String(), verdict)
	return cmp.Or(err, err2)
}

func cpuText(ns float64) string {
	if cpuScope == "none" {
		return "not measured"
	}
	return fmt.Sprintf("%.0f ns/packet (%s)", ns, cpuScope)
}

// dropText lists counts that are not 0.
func dropText(drops map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(drops)) {
		if n := drops[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", reason, n))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// moment is what is counted at a time.
type moment struct {
	at             time.Duration
	packets, bytes uint64
	cpu            time.Duration
}

func (f *forwarder) look(at time.Duration) moment {
	m := moment{at: at, cpu: f.cpu()}
	for d := range f.side {
		s := f.sent(d)
		m.packets += s.packets
		m.bytes += s.bytes
	}
	return m
}

// liveLines prints what happened since the line before.
type liveLines struct {
	f     *forwarder
	w     io.Writer
	start time.Time
	last  moment
}

func (l *liveLines) print() {
	m := l.f.look(time.Since(l.start))
	s := (m.at - l.last.at).Seconds()
	packets := float64(m.packets - l.last.packets)
	drops, damage := map[string]uint64{}, map[string]uint64{}
	var window []string
	for d, side := range l.f.side {
		for reason, n := range l.f.drops(d) {
			drops[reason] += n
		}
		if g := side.handle.Loop; g != nil {
			c := g.Counters()
			window = append(window, fmt.Sprint(c.Outstanding))
			damage["lost"] += c.Lost
			damage["corrupted"] += c.Corrupted
			damage["duplicated"] += c.Duplicated
			damage["reordered"] += c.Reordered
		}
	}
	fmt.Fprintf(l.w, "%4.0f s  %9.0f packets/s  %8.1f Mbit/s  CPU %s  drops: %s", m.at.Seconds(),
		ratio(packets, s), ratio(float64(m.bytes-l.last.bytes)*8/1e6, s),
		cpuText(ratio(float64(m.cpu-l.last.cpu), packets)), dropText(drops))
	if len(window) > 0 {
		fmt.Fprintf(l.w, "  damage: %s  window: %s", dropText(damage), strings.Join(window, "+"))
	}
	fmt.Fprintln(l.w)
	l.last = m
}
