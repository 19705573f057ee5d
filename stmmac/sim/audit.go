package sim

import (
	"fmt"
	"sync"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// ViolationKind is a rule that a driver broke.
type ViolationKind int

// The rules. In the linux profile OWN hands a descriptor over, so OwnMissing,
// TailOvertakes and the first part of OwnedWrite do not apply there.
const (
	// OwnedWrite: a descriptor changed while the device owned it.
	OwnedWrite ViolationKind = iota + 1
	// OwnMissing: the engine reached a descriptor before the tail without OWN.
	OwnMissing
	// StaleFetch: words 0 to 2 of a descriptor before the tail changed after the
	// engine had read them and before it read OWN.
	StaleFetch
	// TailOutside: a tail that lies outside the list.
	TailOutside
	// TailMisaligned: a tail that is not the address of a descriptor.
	TailMisaligned
	// TailOvertakes: a tail that hands over a descriptor which the device owns already.
	TailOvertakes
	// DMAOutside: the device was made to access an address outside all mappings
	// or beyond its address width.
	DMAOutside
	// BufferOutside: a descriptor with OWN whose buffer is not mapped as a whole.
	BufferOutside
	// NoBuffer: a descriptor with OWN and without a valid buffer.
	NoBuffer
	// ConfigRunning: a register changed that must not while the channel or the
	// MAC runs.
	ConfigRunning
	// ConfigInvalid: a value that the hardware would not take as meant.
	ConfigInvalid
	// FirstOnlyBits: bits of the first descriptor of a frame on another one.
	FirstOnlyBits
	// ChainBroken: a frame that does not start with FD, or starts again before LD.
	ChainBroken
	// ChainCut: a tail inside a frame.
	ChainCut
	// ContextInFrame: a context descriptor between FD and LD, or one of all ones.
	ContextInFrame
	// LengthMismatch: the length field of the first transmit descriptor is not
	// the sum of the buffers.
	LengthMismatch
	// FrameBeyondFIFO: a frame that is longer than its store-and-forward queue.
	FrameBeyondFIFO
	// ThresholdTransmit: a transmit queue that does not store and forward.
	ThresholdTransmit
	// StoreInReset: a register written while the software reset runs.
	StoreInReset
	// MDIOMisuse: a management transaction faster than 2.5 MHz, of no known kind,
	// started before the last one ended or while the software reset runs, or in
	// flight when the reset starts.
	MDIOMisuse
	// ChecksumMisuse: a checksum asked for that the transmit engine does not insert
	// or inserts wrong.
	ChecksumMisuse
	// VLANMisuse: an inserted tag that no context descriptor gave, an insertion that
	// the core is not able or not set up to do, or an access to a VLAN filter while
	// another is under way.
	VLANMisuse
	// EEEMisuse: LPI on a link that has not negotiated Energy Efficient Ethernet.
	EEEMisuse
)

var violationNames = [...]string{"", "OwnedWrite", "OwnMissing", "StaleFetch", "TailOutside", "TailMisaligned", "TailOvertakes",
	"DMAOutside", "BufferOutside", "NoBuffer", "ConfigRunning", "ConfigInvalid", "FirstOnlyBits", "ChainBroken", "ChainCut",
	"ContextInFrame", "LengthMismatch", "FrameBeyondFIFO", "ThresholdTransmit", "StoreInReset", "MDIOMisuse",
	"ChecksumMisuse", "VLANMisuse", "EEEMisuse"}

// String returns the name of the kind.
func (k ViolationKind) String() string {
	if k <= 0 || int(k) >= len(violationNames) {
		return fmt.Sprintf("ViolationKind(%d)", int(k))
	}
	return violationNames[k]
}

// Violation is something that a driver did and the databook forbids.
type Violation struct {
	Kind    ViolationKind
	Channel int // -1: none
	Tx      bool
	Index   int // of the descriptor; -1: none
	Text    string
}

// String describes the violation in one line.
func (v Violation) String() string {
	s := v.Kind.String()
	if v.Channel >= 0 {
		d := "rx"
		if v.Tx {
			d = "tx"
		}
		s += fmt.Sprintf(" %s channel %d", d, v.Channel)
	}
	if v.Index >= 0 {
		s += fmt.Sprintf(" descriptor %d", v.Index)
	}
	return s + ": " + v.Text
}

// maxViolations bounds what a driver that does everything wrong can make the
// model remember.
const maxViolations = 1000

// auditor collects violations.
type auditor struct {
	off  bool
	mu   sync.Mutex
	list []Violation
}

// Audit returns the violations so far, the first 1000 of them, oldest first.
func (m *Model) Audit() []Violation {
	m.audit.mu.Lock()
	defer m.audit.mu.Unlock()
	return append([]Violation(nil), m.audit.list...)
}

// report records a violation.
func (m *Model) report(v Violation, format string, args ...any) {
	a := &m.audit
	if a.off {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.list); n > 0 && v.Index >= 0 {
		if l := a.list[n-1]; l.Kind == v.Kind && l.Channel == v.Channel && l.Tx == v.Tx && l.Index == v.Index {
			return // an engine that looks again finds the same again
		}
	}
	if len(a.list) < maxViolations {
		v.Text = fmt.Sprintf(format, args...)
		a.list = append(a.list, v)
	}
}

func (r *ring) report(k ViolationKind, index int, format string, args ...any) {
	r.m.report(Violation{Kind: k, Channel: r.ch, Tx: r.tx, Index: index}, format, args...)
}

// ringAudit is what the audit knows of a descriptor list: for each descriptor that
// was handed over by a tail write, its words at that moment. The owner of the
// queue adds to it and the engine takes from it, each under mu.
type ringAudit struct {
	mu     sync.Mutex
	live   bool // the channel runs
	base   uint64
	n      uint32
	stride uint32
	front  uint32
	tail   uint32 // index up to which descriptors were handed over
	owned  []bool
	snap   []words
}

// auditStart begins with the descriptors from the current one to the tail.
func (r *ring) auditStart() {
	a := r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = true
	a.base, a.n, a.stride, a.front = r.base, r.n, r.stride, r.front
	if uint32(len(a.owned)) < a.n {
		a.owned = make([]bool, a.n)
		a.snap = make([]words, a.n)
	}
	clear(a.owned)
	a.tail = r.cur
	if low := uint32(r.base); uint64(low)+uint64(r.n)*uint64(r.stride) > 1<<32 {
		r.report(ConfigInvalid, -1, "the list of %d descriptors at %#x crosses 4 GiB", r.n, r.base)
	}
	r.handOver(r.tail)
}

func (r *ring) auditStop() {
	r.audit.mu.Lock()
	r.audit.live = false
	r.audit.mu.Unlock()
}

// auditTail looks at a tail before the engine sees it.
func (r *ring) auditTail(tail uint32) {
	a := r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.live {
		r.handOver(tail)
	}
}

// handOver takes a snapshot of the descriptors between the last tail and this one.
// In the linux profile OWN hands over, not the tail.
func (r *ring) handOver(tail uint32) {
	a := r.audit
	d := tail - uint32(a.base)
	size := a.n * a.stride
	switch {
	case d == size && r.m.cfg.Profile == Linux:
		return
	case d >= size:
		r.report(TailOutside, -1, "tail %#x, list of %d descriptors at %#x", tail, a.n, a.base)
		return
	case d%a.stride != 0:
		r.report(TailMisaligned, -1, "tail %#x, list at %#x, %d bytes a descriptor", tail, a.base, a.stride)
		return
	}
	if r.m.cfg.Profile == Linux {
		return
	}
	for end := d / a.stride; a.tail != end; {
		i := a.tail
		if a.owned[i] {
			r.report(TailOvertakes, int(i), "tail %#x hands it over again", tail)
		}
		if w, ok := r.peek(i); ok {
			a.owned[i], a.snap[i] = true, w
		}
		if a.tail++; a.tail == a.n {
			a.tail = 0
		}
	}
}

// peek reads a descriptor for the audit, on any goroutine.
func (r *ring) peek(i uint32) (w words, ok bool) {
	a := r.audit
	p := r.m.window(a.base+uint64(i)*uint64(a.stride)+uint64(a.front), r4.DescSize)
	if p == nil {
		return w, false
	}
	for k := range w {
		w[k] = uint32(p[4*k]) | uint32(p[4*k+1])<<8 | uint32(p[4*k+2])<<16 | uint32(p[4*k+3])<<24
	}
	return w, true
}

// auditFetch compares the fetched descriptor with what was handed over.
func (r *ring) auditFetch() {
	a := r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	switch i := r.cur; {
	case !a.live || i >= a.n:
	case r.m.cfg.Profile == Linux:
		a.owned[i], a.snap[i] = true, r.fetched
	case a.owned[i] && a.snap[i] != r.fetched:
		r.report(OwnedWrite, int(i), "handed over as %08x, fetched as %08x", a.snap[i], r.fetched)
		a.snap[i] = r.fetched
	}
}

// auditWriteBack compares the descriptor as it is now with what was handed over;
// with that the device's ownership ends.
func (r *ring) auditWriteBack() {
	a := r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	i := r.cur
	if !a.live || i >= a.n || !a.owned[i] {
		return
	}
	a.owned[i] = false
	if w, ok := r.peek(i); ok && w != a.snap[i] {
		r.report(OwnedWrite, int(i), "fetched as %08x, written back over %08x", a.snap[i], w)
	}
}

// reachable says for the audit whether the device reaches all n bytes at addr.
func (m *Model) reachable(addr uint64, n int) bool {
	if n <= 0 || m.window(addr, n) != nil {
		return true
	}
	var b [1]byte
	end := addr + uint64(n-1)
	return end >= addr && end>>m.cfg.AddrWidth == 0 && m.dma.Read(addr, b[:]) == nil && m.dma.Read(end, b[:]) == nil
}
