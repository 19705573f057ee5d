package pagepool

import (
	"errors"
	"math"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestNewRefuses(t *testing.T) {
	noLeak(t)
	m := newBus(t, 0, false)
	for name, f := range map[string]func() (*Pool, error){
		"no buffers":         func() (*Pool, error) { return New(m, 0) },
		"fewer than none":    func() (*Pool, error) { return New(m, -1) },
		"too many":           func() (*Pool, error) { return New(m, math.MaxInt, WithBufSize(MaxBufSize)) },
		"too small":          func() (*Pool, error) { return New(m, 1, WithBufSize(255)) },
		"too large":          func() (*Pool, error) { return New(m, 1, WithBufSize(MaxBufSize+1)) },
		"negative size":      func() (*Pool, error) { return New(m, 1, WithBufSize(-1)) },
		"negative headroom":  func() (*Pool, error) { return New(m, 1, WithHeadroom(-1)) },
		"headroom too large": func() (*Pool, error) { return New(m, 1, WithHeadroom(2049)) },
	} {
		if p, err := f(); p != nil || !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, p, err)
		} else {
			wantTyped(t, err, os.ErrInvalid)
		}
	}
	if m.maps+m.alloc != 0 {
		t.Error("the device was asked for memory")
	}
}

// The number of buffers that are allowed is computed without overflow where int
// has 32 bits: small buffers allow 1 << 32.
func TestGrowSmallBuffers(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 1, WithBufSize(256))
	if err := p.Grow(3); err != nil || p.Size() != 4 {
		t.Errorf("size %d, %v", p.Size(), err)
	}
	closeAll(t, p)
}

// TestLayout checks what the hardware and the caches ask of the layout.
func TestLayout(t *testing.T) {
	noLeak(t)
	for _, brings := range []bool{false, true} {
		for _, size := range []int{256, 1600, 2048, 4096, MaxBufSize} {
			m := newBus(t, 1<<32, brings)
			p := newPool(t, m, 9, perArena(4), WithBufSize(size))
			mp := attach(t, p, m)
			if p.Size() != 9 || m.mapped() != 3 {
				t.Errorf("%d buffers in %d arenas, want 9 in 3", p.Size(), m.mapped())
			}
			bufs := alloc(t, p, 9)
			type piece struct{ first, end uintptr }
			var chunks, records []piece
			for _, b := range bufs {
				b.Reset(0)
				b.SetLen(p.BufSize())
				at := uintptr(unsafe.Pointer(&b.Bytes()[0]))
				if at%uintptr(CacheLine) != 0 {
					t.Errorf("a chunk at %#x", at)
				}
				chunks = append(chunks, piece{at, at + uintptr(p.BufSize())})
				rec := uintptr(unsafe.Pointer(b))
				if rec%RecordSize != 0 {
					t.Errorf("a record at %#x", rec)
				}
				records = append(records, piece{rec, rec + RecordSize})
				for off, want := range map[int]uintptr{0: at, p.BufSize() - 1: at + uintptr(p.BufSize()-1)} {
					if got := busAt(m, mp.View(), b, off); got != want {
						t.Errorf("the device reaches %#x for offset %d, which is at %#x", got, off, want)
					}
				}
			}
			for i, a := range chunks {
				for j, b := range chunks {
					if i != j && a.first < b.end && b.first < a.end {
						t.Errorf("chunks %d and %d overlap", i, j)
					}
				}
				for _, r := range records {
					if a.first < r.end && r.first < a.end {
						t.Error("a record lies in a chunk")
					}
				}
				if i > 0 && bufs[i].arena == bufs[i-1].arena {
					if d := a.first - chunks[i-1].first; d%uintptr(CacheLine) != 0 || d/uintptr(CacheLine)%2 != 1 {
						t.Errorf("chunks are %d bytes apart", d)
					}
				}
			}
			// no device reaches a record
			for _, mem := range m.live {
				first := uintptr(unsafe.Pointer(&mem[0]))
				for _, r := range records {
					if r.first < first+uintptr(len(mem)) && first < r.end {
						t.Error("a record is mapped for the device")
					}
				}
			}
			p.FreeBatch(bufs)
			closeAll(t, mp, p)
			if m.mapped() != 0 {
				t.Errorf("%d mappings left", m.mapped())
			}
		}
	}
}

// busAt is where the device finds offset off of the chunk of b.
func busAt(m *bus, v *View, b *Buf, off int) uintptr {
	return uintptr(m.at(v.Bus().Chunk(b) + uint64(off)))
}

// The page in front of the payload cannot be touched, and a payload stays out
// of the children of the process and of its core dumps.
func TestProtection(t *testing.T) {
	for name, opts := range map[string][]Option{"small": {WithSmallPages()}, "auto": nil} {
		// large enough for huge pages
		p := newPool(t, newBus(t, 0, false), 2048, opts...)
		b := alloc(t, p, 1)[0]
		b.Reset(0)
		b.SetLen(1)
		payload := uintptr(unsafe.Pointer(&b.Bytes()[0]))
		flags := vmFlags(t, payload)
		if !flags["dc"] || !flags["dd"] || !flags["rd"] || !flags["wr"] || flags["ex"] {
			t.Errorf("%s: payload with VmFlags %v", name, flags)
		}
		if p.Memory().Locked != flags["lo"] {
			t.Errorf("%s: locked %v, VmFlags %v", name, p.Memory().Locked, flags)
		}
		end := payload + uintptr(p.Memory().Bytes)
		for what, at := range map[string]uintptr{"in front of": payload - 1, "behind": end} {
			if line := inMaps(t, at); !strings.Contains(line, "---p") {
				t.Errorf("%s: the page %s the payload: %q", name, what, line)
			}
		}
		rec := inMaps(t, uintptr(unsafe.Pointer(b)))
		if !strings.Contains(rec, "rw-p") || rec == inMaps(t, payload) {
			t.Errorf("%s: the records: %q", name, rec)
		}
		p.Free(b)
		closeAll(t, p)
	}
}

func TestHugePages(t *testing.T) {
	free, err := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if err != nil || len(free) < 2 || string(free) == "0\n" || string(free) == "1\n" {
		t.Skipf("fewer than 2 free huge pages of 2 MiB: %q %v", strings.TrimSpace(string(free)), err)
	}
	noLeak(t)
	m := newBus(t, 0, false)
	p := newPool(t, m, hugePage/2112+1) // a little more than a page
	mp := attach(t, p, m)
	info := p.Memory()
	if !info.Huge || info.Bytes != 2*hugePage {
		t.Errorf("memory %+v", info)
	}
	for _, mem := range m.live {
		at := uintptr(unsafe.Pointer(&mem[0]))
		if at%hugePage != 0 || len(mem) != 2*hugePage {
			t.Errorf("%d bytes at %#x", len(mem), at)
		}
		if f := vmFlags(t, at); !f["ht"] || !f["dc"] {
			t.Errorf("VmFlags %v", f)
		}
		clear(mem)
	}
	closeAll(t, mp, p)
	q := newPool(t, m, 2048, WithSmallPages())
	if q.Memory().Huge {
		t.Error("small pages are huge")
	}
	closeAll(t, q)
}

func TestMemoryInfo(t *testing.T) {
	m := newBus(t, 0, true)
	p := newPool(t, m, 8, perArena(4))
	if got, want := p.Memory(), (MemoryInfo{Arenas: 2, Bytes: 2 * roundUp(4*stride(2048), os.Getpagesize()), OfDevice: true}); got != want {
		t.Errorf("memory %+v, want %+v", got, want)
	}
	closeAll(t, p)
	if got := p.Memory(); got != (MemoryInfo{}) {
		t.Errorf("memory of a closed pool: %+v", got)
	}
}

// What a device brings is cleared: it may hold what others received.
func TestDeviceMemoryIsCleared(t *testing.T) {
	p := newPool(t, newBus(t, 0, true), 1)
	b := alloc(t, p, 1)[0]
	b.Reset(0)
	b.SetLen(p.BufSize())
	for i, v := range b.Bytes() {
		if v != 0 {
			t.Fatalf("byte %d is %#x", i, v)
		}
	}
	p.Free(b)
	closeAll(t, p)
}

func TestEmpty(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 2)
	bufs := alloc(t, p, 2)
	if b, err := p.Alloc(); b != nil || !errors.Is(err, ErrEmpty) {
		t.Errorf("from an empty pool: %v, %v", b, err)
	}
	if n := p.AllocBatch(make([]*Buf, 3)); n != 0 {
		t.Errorf("%d buffers of an empty pool", n)
	}
	p.Free(bufs[1])
	if n := p.AllocBatch(bufs[1:]); n != 1 {
		t.Errorf("%d buffers", n)
	}
	p.FreeBatch(bufs)
	p.FreeBatch(nil)
	p.Free(nil)
	if p.Misfreed() != 0 || p.InUse() != 0 {
		t.Errorf("%d misfreed, %d in use", p.Misfreed(), p.InUse())
	}
	closeAll(t, p)
}

func TestMisfreed(t *testing.T) {
	noLeak(t)
	p := newPool(t, newBus(t, 0, false), 2, WithSmallPages())
	q := newPool(t, newBus(t, 0, false), 2, WithSmallPages())
	bufs, foreign := alloc(t, p, 2), alloc(t, q, 2)
	p.Free(bufs[0])
	p.Free(bufs[0])
	p.FreeBatch([]*Buf{bufs[0], foreign[0], foreign[1]})
	p.Free(&Buf{})
	if got := p.Misfreed(); got != 5 {
		t.Errorf("%d misfreed, want 5", got)
	}
	if p.InUse() != 1 || q.InUse() != 2 || q.Misfreed() != 0 {
		t.Errorf("%d and %d in use", p.InUse(), q.InUse())
	}
	if a, b := alloc0(t, p), alloc0(t, p); a == nil || b != nil {
		t.Error("a buffer that was freed twice is in the pool twice")
	}
	p.FreeBatch(bufs)
	q.FreeBatch(foreign)
	closeAll(t, p, q)
	// the memory is gone, so it must not even be looked at
	p.Free(bufs[1])
	p.FreeBatch(bufs)
	if got := p.Misfreed(); got != 8 {
		t.Errorf("%d misfreed, want 8", got)
	}
}

func TestOwners(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 4)
	a, b := p.Owner("rx0"), p.Owner("tx0")
	if a == b || a == p.owner || b == p.owner || p.Owner("rx0") != a || p.Owner("application") == a {
		t.Errorf("owners %d and %d", a, b)
	}
	// a holder cannot pass for the pool, whose buffers are free
	if p.Owner("pool") == p.owner {
		t.Error("a holder is the pool")
	}
	bufs := alloc(t, p, 4)
	bufs[0].SetOwner(a)
	bufs[1].SetOwner(a)
	bufs[2].SetOwner(b)
	h := p.Holders()
	if len(h) != 3 || h["rx0"] != 2 || h["tx0"] != 1 || h["application"] != 1 || p.InUse() != 4 {
		t.Errorf("holders %v, in use %d", h, p.InUse())
	}
	bufs[3].SetOwner(p.owner.with(999))
	if h := p.Holders(); h["unknown"] != 1 || p.InUse() != 4 {
		t.Errorf("holders %v", h)
	}
	// what a queue holds is not the application's to free
	p.FreeBatch(bufs)
	if p.InUse() != 4 || p.Misfreed() != 4 {
		t.Errorf("in use %d, misfreed %d", p.InUse(), p.Misfreed())
	}
	for _, b := range bufs {
		b.SetOwner(p.owner.with(holderApplication))
	}
	p.FreeBatch(bufs)
	closeAll(t, p)
}

func TestClose(t *testing.T) {
	noLeak(t)
	m := newBus(t, 0, false)
	p := newPool(t, m, 4)
	mp := attach(t, p, m)
	err := p.Close()
	wantTyped(t, err, nil)
	var leak *LeakError
	if errors.As(err, &leak) {
		t.Errorf("closing with a device attached: %v", err)
	}
	// nothing has changed
	p.FreeBatch(alloc(t, p, 4))
	closeAll(t, mp, mp, p, p)
	if b, err := p.Alloc(); b != nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("alloc: %v, %v", b, err)
	} else {
		wantTyped(t, err, ErrClosed)
	}
	wantTyped(t, p.Grow(1), ErrClosed)
	_, err = p.Attach(m)
	wantTyped(t, err, ErrClosed)
	if p.AllocBatch(make([]*Buf, 1)) != 0 || p.Size() != 0 || p.InUse() != 0 {
		t.Error("a closed pool has buffers")
	}
	if v := mp.View(); v.End() != 0 {
		t.Error("a closed mapping has addresses")
	}
	if _, _, ok := mp.View().Lookup(&Buf{}); ok {
		t.Error("a closed mapping knows a buffer")
	}
}

func TestCloseWhileHeld(t *testing.T) {
	noLeak(t)
	for _, brings := range []bool{false, true} {
		for _, how := range []string{"free", "batch", "chain", "cache"} {
			before := dontFork(t)
			m := newBus(t, 0, brings)
			p := newPool(t, m, 6, perArena(3), WithSmallPages())
			mp := attach(t, p, m)
			c := p.NewCache()
			v := mp.View()
			bufs := alloc(t, p, 3)
			taken := make([]Handle, 1)
			if c.Take(taken, p.Owner("rx0")) != 1 {
				t.Fatal("no buffer")
			}
			bufs = append(bufs, v.Buf(taken[0]))
			for i, b := range bufs {
				b.SetData([]byte{1, 2, 3, byte(i)})
				b.SetOwner(p.Owner("me"))
			}
			bufs[0].SetOwner(p.Owner("other"))
			closeAll(t, mp)
			var leak *LeakError
			if err := p.Close(); !errors.As(err, &leak) || leak.Holders["me"] != 3 || leak.Holders["other"] != 1 || len(leak.Holders) != 2 {
				t.Fatalf("%s: closing gave %v", how, err)
			} else if s := err.Error(); !strings.Contains(s, "4 buffers") || !strings.Contains(s, "me 3") || !strings.Contains(s, "other 1") {
				t.Errorf("%s: %q", how, s)
			}
			if err := p.Close(); err != nil {
				t.Errorf("%s: closing again: %v", how, err)
			}
			if !brings && m.mapped() != 0 {
				t.Errorf("%s: the device still reaches the memory", how)
			}
			// readable, and no longer given out
			for i, b := range bufs {
				if d := b.Bytes(); len(d) != 4 || d[3] != byte(i) {
					t.Errorf("%s: buffer %d holds %x", how, i, d)
				}
			}
			if c.Take(taken, p.Owner("rx0")) != 0 || alloc0closed(t, p) != nil {
				t.Errorf("%s: a closed pool gave a buffer", how)
			}
			handles := func(bs []*Buf) (hs []Handle) {
				for _, b := range bs {
					h, _, ok := v.Lookup(b)
					if !ok {
						t.Fatalf("%s: a held buffer is unknown", how)
					}
					hs = append(hs, h)
				}
				return hs
			}
			for _, b := range bufs {
				b.SetOwner(p.owner.with(holderApplication))
			}
			last := bufs[3]
			p.Free(bufs[0])
			if last.Bytes()[3] != 3 {
				t.Errorf("%s: the memory changed", how)
			}
			switch how {
			case "free":
				p.Free(bufs[1])
				p.Free(bufs[2])
				_ = last.Bytes()[0]
				p.Free(last)
			case "batch":
				p.FreeBatch(bufs[1:])
			case "chain":
				bufs[1].SetNext(bufs[2])
				bufs[2].SetNext(last)
				last.SetNext(bufs[1]) // behind the last the memory is gone
				p.Free(bufs[1])
			case "cache":
				c.Put(handles(bufs[1:3]))
				_ = last.Bytes()[0]
				c.Put(handles(bufs[3:]))
			}
			if got := dontFork(t); got != before || m.mapped() != 0 {
				t.Errorf("%s: %d KiB more of payload after the last buffer was freed, %d pieces of the device", how, got-before, m.mapped())
			}
			c.Flush()
			if c.Take(taken, p.Owner("rx0")) != 0 {
				t.Errorf("%s: the cache gave a buffer of a pool that is gone", how)
			}
		}
	}
}

func alloc0s(p *Pool, n int) []*Buf {
	bufs := make([]*Buf, n)
	return bufs[:p.AllocBatch(bufs)]
}

func alloc0closed(t *testing.T, p *Pool) *Buf {
	t.Helper()
	b, err := p.Alloc()
	if !errors.Is(err, ErrClosed) {
		t.Errorf("alloc: %v", err)
	}
	return b
}

// A pool can be made and closed any number of times.
func TestReopen(t *testing.T) {
	noLeak(t)
	lines := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	before := 0
	for i := range 101 {
		m := newBus(t, 0, i%2 == 1)
		p := newPool(t, m, 64, perArena(32))
		mp := attach(t, p, m)
		mem, err := NewMemory(m, 100, 64)
		if err != nil {
			t.Fatal(err)
		}
		p.FreeBatch(alloc(t, p, 64))
		closeAll(t, mem, mp, p)
		if m.mapped() != 0 {
			t.Fatalf("round %d: %d mappings left", i, m.mapped())
		}
		if i == 0 {
			before = lines()
		}
	}
	// a leak would leave three or more of each round
	if n := lines(); n > before+50 {
		t.Errorf("%d mappings after 100 rounds, %d before", n, before)
	}
}

// The hot calls do not allocate, not even when a pool that has grown is full
// for the first time.
func TestNoAllocations(t *testing.T) {
	m := newBus(t, 0, false)
	p := newPool(t, m, 512)
	held := alloc(t, p, 512)
	if err := p.Grow(2048); err != nil {
		t.Fatal(err)
	}
	// AllocsPerRun rounds one allocation in many calls to none
	if cap(p.free) < p.Size() {
		t.Errorf("the free list has room for %d of %d buffers", cap(p.free), p.Size())
	}
	mp := attach(t, p, m)
	c := p.NewCache()
	rest := alloc(t, p, 2048)
	i := 0
	free := func() { p.Free(rest[i]); i++ }
	if n := testing.AllocsPerRun(2000, free); n != 0 {
		t.Errorf("Free into a grown pool: %v allocations", n)
	}
	p.FreeBatch(rest[i:])
	if n := testing.AllocsPerRun(1, func() { p.FreeBatch(held) }); n != 0 {
		t.Errorf("FreeBatch: %v allocations", n)
	}
	if p.InUse() != 0 {
		t.Fatalf("%d in use", p.InUse())
	}
	batch, handles, sum := make([]*Buf, 64), make([]Handle, 700), 0
	v, rx := mp.View(), p.Owner("rx0")
	for name, f := range map[string]func(){
		"Alloc": func() {
			b, err := p.Alloc()
			if err != nil {
				t.Fatal(err)
			}
			b.SetLen(64)
			sum += len(b.Bytes())
			p.Free(b)
		},
		"AllocBatch": func() { p.FreeBatch(batch[:p.AllocBatch(batch)]) },
		"Take":       func() { c.Put(handles[:c.Take(handles, rx)]) },
		"Lookup": func() {
			h, _, _ := v.Lookup(held[0])
			v.Buf(h).SetNext(nil)
		},
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	c.Flush()
	closeAll(t, mp, p)
}

// What the garbage collector sees of a pool does not grow with it.
func TestHeapObjects(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	count := func(n int) int64 {
		m := newBus(t, 0, false)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := newPool(t, m, n, WithBufSize(256), WithSmallPages())
		mp := attach(t, p, m)
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		closeAll(t, mp, p)
		return int64(after.HeapObjects) - int64(before.HeapObjects)
	}
	count(16)
	small, large := count(1<<10), count(64<<10)
	if d := large - small; d > 32 || d < -32 {
		t.Errorf("a pool of 1 Ki buffers has %d heap objects, one of 64 Ki %d", small, large)
	}
}

func TestConcurrentFree(t *testing.T) {
	const n = 1000
	m := newBus(t, 0, false)
	p := newPool(t, m, 2*n, WithBufSize(256))
	mp := attach(t, p, m)
	bufs := alloc(t, p, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			b := alloc0(t, p)
			if b == nil {
				t.Error("no buffer")
				return
			}
			b.SetData([]byte{1})
			p.FreeBatch([]*Buf{b, bufs[i]})
			if i%100 == 0 {
				p.InUse()
				p.Memory()
				mp.View().Lookup(b)
			}
		})
	}
	close(start)
	wg.Wait()
	if p.InUse() != 0 || p.Misfreed() != 0 {
		t.Errorf("%d in use, %d misfreed", p.InUse(), p.Misfreed())
	}
	seen := map[*Buf]bool{}
	for _, b := range alloc(t, p, 2*n) {
		seen[b] = true
		p.Free(b)
	}
	if len(seen) != 2*n {
		t.Errorf("%d different buffers, want %d", len(seen), 2*n)
	}
	closeAll(t, mp, p)
}

// Many goroutines free the same buffers: one of each wins.
func TestConcurrentDoubleFree(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 100, WithSmallPages())
	bufs := alloc(t, p, 100)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for _, b := range bufs {
				p.Free(b)
			}
		})
	}
	wg.Wait()
	if p.InUse() != 0 || p.Misfreed() != 900 {
		t.Errorf("%d in use, %d misfreed; want 0 and 900", p.InUse(), p.Misfreed())
	}
	closeAll(t, p)
}

// A pool that cannot have its memory gives back what it took.
func TestReserveFails(t *testing.T) {
	noLeak(t)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	m := newBus(t, 0, false)
	p := newPool(t, m, 4)
	defer closeAll(t, p)
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := p.Grow(1 << 17)
	if e := unix.Setrlimit(unix.RLIMIT_AS, &old); e != nil {
		t.Fatal(e)
	}
	wantTyped(t, err, unix.ENOMEM)
	if p.Size() != 4 {
		t.Errorf("%d buffers", p.Size())
	}
	p.FreeBatch(alloc(t, p, 4))
}
