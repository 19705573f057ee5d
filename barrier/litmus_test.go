package barrier_test

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
)

// These tests judge the barriers of the machine they run on: x86 shows only a missing DMAFull, a weakly ordered machine
// every one of them.

// iterations returns full with GOSTMMAC_LONG=1, a hundredth otherwise.
func iterations(t *testing.T, full uint32) uint32 {
	t.Helper()
	if os.Getenv("GOSTMMAC_LONG") == "1" {
		return full
	}
	n := max(full/100, 10)
	t.Logf("%d of %d iterations; GOSTMMAC_LONG=1 runs all", n, full)
	return n
}

// pause gives way to the other side now and then, for it may have no processor of its own.
//
//go:norace
func pause(wait int) {
	if wait%256 == 0 {
		runtime.Gosched()
	}
}

type descriptor struct{ addr, length, rsvd, own uint32 }

// fill and read are the plain accesses of a ring; the race detector knows nothing of the barriers around them.
//
//go:noinline
//go:norace
func (d *descriptor) fill(seq uint32) { d.addr, d.length, d.rsvd = seq, ^seq, seq*3 }

//go:noinline
//go:norace
func (d *descriptor) read() (addr, length, rsvd uint32) { return d.addr, d.length, d.rsvd }

type ring struct {
	frames [32][2]descriptor
	torn   atomic.Bool // the engine has seen a torn frame and takes no more
}

// drive is the driver's side: the OWN word of the first descriptor is stored last, so whoever sees it sees both bodies
// and the other OWN word.
//
//go:norace
func (r *ring) drive(n uint32) {
	for seq := range n {
		f := &r.frames[seq%uint32(len(r.frames))]
		for wait := 1; barrier.LoadOwn(&f[0].own)|barrier.LoadOwn(&f[1].own) != 0; wait++ {
			if r.torn.Load() {
				return
			}
			pause(wait)
		}
		// The stores wait for the loads above: they depend on them by a branch.
		f[0].fill(seq)
		f[1].fill(^seq)
		barrier.StoreOwn(&f[1].own, 1)
		barrier.DMAWrite() // bodies and the second OWN word before the first OWN word
		barrier.StoreOwn(&f[0].own, 1)
	}
}

// engine is the device's side. It returns how many frames it took, and the next one if that was torn. The driver rewrites
// a frame at once, so a body that was read after its OWN word went back is of a later frame.
//
//go:norace
func (r *ring) engine(n uint32) (taken uint32, torn *[2]descriptor) {
	for seq := range n {
		f := &r.frames[seq%uint32(len(r.frames))]
		for wait := 1; barrier.LoadOwn(&f[0].own) == 0; wait++ {
			pause(wait)
		}
		barrier.DMARead() // first OWN word before everything else
		own := barrier.LoadOwn(&f[1].own)
		a0, l0, r0 := f[0].read()
		a1, l1, r1 := f[1].read()
		if own != 1 || a0 != seq || l0 != ^seq || r0 != seq*3 || a1 != ^seq || l1 != seq || r1 != ^seq*3 {
			r.torn.Store(true)
			return seq, &[2]descriptor{{a0, l0, r0, 1}, {a1, l1, r1, own}}
		}
		barrier.DMARelease() // bodies read before OWN goes back
		barrier.StoreOwn(&f[1].own, 0)
		barrier.StoreOwn(&f[0].own, 0)
	}
	return n, nil
}

func TestD04OwnNotOvertaken(t *testing.T) {
	n := iterations(t, 1_000_000_000)
	var (
		r     ring
		wg    sync.WaitGroup
		taken uint32
		torn  *[2]descriptor
	)
	wg.Go(func() { r.drive(n) })
	wg.Go(func() { taken, torn = r.engine(n) })
	wg.Wait()
	if torn != nil {
		t.Fatalf("frame %d is torn: %#x", taken, *torn)
	}
	for i := range r.frames {
		if f := &r.frames[i]; f[0].own != 0 || f[1].own != 0 {
			t.Errorf("slot %d was not given back", i)
		}
	}
	if taken != n {
		t.Fatalf("%d of %d frames arrived", taken, n)
	}
}

// line keeps a word alone in its cache line, and in the pair that a prefetcher fetches.
type line struct {
	w uint32
	_ [252]byte
}

// rounds between two comparisons of what the sides saw.
const chunk = 1024

// pair is a store-buffer litmus: each side stores its word and loads the word of the other.
type pair struct {
	word, round [2]line
	seen        [2][chunk]uint32
}

// side runs rounds base+1 to base+count of one side.
//
//go:norace
func (p *pair) side(me int, base, count uint32, order func()) {
	for k := range count {
		i := base + k + 1
		barrier.DMAFull() // the load of the last round before the sides meet
		barrier.StoreOwn(&p.round[me].w, i)
		for wait := 1; int32(barrier.LoadOwn(&p.round[1-me].w)-i) < 0; wait++ { // the other may be one ahead
			pause(wait)
		}
		barrier.DMAFull()
		// The sides part by the flight of a cache line: let each be the late one, more and less.
		for range int(i) % 32 * (me ^ int(i>>5)&1) {
			barrier.DMARead()
		}
		barrier.StoreOwn(&p.word[me].w, i)
		order()
		p.seen[me][k] = barrier.LoadOwn(&p.word[1-me].w)
	}
}

// storeBuffer returns in how many of n rounds both loads missed the store of the other side.
func storeBuffer(n uint32, order func()) (both uint32) {
	var p pair
	for base := uint32(0); base < n; base += chunk {
		count := min(chunk, n-base)
		var wg sync.WaitGroup
		for me := range 2 {
			wg.Go(func() { p.side(me, base, count, order) })
		}
		wg.Wait()
		for k := range count {
			if i := base + k + 1; p.seen[0][k] != i && p.seen[1][k] != i {
				both++
			}
		}
	}
	return both
}

// Ring re-arm: store OWN, then load whether the engine stopped. Without a full barrier either side can miss the other.
func TestDMAFullStoreToLoad(t *testing.T) {
	n := iterations(t, 20_000_000)
	if both := storeBuffer(n, barrier.DMAFull); both != 0 {
		t.Errorf("DMAFull let a load pass an earlier store in %d of %d rounds", both, n)
	}
	// How sharp the test is on this machine; zero with one processor.
	t.Logf("with DMAWrite instead: %d of %d rounds", storeBuffer(n, barrier.DMAWrite), n)
}
