package mmio

import (
	"slices"
	"sync"
)

// Fake is a scripted register file for tests. Without a script a register
// holds what was last stored. All methods may be called by several goroutines;
// hooks run without the lock of the Fake and may access it.
type Fake struct {
	mu   sync.Mutex
	regs []uint32
	rule map[uint32]*fakeRule
	log  []Access
}

// fakeRule is the script of one register.
type fakeRule struct {
	w1c       uint32
	readClear uint32
	readOnly  uint32
	selfMask  uint32
	selfReads int
	selfLeft  int
	onLoad    func(v uint32) uint32
	onStore   func(v uint32)
}

// NewFake returns a fake of size bytes, all registers 0.
func NewFake(size uint32) *Fake {
	return &Fake{regs: make([]uint32, size/4), rule: map[uint32]*fakeRule{}}
}

func (f *Fake) script(off uint32, set func(*fakeRule)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rule[off]
	if r == nil {
		r = &fakeRule{}
		f.rule[off] = r
	}
	set(r)
}

// W1C makes the bits of mask write-1-to-clear.
func (f *Fake) W1C(off, mask uint32) { f.script(off, func(r *fakeRule) { r.w1c = mask }) }

// ReadClear makes the bits of mask clear when they are read.
func (f *Fake) ReadClear(off, mask uint32) { f.script(off, func(r *fakeRule) { r.readClear = mask }) }

// ReadOnly makes stores leave the bits of mask alone.
func (f *Fake) ReadOnly(off, mask uint32) { f.script(off, func(r *fakeRule) { r.readOnly = mask }) }

// SelfClearing makes the bits of mask, once stored, read as set n times and as
// clear after that. A negative n never clears them.
func (f *Fake) SelfClearing(off, mask uint32, n int) {
	f.script(off, func(r *fakeRule) { r.selfMask, r.selfReads = mask, n })
}

// OnLoad calls fn with the value of each load of off; what fn returns is loaded.
func (f *Fake) OnLoad(off uint32, fn func(v uint32) uint32) {
	f.script(off, func(r *fakeRule) { r.onLoad = fn })
}

// OnStore calls fn with each value stored to off, after it was stored.
func (f *Fake) OnStore(off uint32, fn func(v uint32)) {
	f.script(off, func(r *fakeRule) { r.onStore = fn })
}

// Set sets a register as the hardware would: no script runs, nothing is logged.
func (f *Fake) Set(off, v uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inside(off, f.Len()) {
		f.regs[off/4] = v
	}
}

// Peek returns a register without running its script.
func (f *Fake) Peek(off uint32) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !inside(off, f.Len()) {
		return AllOnes
	}
	return f.regs[off/4]
}

// Log returns the accesses since the last ResetLog, oldest first; what a hook
// of a load does stands before that load. Accesses outside the fake are in it
// too.
func (f *Fake) Log() []Access {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// ResetLog empties the log.
func (f *Fake) ResetLog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

// Len implements [Region].
func (f *Fake) Len() uint32 { return uint32(len(f.regs)) * 4 }

// Load32 implements [Region].
func (f *Fake) Load32(off uint32) uint32 {
	f.mu.Lock()
	v := AllOnes
	var hook func(uint32) uint32
	if inside(off, f.Len()) {
		v = f.regs[off/4]
		if r := f.rule[off]; r != nil {
			hook = r.onLoad
			if r.selfMask&v != 0 && r.selfReads >= 0 {
				if r.selfLeft == 0 {
					v &^= r.selfMask
					f.regs[off/4] = v
				} else {
					r.selfLeft--
				}
			}
			f.regs[off/4] &^= r.readClear
		}
	}
	if hook != nil {
		f.mu.Unlock()
		v = hook(v)
		f.mu.Lock()
	}
	f.log = append(f.log, Access{Off: off, Val: v})
	f.mu.Unlock()
	return v
}

// Store32 implements [Region].
func (f *Fake) Store32(off, v uint32) {
	f.mu.Lock()
	f.log = append(f.log, Access{Off: off, Val: v, Store: true})
	var hook func(uint32)
	if inside(off, f.Len()) {
		old, keep := f.regs[off/4], uint32(0)
		stored := v
		if r := f.rule[off]; r != nil {
			hook = r.onStore
			stored = v&^r.w1c | old&^v&r.w1c
			keep = r.readOnly
			if v&r.selfMask != 0 {
				r.selfLeft = r.selfReads
			}
		}
		f.regs[off/4] = old&keep | stored&^keep
	}
	f.mu.Unlock()
	if hook != nil {
		hook(v)
	}
}
