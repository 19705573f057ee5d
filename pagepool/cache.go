package pagepool

// cacheSize is how many handles a cache holds; half of them move to or from
// the pool at a time, so the lock is taken once in 128 buffers.
const cacheSize = 256

// Cache is the stock of free buffers of one queue. One goroutine at a time
// uses it, without a lock for most calls.
type Cache struct {
	pool *Pool
	view *View
	n    int
	h    [cacheSize]Handle
}

// NewCache returns an empty cache of the pool, with the view of the mapping
// that its queue uses.
func (m *Mapping) NewCache() *Cache { return &Cache{pool: m.pool, view: m.View()} }

// Take fills dst with free buffers and returns how many there were.
func (c *Cache) Take(dst []Handle) int {
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
		for i, h := range src[:k] {
			c.view.Buf(h).owner = OwnerPool
			c.h[c.n+i] = h
		}
		c.n += k
		src = src[k:]
		if c.pool.attention.Load() {
			c.attend(k)
		}
	}
}

// spill gives the coldest k handles back to the pool.
func (c *Cache) spill(k int) {
	c.pool.give(c.h[:k], 0)
	copy(c.h[:], c.h[k:c.n])
	c.n -= k
}

// attend gives everything back; the newest fresh buffers were just freed.
func (c *Cache) attend(fresh int) {
	c.pool.give(c.h[:c.n], fresh)
	c.n = 0
}

// Refresh makes the cache use v, a newer view of the same mapping.
func (c *Cache) Refresh(v *View) { c.view = v }

// Flush gives all buffers of the cache back to the pool.
func (c *Cache) Flush() { c.attend(0) }
