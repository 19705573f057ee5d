package pagepool

import "unsafe"

// cacheSize is how many handles a cache holds; half of them move to or from
// the pool at a time, so the lock is taken once in 128 buffers.
const cacheSize = 256

// Cache is the stock of free buffers of one queue. One goroutine at a time
// uses it, without a lock for most calls.
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
		to, from, first := dst[got:][:k], c.h[c.n-k:][:k], c.first
		for i, h := range from {
			At(first, h).owner = o
			to[i] = h
		}
		c.n -= k
		got += k
	}
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
		dst, first, free := c.h[c.n:][:k], c.first, c.free
		for i, h := range src[:k] {
			At(first, h).owner = free
			dst[i] = h
		}
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
