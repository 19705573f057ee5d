package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
)

const (
	// injectHeld is how many frames may be held back at once, and injectDepth how
	// many others one lets pass at most.
	injectHeld  = 16
	injectDepth = 8

	etherTypeOff = 12
	tpidCustomer = 0x8100 // IEEE 802.1Q
	tpidService  = 0x88a8 // IEEE 802.1ad
)

// FaultCounts says how many frames an [Injector] did what to.
type FaultCounts struct{ Drop, CRC, Corrupt, Dup, Reorder uint64 }

// Injector damages frames on their way from a wire to the MAC. Each frame has
// one fault at most, and the same seed has the same faults.
type Injector struct {
	w      Wire
	below  [5]uint64 // cumulative rates, in units of 2^-53
	rnd    *rand.PCG
	again  Frame // to be given once more
	twice  bool
	buf    []byte // of a corrupted or a released frame
	held   [injectHeld]heldFrame
	nheld  int
	closed atomic.Bool
	count  [5]atomic.Uint64
}

// heldFrame is a frame that lets others pass.
type heldFrame struct {
	buf []byte
	bad bool
	let int // so many more
}

// NewInjector puts an injector before w. Rates below 0 and NaN count as 0, and
// what is above 1 in the sum, in the order of [FaultRates], is cut off.
//
// The injector gives a held frame when it has let the next one to eight frames
// pass, or when w has none (it may come after w said that it is drained), so that
// no frame stays behind. A corrupted frame
// has another byte somewhere behind its EtherType (of the last VLAN tag) and a
// good FCS; one that ends there stays as it is. A frame to be held stays in its
// place when 16 are held already.
func NewInjector(w Wire, f FaultRates) *Injector {
	i := &Injector{w: w, rnd: rand.NewPCG(f.Seed, 0)}
	sum := 0.0
	for n, rate := range f.rates() {
		if rate > 0 { // not so for NaN
			sum = min(sum+rate, 1)
		}
		i.below[n] = uint64(sum * (1 << 53))
	}
	return i
}

// Counts returns what was done so far. It may be called by any goroutine.
func (i *Injector) Counts() FaultCounts {
	return FaultCounts{
		Drop: i.count[faultDrop].Load(), CRC: i.count[faultCRC].Load(), Corrupt: i.count[faultCorrupt].Load(),
		Dup: i.count[faultDup].Load(), Reorder: i.count[faultReorder].Load(),
	}
}

// Transmit implements [Wire]: frames from the MAC pass unharmed.
func (i *Injector) Transmit(f Frame) bool { return i.w.Transmit(f) }

// Receive implements [Wire].
func (i *Injector) Receive() (Frame, bool) {
	// Dropping every frame of a busy wire ends with Close at the latest.
	for !i.closed.Load() {
		if i.twice {
			i.twice = false
			return i.pass(i.again)
		}
		if i.nheld > 0 && i.held[0].let <= 0 {
			return i.release()
		}
		f, ok := i.w.Receive()
		if !ok {
			if i.nheld > 0 && !i.closed.Load() {
				return i.release()
			}
			break
		}
		switch i.draw() {
		case faultDrop:
			i.count[faultDrop].Add(1)
			continue
		case faultCRC:
			i.count[faultCRC].Add(1)
			f.BadFCS = true
		case faultCorrupt:
			f = i.corrupt(f)
		case faultDup:
			i.count[faultDup].Add(1)
			// Still valid at the next call, which does not ask w.
			i.again, i.twice = f, true
		case faultReorder:
			if i.hold(f) {
				continue
			}
		}
		return i.pass(f)
	}
	return Frame{}, false
}

// draw returns the fault of the next frame.
func (i *Injector) draw() faultKind {
	if i.below[len(i.below)-1] == 0 {
		return faultNone
	}
	x := i.rnd.Uint64() >> 11
	for n, limit := range i.below {
		if x < limit {
			return faultKind(n)
		}
	}
	return faultNone
}

// pass gives a frame, which passes those that are held.
func (i *Injector) pass(f Frame) (Frame, bool) {
	for n := range i.held[:i.nheld] {
		i.held[n].let--
	}
	return f, true
}

// corrupt returns a copy of f with one other byte.
func (i *Injector) corrupt(f Frame) Frame {
	start := payloadOff(f.Data)
	if start >= len(f.Data) {
		return f
	}
	i.count[faultCorrupt].Add(1)
	i.buf = append(i.buf[:0], f.Data...)
	x := i.rnd.Uint64()
	i.buf[start+int(x>>8%uint64(len(f.Data)-start))] ^= byte(x%255 + 1)
	f.Data = i.buf
	return f
}

// payloadOff returns where the payload starts: behind addresses, tags, type.
func payloadOff(b []byte) int {
	off := etherTypeOff
	for len(b) >= off+2 {
		if t := binary.BigEndian.Uint16(b[off:]); t != tpidCustomer && t != tpidService {
			break
		}
		off += 4
	}
	return off + 2
}

// hold keeps a copy of f, sorted by when it is due.
func (i *Injector) hold(f Frame) bool {
	if i.nheld == len(i.held) {
		return false
	}
	i.count[faultReorder].Add(1)
	h := i.held[i.nheld] // its buffer is free
	h.buf = append(h.buf[:0], f.Data...)
	h.bad = f.BadFCS
	h.let = 1 + int(i.rnd.Uint64()%injectDepth)
	at := i.nheld
	for ; at > 0 && i.held[at-1].let > h.let; at-- {
		i.held[at] = i.held[at-1]
	}
	i.held[at] = h
	i.nheld++
	return true
}

// release gives the held frame that is due first.
func (i *Injector) release() (Frame, bool) {
	h := i.held[0]
	i.nheld--
	copy(i.held[:i.nheld], i.held[1:])
	// The buffer given last is free now, and this one is until the next call.
	h.buf, i.buf = i.buf, h.buf
	i.held[i.nheld] = h
	return i.pass(Frame{Data: i.buf, BadFCS: h.bad})
}

// Elastic implements [Wire].
func (i *Injector) Elastic() bool { return i.w.Elastic() }

// Notify implements [Wire].
func (i *Injector) Notify(f func()) { i.w.Notify(f) }

// Close implements [Wire].
func (i *Injector) Close() error {
	i.closed.Store(true)
	return i.w.Close()
}
