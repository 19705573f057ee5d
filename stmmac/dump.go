package stmmac

import "iter"

// Dump yields the registers of the device with their names in the databook, in the
// order of their offsets, as they were when the loop began: all that the device
// has, by its feature registers, but those that a read changes (counters, and
// status that a read clears) and the data windows of indirect accesses.
//
// It waits for a change of the MAC that is under way; nothing is yielded for a MAC
// that is closed, and nothing more when the device is gone. A MAC that failed can
// be dumped. Any goroutine may call it; the body of the loop may use the MAC.
func (m *MAC) Dump() iter.Seq[Register] {
	return func(yield func(Register) bool) {
		for _, r := range m.dump() {
			if !yield(r) {
				return
			}
		}
	}
}

// dump reads the registers under the lock that every rebuild has, and Close before
// it takes the device from the MAC.
func (m *MAC) dump() []Register {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed() {
		return nil
	}
	list, err := m.hw.Dump()
	if err != nil {
		m.fail(m.within("dump", err))
	}
	return list
}
