package stmmac

import (
	"fmt"
	"iter"
)

// Counters yields all counts by name, since the MAC was opened: those of each
// queue (rx0_packets), those that the device keeps of frames on the wire (MMC),
// with their names in the databook (Rx_CRC_Error_Packets), and those of the
// driver. Any goroutine may call it, also after Close, when the counts stay as
// they were. It reads registers of the device, some of which it clears.
func (m *MAC) Counters() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i, q := range m.rx {
			for name, v := range q.Stats().All() {
				if !yield(fmt.Sprintf("rx%d_%s", i, name), v) {
					return
				}
			}
		}
		for i, q := range m.tx {
			for name, v := range q.Stats().All() {
				if !yield(fmt.Sprintf("tx%d_%s", i, name), v) {
					return
				}
			}
		}
		m.readCounters()
		for name, v := range m.hw.Counters() {
			if !yield(name, v) {
				return
			}
		}
		m.mu.Lock()
		full := m.filterFull
		m.mu.Unlock()
		_ = yield("filter_full", full) && yield("faults", m.faults.Load()) && yield("recoveries", m.recoveries.Load()) &&
			yield("link_changes", m.linkChanges.Load()) && yield("phy_errors", m.phyErrors.Load())
	}
}

// readCounters reads the counters of the device, unless it is being rebuilt: that
// reads them too.
func (m *MAC) readCounters() {
	if !m.closed() && m.registers.mu.TryRLock() {
		m.hw.ReadCounters()
		m.leave()
	}
}
