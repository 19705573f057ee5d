package vfiouser

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
)

// window is a range of bus addresses that the client has mapped.
type window struct {
	first, last uint64 // bus addresses
	mem         []byte // nil where the client gave no file, or one that is not mapped
	file        *file  // that mem is a part of
	read, write bool
	// lent says that a part of mem was given out.
	lent atomic.Bool
}

// lends says whether the memory itself can be given out: a device may do all with it, and
// its owner cannot take it away behind the server's back.
func (w *window) lends() bool { return w.mem != nil && w.read && w.write && !w.file.shrinks }

// file is memory of the client that the process has mapped, whole, for all windows that
// show a part of it.
type file struct {
	mem      []byte
	writable bool
	shrinks  bool // its owner can cut it: an access may then fault
	windows  int  // that show it
	unmap    func()
}

// table finds the window of a bus address. Accesses to memory hold the lock for reading;
// whoever has held it for writing since a window was removed knows that no copy is under
// way there.
type table struct {
	mu      sync.RWMutex
	windows []*window // by address; none overlap
	last    atomic.Pointer[window]
	master  bool     // bus mastering is on
	client  messages // nil without a client
}

// messages is how memory is reached that is not mapped into the process. An access is of at
// most limit bytes.
type messages interface {
	limit() int
	access(addr uint64, p []byte, write bool) error
}

// find returns the window of addr, or nil. The lock is held.
func (t *table) find(addr uint64) *window {
	if w := t.last.Load(); w != nil && addr >= w.first && addr <= w.last {
		return w
	}
	i := t.from(addr)
	if i == len(t.windows) || t.windows[i].first > addr {
		return nil
	}
	w := t.windows[i]
	t.last.Store(w)
	return w
}

// from is the number of the first window that does not end below addr.
func (t *table) from(addr uint64) int {
	return sort.Search(len(t.windows), func(i int) bool { return t.windows[i].last >= addr })
}

// insert adds a window.
func (t *table) insert(w *window) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.from(w.first)
	if i < len(t.windows) && t.windows[i].first <= w.last {
		return refuse(syscall.EEXIST, "%#x to %#x is mapped", t.windows[i].first, t.windows[i].last)
	}
	if len(t.windows) >= maxWindows {
		return refuse(syscall.ENOSPC, "there are %d windows already", len(t.windows))
	}
	t.windows = slices.Insert(t.windows, i, w)
	if w.file != nil {
		w.file.windows++
	}
	return nil
}

// remove takes the bus addresses first to last out of the table, also where they are only
// a part of a window, and returns the windows that they were in: no copy uses these any
// more. Nothing need be mapped there: QEMU unmaps whole address spaces.
func (t *table) remove(first, last uint64) ([]*window, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lo := t.from(first)
	hi := lo
	for hi < len(t.windows) && t.windows[hi].first <= last {
		hi++
	}
	if lo == hi {
		return nil, nil
	}
	gone := slices.Clone(t.windows[lo:hi])
	var rest []*window // what is left of the first and of the last of them
	if w := gone[0]; w.first < first {
		rest = append(rest, w.part(w.first, first-1))
	}
	if w := gone[len(gone)-1]; w.last > last {
		rest = append(rest, w.part(last+1, w.last))
	}
	if len(t.windows)-len(gone)+len(rest) > maxWindows {
		return nil, refuse(syscall.ENOSPC, "there are %d windows already", len(t.windows))
	}
	t.windows = slices.Replace(t.windows, lo, hi, rest...)
	t.last.Store(nil)
	for _, w := range rest {
		if w.file != nil {
			w.file.windows++
		}
	}
	for _, w := range gone {
		if w.file != nil {
			w.file.windows--
		}
	}
	return gone, nil
}

// part is a window of a part of w.
func (w *window) part(first, last uint64) *window {
	p := &window{first: first, last: last, file: w.file, read: w.read, write: w.write}
	if w.mem != nil {
		p.mem = w.mem[first-w.first : last-w.first+1]
	}
	return p
}

// setMaster turns bus mastering on or off. When it returns no copy of before is under way.
func (t *table) setMaster(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.master = on
}

// setClient sets who is asked for memory that is not mapped.
func (t *table) setClient(c messages) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.client = c
}
