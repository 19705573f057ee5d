package pagepool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Pool is a set of packet buffers of one size. Its methods may be called by
// several goroutines; a queue that allocates and frees much uses a [Cache].
type Pool struct {
	maker Mapper
	cfg   config

	mu       sync.Mutex
	arenas   []*arena
	first    unsafe.Pointer // the first record of the first arena
	owner    Owner          // that of free buffers
	free     []Handle       // a stack; the most recently used is the warmest
	mappings map[*Mapping]bool
	owners   []string
	waiters  []chan<- struct{}
	closed   bool
	held     int // after Close: buffers not freed yet

	// attention makes caches return buffers to the pool at once: somebody
	// waits for one, or the pool is closed.
	attention atomic.Bool
	misfreed  atomic.Uint64
}

type config struct {
	size     int
	headroom int
	kind     pageKind
	// arenaBufs is the most buffers that an arena gets.
	arenaBufs int
}

// Option is an option of [New].
type Option func(*config)

// WithBufSize sets the size of a chunk in bytes, headroom and tailroom
// included: 256 to [MaxBufSize], rounded up to the cache line. The default is 2048.
func WithBufSize(n int) Option { return func(c *config) { c.size = n } }

// WithHeadroom sets the headroom in bytes that [Pool.Alloc] leaves. The default
// is NetSKBPad + NetIPAlign. Receive queues choose their own.
func WithHeadroom(n int) Option { return func(c *config) { c.headroom = n } }

// WithSmallPages keeps the pool from asking for huge pages.
func WithSmallPages() Option { return func(c *config) { c.kind = pagesSmall } }

// New makes a pool of n buffers, n from 1 to MaxArenas * MaxArenaBufs. Their
// memory comes from the device m where it brings memory of its own and from the
// process else; the pool is not mapped for m or any other device before
// [Pool.Attach].
func New(m Mapper, n int, opts ...Option) (*Pool, error) {
	cfg := config{size: 2048, headroom: NetSKBPad + NetIPAlign}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.size < 256 || cfg.size > MaxBufSize {
		return nil, &Error{Op: "new", Err: fmt.Errorf("buffer size %d is not in 256..%d: %w", cfg.size, MaxBufSize, os.ErrInvalid)}
	}
	cfg.size = roundUp(cfg.size, CacheLine)
	if cfg.headroom < 0 || cfg.headroom > cfg.size {
		return nil, &Error{Op: "new", Err: fmt.Errorf("headroom %d of %d: %w", cfg.headroom, cfg.size, os.ErrInvalid)}
	}
	if cfg.arenaBufs == 0 {
		cfg.arenaBufs = min(MaxArenaBufs, min(maxArenaBytes, maxContiguous(m))/stride(cfg.size))
	}
	if cfg.arenaBufs == 0 {
		return nil, &Error{Op: "new", Err: fmt.Errorf("a buffer of %d bytes takes %d, and %d lie together for the device: %w",
			cfg.size, stride(cfg.size), maxContiguous(m), os.ErrInvalid)}
	}
	p := &Pool{maker: m, cfg: cfg, mappings: map[*Mapping]bool{}, owners: []string{"pool", "application"}}
	if err := p.Grow(n); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// maxArenaBytes bounds the payload of an arena: chunk offsets are 32 bits.
const maxArenaBytes = 1 << 30

// Grow adds n buffers, in new arenas, and maps them for all devices of the
// pool. On an error the pool has the arenas that were complete.
func (p *Pool) Grow(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &Error{Op: "grow", Err: ErrClosed}
	}
	most := p.cfg.arenaBufs
	// in arenas, since the number of buffers may not fit an int of 32 bits
	if n < 1 || (n-1)/most >= MaxArenas-len(p.arenas) {
		return &Error{Op: "grow", Err: fmt.Errorf("%d buffers: %w", n, os.ErrInvalid)}
	}
	for n > 0 {
		k := min(n, most)
		a, err := newArena(p.maker, len(p.arenas), k, &p.cfg)
		if err == nil {
			err = p.adopt(a)
		}
		if err != nil {
			return &Error{Op: fmt.Sprintf("arena of %d buffers", k), Err: err}
		}
		// room for all buffers, so that Free never allocates
		p.free = slices.Grow(p.free, p.size()-len(p.free))
		for i := k - 1; i >= 0; i-- {
			p.free = append(p.free, HandleOf(p.first, &a.records[i]))
		}
		p.wake()
		n -= k
	}
	return nil
}

// adopt maps a for all devices of the pool and makes it an arena of the pool.
// If a device does not reach it, it is given back: a queue must never have seen
// a base of memory that is gone.
func (p *Pool) adopt(a *arena) error {
	first := unsafe.Pointer(&a.records[0])
	if p.first == nil {
		p.first = first
		// No two pools of a process have their first record in the same page;
		// 32 bits of its number tell apart what lies within 16 TiB.
		p.owner = Owner(uint64(uintptr(first))>>12<<32 | holderPool)
	}
	// Handles are 32 bits, and so is the distance of any two records: all lie
	// within 64 GiB in both directions.
	const most = 1<<30 - MaxArenaBufs
	if d := (int64(uintptr(first)) - int64(uintptr(p.first))) / RecordSize; d > most || d < -most {
		return errors.Join(fmt.Errorf("the records lie %d records from those of the first arena", d), a.release())
	}
	for i := range a.records {
		a.records[i].owner = p.owner
	}
	bases := make(map[*Mapping]uint64, len(p.mappings))
	for m := range p.mappings {
		base, err := a.mapFor(m.mapper)
		if err != nil {
			errs := []error{fmt.Errorf("map it: %w", err)}
			for m, base := range bases {
				errs = append(errs, a.unmapFor(m.mapper, base))
			}
			return errors.Join(append(errs, a.release())...)
		}
		bases[m] = base
	}
	for m, base := range bases {
		m.extend(base, len(a.payload))
	}
	p.arenas = append(p.arenas, a)
	return nil
}

// Attach maps the pool for one more device.
func (p *Pool) Attach(m Mapper) (*Mapping, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &Error{Op: "attach", Err: ErrClosed}
	}
	mp := &Mapping{pool: p, mapper: m}
	if err := mp.mapAll(); err != nil {
		return nil, &Error{Op: "attach", Err: errors.Join(err, mp.unmap())}
	}
	p.mappings[mp] = true
	return mp, nil
}

// BufSize is the size of a chunk in bytes.
func (p *Pool) BufSize() int { return p.cfg.size }

// Size is the number of buffers.
func (p *Pool) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size()
}

func (p *Pool) size() int {
	n := 0
	for _, a := range p.arenas {
		n += len(a.records)
	}
	return n
}

// InUse is the number of buffers that are not free. While queues run it is a
// snapshot that may be a few buffers off.
func (p *Pool) InUse() int {
	return total(p.Holders())
}

// Holders counts the buffers that are not free by who holds them.
func (p *Pool) Holders() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holders()
}

func (p *Pool) holders() map[string]int {
	h := map[string]int{}
	for _, a := range p.arenas {
		for i := range a.records {
			switch n := a.records[i].owner.holder(); {
			case n == holderPool:
			case n < len(p.owners):
				h[p.owners[n]]++
			default: // SetOwner with an Owner of another pool
				h["unknown"]++
			}
		}
	}
	return h
}

// Memory says what the pool's payload lies in.
func (p *Pool) Memory() MemoryInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	some := len(p.arenas) > 0
	m := MemoryInfo{Arenas: len(p.arenas), Locked: some, Huge: some}
	for _, a := range p.arenas {
		m.Bytes += len(a.payload)
		m.Locked = m.Locked && a.res.locked && a.own == nil
		m.Huge = m.Huge && a.res.huge
		m.OfDevice = m.OfDevice || a.own != nil
	}
	return m
}

// MemoryInfo describes the payload of a pool.
type MemoryInfo struct {
	Arenas   int
	Bytes    int
	Huge     bool // all of it lies in hugetlb pages
	Locked   bool // all of it is locked (mlock)
	OfDevice bool // a device brought it
}

// Owner returns the holder of buffers that has this name in reports.
func (p *Pool) Owner(name string) Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The pool's own number marks free buffers: no holder gets it.
	i := 1 + slices.Index(p.owners[1:], name)
	if i == holderPool {
		i = len(p.owners)
		p.owners = append(p.owners, name)
	}
	return p.owner.with(i)
}

// Alloc returns an empty buffer with the pool's headroom, or ErrEmpty or
// ErrClosed.
func (p *Pool) Alloc() (*Buf, error) {
	var one [1]*Buf
	if p.AllocBatch(one[:]) == 1 {
		return one[0], nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &Error{Op: "alloc", Err: ErrClosed}
	}
	return nil, ErrEmpty
}

// AllocBatch fills dst with empty buffers and returns how many there were.
func (p *Pool) AllocBatch(dst []*Buf) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(dst), len(p.free))
	if p.closed {
		n = 0
	}
	for i := range n {
		b := At(p.first, p.free[len(p.free)-1-i])
		b.Reset(p.cfg.headroom)
		b.owner = p.owner.with(holderApplication)
		dst[i] = b
	}
	p.free = p.free[:len(p.free)-n]
	return n
}

// Free gives b and the buffers linked to it, which the application holds, back.
// A buffer that is free already, with a queue or of another pool is left alone
// and counted ([Pool.Misfreed]).
func (p *Pool) Free(b *Buf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeChain(b)
	p.wake()
}

// FreeBatch frees every frame of bufs.
func (p *Pool) FreeBatch(bufs []*Buf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range bufs {
		p.freeChain(b)
	}
	p.wake()
}

func (p *Pool) freeChain(b *Buf) {
	for b != nil {
		// Without arenas the record may be gone: it is not even looked at.
		if p.arenas == nil || b.owner != p.owner.with(holderApplication) {
			p.misfreed.Add(1)
			return
		}
		next := b.Next()
		b.owner, b.next = p.owner, 0
		p.push(HandleOf(p.first, b))
		b = next
	}
}

// push puts a buffer that was just freed on the stack.
func (p *Pool) push(h Handle) {
	p.free = append(p.free, h)
	if p.closed {
		p.held--
		p.settle()
	}
}

// Misfreed counts the buffers that Free left alone: a fault of the caller.
func (p *Pool) Misfreed() uint64 { return p.misfreed.Load() }

// Take fills dst with free buffers, which o holds from then on, and returns how
// many there were. For drivers, whose rings keep handles.
func (p *Pool) Take(dst []Handle, o Owner) int {
	n := p.take(dst)
	hold(p.first, dst[:n], o)
	return n
}

// Put gives back the buffers of src, which a driver's ring holds, one record
// each: buffers linked to them are not freed with them.
func (p *Pool) Put(src []Handle) {
	hold(p.first, src, p.owner)
	p.give(src)
}

// hold makes o the holder of the buffers of hs.
func hold(first unsafe.Pointer, hs []Handle, o Owner) {
	for _, h := range hs {
		At(first, h).owner = o
	}
}

// take moves up to len(dst) free handles to dst.
func (p *Pool) take(dst []Handle) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	n := min(len(dst), len(p.free))
	copy(dst, p.free[len(p.free)-n:])
	p.free = p.free[:len(p.free)-n]
	return n
}

// give moves handles of buffers that are marked as free back.
func (p *Pool) give(src []Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		// They are marked without the lock, so how many of them Close has
		// counted as held is not known.
		p.held = total(p.holders())
		p.settle()
		return
	}
	p.free = append(p.free, src...)
	p.wake()
}

func total(holders map[string]int) int {
	n := 0
	for _, c := range holders {
		n += c
	}
	return n
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// NotifyFree sends to ch, without blocking, when a buffer has come back to the
// pool after this call: for a queue that found the pool empty. It does so once.
func (p *Pool) NotifyFree(ch chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.waiters {
		if c == ch {
			return
		}
	}
	p.waiters = append(p.waiters, ch)
	p.attention.Store(true)
	p.wake()
}

// wake tells the waiters that there is something free, or that the pool has
// closed. The caller holds the lock.
func (p *Pool) wake() {
	if len(p.waiters) == 0 || len(p.free) == 0 && !p.closed {
		return
	}
	for _, c := range p.waiters {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	p.waiters = p.waiters[:0]
	p.attention.Store(p.closed)
}

// Close gives the pool's memory back. It waits for nothing: while a device is
// attached it changes nothing and returns an error, and while buffers are held
// it returns a [*LeakError] and keeps the memory in the process, mapped for no
// device, until the last of them is freed. A second call returns nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if n := len(p.mappings); n > 0 {
		return &Error{Op: "close", Err: fmt.Errorf("%d devices are still attached: close them first", n)}
	}
	p.closed = true
	p.attention.Store(true)
	held := p.holders()
	p.held = total(held)
	p.wake()
	if p.held > 0 {
		return &LeakError{Holders: held}
	}
	if err := p.settle(); err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}

// settle gives the memory back when nobody holds a buffer of a closed pool any
// more. The caller holds the lock.
func (p *Pool) settle() error {
	if p.held > 0 || p.arenas == nil {
		return nil
	}
	var errs []error
	for _, a := range p.arenas {
		errs = append(errs, a.release())
	}
	p.arenas, p.free = nil, nil
	return errors.Join(errs...)
}

// AllocFrame returns a frame with a copy of data, in as many buffers as that needs: of
// at most each bytes, or with 0 of as many as fit behind the headroom of [Pool.Alloc].
// Its error wraps ErrEmpty when there are not as many, and none is taken then.
func (p *Pool) AllocFrame(data []byte, each int) (*Buf, error) {
	var head, tail *Buf
	for first := true; first || len(data) > 0; first = false {
		b, err := p.Alloc()
		if err != nil {
			p.Free(head)
			return nil, err
		}
		n := min(len(data), b.Len()+b.Tailroom())
		if each > 0 {
			n = min(n, each)
		}
		b.SetData(data[:n])
		data = data[n:]
		if head == nil {
			head = b
		} else {
			tail.SetNext(b)
		}
		tail = b
	}
	return head, nil
}
