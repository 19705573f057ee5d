package pagepool

import "unsafe"

// cacheSize is how many handles a cache holds; half of them move to or from
// the pool at a time, so the lock is taken once in 128 buffers.
const cacheSize = 256

// Cache is a stock of free buffers for one goroutine that takes and gives back
// a few at a time: it uses the pool's lock once in 128 buffers. Up to 256 free
// buffers lie in it, where others find them only when it is used again, so a
// pool needs as many more. Rings move whole batches and use the pool itself.
type Cache struct {
	pool  *Pool
	first unsafe.Pointer // the record from which handles count
	free  Owner
	n     int
	h     [cacheSize]Handle
}

// NewCache returns an empty cache.
func (p *Pool) NewCache() *Cache { return &Cache{pool: p, first: p.first, free: p.owner} }

// Take fills dst with free buffers, which o holds from then on, and returns how
// many there were.
func (c *Cache) Take(dst []Handle, o Owner) int {
	if c.pool.attention.Load() && c.pool.isClosed() {
		c.n = 0 // their memory may be gone
		return 0
	}
	got := 0
	for got < len(dst) {
		if c.n == 0 {
			if c.n = c.pool.take(c.h[:cacheSize/2]); c.n == 0 {
				break
			}
		}
		k := min(len(dst)-got, c.n)
		copy(dst[got:], c.h[c.n-k:c.n])
		c.n -= k
		got += k
	}
	hold(c.first, dst[:got], o)
	return got
}

// Put gives back the buffers of src, which the caller holds, one record each;
// buffers linked to them are not freed with them.
func (c *Cache) Put(src []Handle) {
	for len(src) > 0 {
		if c.n == cacheSize {
			c.spill(cacheSize / 2)
		}
		k := min(len(src), cacheSize-c.n)
		hold(c.first, src[:k], c.free)
		copy(c.h[c.n:], src[:k])
		c.n += k
		src = src[k:]
		if c.pool.attention.Load() {
			c.Flush()
		}
	}
}

// spill gives the coldest k handles back to the pool.
func (c *Cache) spill(k int) {
	c.pool.give(c.h[:k])
	copy(c.h[:], c.h[k:c.n])
	c.n -= k
}

// Flush gives all buffers of the cache back to the pool.
func (c *Cache) Flush() {
	c.pool.give(c.h[:c.n])
	c.n = 0
}
