package pagepool

import (
	"sync"
	"testing"
)

// queue is a pool with a device and a cache.
func queue(t *testing.T, n int, opts ...Option) (*Pool, *Mapping, *Cache) {
	t.Helper()
	m := newBus(t, 0, false)
	p := newPool(t, m, n, append(opts, WithBufSize(256))...)
	mp := attach(t, p, m)
	c := p.NewCache()
	t.Cleanup(func() {
		c.Flush()
		closeAll(t, mp, p)
		if p.Misfreed() != 0 {
			t.Errorf("%d misfreed", p.Misfreed())
		}
	})
	return p, mp, c
}

// wantDistinct checks that no handle is there twice.
func wantDistinct(t *testing.T, hs []Handle) {
	t.Helper()
	seen := map[Handle]bool{}
	for _, h := range hs {
		if seen[h] {
			t.Fatalf("handle %#x was given out twice", h)
		}
		seen[h] = true
	}
}

func TestCacheSizes(t *testing.T) {
	const n = 1000
	p, _, c := queue(t, n, perArena(300))
	for _, size := range []int{0, 1, 2, 127, 128, 129, 255, 256, 257, 383, 384, 385, 512, 999, 1000, 1001, 5000} {
		hs := make([]Handle, size)
		got := c.Take(hs, p.Owner("rx0"))
		if want := min(size, n); got != want {
			t.Fatalf("took %d of %d, want %d", got, size, want)
		}
		hs = hs[:got]
		wantDistinct(t, hs)
		if used := p.Holders()["rx0"]; used != got || p.InUse() != got {
			t.Errorf("rx0 holds %d and %d are in use after taking %d", used, p.InUse(), got)
		}
		c.Put(hs)
		if used := p.InUse(); used != 0 {
			t.Errorf("%d in use after putting %d back", used, got)
		}
	}
	// all are there, in the pool and in the cache
	c.Flush()
	p.FreeBatch(alloc(t, p, n))
}

// The pool is asked, and given back to, half a cache at a time.
func TestCacheBatches(t *testing.T) {
	const n = 1024
	p, _, c := queue(t, n)
	free := func() int { return len(p.free) }
	rx := p.Owner("rx0")
	hs := make([]Handle, n)
	c.Take(hs[:1], rx)
	if got := n - free(); got != cacheSize/2 {
		t.Errorf("the first buffer took %d from the pool", got)
	}
	c.Take(hs[1:cacheSize/2], rx)
	if got := n - free(); got != cacheSize/2 {
		t.Errorf("half a cache took %d from the pool", got)
	}
	c.Take(hs[cacheSize/2:n], rx)
	if free() != 0 {
		t.Errorf("%d left in the pool", free())
	}
	c.Put(hs[:cacheSize])
	if free() != 0 {
		t.Errorf("a full cache gave %d back", free())
	}
	c.Put(hs[cacheSize : cacheSize+1])
	if free() != cacheSize/2 {
		t.Errorf("a cache that is full gave %d back", free())
	}
	c.Put(hs[cacheSize+1 : cacheSize+cacheSize/2])
	if free() != cacheSize/2 {
		t.Errorf("a cache with room gave %d back", free())
	}
	c.Put(hs[cacheSize+cacheSize/2:])
	c.Flush()
	if free() != n {
		t.Errorf("%d in the pool after Flush", free())
	}
	wantDistinct(t, p.free)
}

// A cache gives the buffer that was freed last, which is in the CPU's cache,
// and keeps the warm ones when it spills.
func TestCacheIsWarm(t *testing.T) {
	p, _, c := queue(t, 1024)
	rx := p.Owner("rx0")
	hs := make([]Handle, cacheSize+1)
	c.Take(hs, rx)
	c.Put(hs)
	one := make([]Handle, 1)
	if c.Take(one, rx); one[0] != hs[cacheSize] {
		t.Errorf("got %#x, %#x was put last", one[0], hs[cacheSize])
	}
	c.Put(one)
}

// Buffers that one queue takes are freed by others: through another cache, and
// through the pool.
func TestCacheFromOthers(t *testing.T) {
	const n = 600
	p, mp, c := queue(t, n)
	toCache, toPool := make(chan []Handle, 4), make(chan []Handle, 4)
	var wg sync.WaitGroup
	wg.Go(func() {
		other := p.NewCache()
		defer other.Flush()
		for hs := range toCache {
			other.Put(hs)
		}
	})
	wg.Go(func() {
		for hs := range toPool {
			for _, h := range hs {
				p.Free(mp.View().Buf(h))
			}
		}
	})
	wake := make(chan struct{}, 1)
	app, moved := mp.View().Application(), 0
	for i := 0; moved < 20*n; i++ {
		hs := make([]Handle, 1+i%97)
		k := c.Take(hs, app)
		if k == 0 {
			p.NotifyFree(wake)
			<-wake
			continue
		}
		moved += k
		if i%2 == 0 {
			toCache <- hs[:k]
		} else {
			toPool <- hs[:k]
		}
	}
	close(toCache)
	close(toPool)
	wg.Wait()
	c.Flush()
	if p.InUse() != 0 {
		t.Errorf("%d in use", p.InUse())
	}
	wantDistinct(t, p.free)
	p.FreeBatch(alloc(t, p, n))
}

// A cache that a pool grew under takes and puts the new buffers.
func TestCacheAfterGrow(t *testing.T) {
	p, mp, c := queue(t, 4)
	if err := p.Grow(4); err != nil {
		t.Fatal(err)
	}
	hs := make([]Handle, 8)
	if got := c.Take(hs, mp.View().Application()); got != 8 || p.InUse() != 8 {
		t.Fatalf("took %d, %d in use", got, p.InUse())
	}
	c.Put(hs)
	if p.InUse() != 0 {
		t.Errorf("%d in use", p.InUse())
	}
}

// woken counts what ch got and takes it.
func woken(ch chan struct{}) int {
	n := len(ch)
	for range n {
		<-ch
	}
	return n
}

func TestNotifyFree(t *testing.T) {
	p, mp, c := queue(t, 2)
	ch, blocked := make(chan struct{}, 4), make(chan struct{})
	p.NotifyFree(ch)
	if woken(ch) != 1 {
		t.Error("a pool that is not empty does not wake")
	}
	bufs := alloc(t, p, 2)
	p.NotifyFree(ch)
	p.NotifyFree(ch)
	p.NotifyFree(blocked) // nobody receives: must not hold Free up
	if woken(ch) != 0 {
		t.Error("woken by an empty pool")
	}
	p.Free(bufs[0])
	p.Free(bufs[1])
	if n := woken(ch); n != 1 {
		t.Errorf("woken %d times, want once", n)
	}
	if p.attention.Load() {
		t.Error("the caches still give everything back")
	}

	// a buffer that comes back through a cache does not stay there
	hs := make([]Handle, 2)
	if c.Take(hs, mp.View().Application()) != 2 {
		t.Fatal("no buffers")
	}
	p.NotifyFree(ch)
	c.Put(hs[:1])
	if n := woken(ch); n != 1 || len(p.free) != 1 {
		t.Errorf("woken %d times, %d in the pool", n, len(p.free))
	}
	c.Put(hs[1:])
	if n := woken(ch); n != 0 || len(p.free) != 1 {
		t.Errorf("woken %d times, %d in the pool; the second stays in the cache", n, len(p.free))
	}
	c.Flush()

	// growth wakes too
	bufs = alloc(t, p, 2)
	p.NotifyFree(ch)
	if err := p.Grow(1); err != nil {
		t.Fatal(err)
	}
	if woken(ch) != 1 {
		t.Error("not woken by growth")
	}
	p.FreeBatch(bufs)
}

// Nobody waits for a pool that is closed.
func TestNotifyFreeOfClosed(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 1)
	b := alloc(t, p, 1)[0]
	ch := make(chan struct{}, 2)
	p.NotifyFree(ch)
	if p.Close() == nil {
		t.Error("closed with a buffer held")
	}
	if len(ch) != 1 {
		t.Error("not woken by Close")
	}
	p.NotifyFree(ch)
	if len(ch) != 2 {
		t.Error("not woken by a closed pool")
	}
	p.Free(b)
}

// What lies in caches when the pool is closed is free: it holds nothing up.
func TestCloseWithFullCaches(t *testing.T) {
	noLeak(t)
	m := newBus(t, 0, false)
	p := newPool(t, m, 512)
	mp := attach(t, p, m)
	c := p.NewCache()
	one := make([]Handle, 1)
	c.Take(one, mp.View().Application())
	c.Put(one)
	closeAll(t, mp, p)
	if c.Take(one, mp.View().Application()) != 0 {
		t.Error("a buffer whose memory is gone")
	}
	c.Flush()
}

// Buffers that queues put back while the pool is being closed are counted once,
// whichever comes first: the memory goes with the last of them.
func TestCloseRacesPut(t *testing.T) {
	noLeak(t)
	for range 50 {
		m := newBus(t, 0, false)
		p := newPool(t, m, 512, WithBufSize(256), WithSmallPages())
		mp := attach(t, p, m)
		var caches [4]*Cache
		var held [4][]Handle
		for i := range caches {
			caches[i] = p.NewCache()
			held[i] = make([]Handle, 100)
			caches[i].Take(held[i], mp.View().Application())
		}
		closeAll(t, mp)
		var wg sync.WaitGroup
		for i, c := range caches {
			wg.Go(func() {
				for k := 0; k < 100; k += 10 {
					c.Put(held[i][k : k+10])
				}
				c.Flush()
			})
		}
		wg.Go(func() { _ = p.Close() })
		wg.Wait()
		if p.Memory().Arenas != 0 {
			t.Fatalf("the memory stays; holders %v", p.Holders())
		}
	}
}
