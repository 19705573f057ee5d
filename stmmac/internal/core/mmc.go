package core

import (
	"iter"
	"sync"

	"github.com/gostmmac/gostmmac/mmio"
)

// MMC keeps the sums of the MMC counters of a device. Any goroutine may call its
// methods.
//
// The counters have 32 bits and a read clears them (RSTONRD), so there is one
// reader, and it must come before one wraps: at 2.5 Gbit/s those of octets do
// after 13.7 s, those of packets after 19 minutes.
type MMC struct {
	mu   sync.Mutex
	have []MMCCounter // in the order of their registers
}

// MMCCounter is a counter of the MMC block.
type MMCCounter struct {
	Reg  mmio.Reg[uint32]
	Name string // of the databook
	Sum  uint64
}

// MMCBlock is the counters from one register to another that a device has if it has
// something else.
type MMCBlock struct {
	First, Last uint32
	Has         func(f *Features) bool
}

// MMCCounters are the counters that a device has of blocks, with the names of the
// register map; registers without one are no counters.
func MMCCounters(f *Features, blocks []MMCBlock, name func(off uint32) string) []MMCCounter {
	var out []MMCCounter
	for _, b := range blocks {
		if !f.MMC || !b.Has(f) {
			continue
		}
		for off := b.First; off <= b.Last; off += 4 {
			if n := name(off); n != "" {
				out = append(out, MMCCounter{Reg: mmio.Reg[uint32](off), Name: n})
			}
		}
	}
	return out
}

// Start programs the block with set, while nobody reads. The counters are those of
// list from the first call on; their sums stay: they are those since the MAC was
// opened, whatever was reset.
func (m *MMC) Start(list func() []MMCCounter, set func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.have == nil {
		m.have = list()
	}
	set()
}

// Read adds what the device has counted since the last call. It asks gone when a
// counter reads as all registers do of a device that does not answer.
func (m *MMC) Read(csr mmio.Region, gone func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.have {
		c := &m.have[i]
		v := c.Reg.Load(csr)
		if v == mmio.AllOnes && gone() {
			return
		}
		c.Sum += uint64(v)
	}
}

// Forget sets the sums to 0.
func (m *MMC) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.have {
		m.have[i].Sum = 0
	}
}

// Counters are the counters with their sums.
func (m *MMC) Counters() []MMCCounter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]MMCCounter(nil), m.have...)
}

// All yields the sums by name.
func (m *MMC) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range m.Counters() {
			if !yield(c.Name, c.Sum) {
				return
			}
		}
	}
}
