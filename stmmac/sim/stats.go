package sim

// Stats are the counts of a model since it was made; a reset does not clear them.
type Stats struct {
	RxFrames, RxBytes uint64 // whole in memory and without error; bytes without FCS
	RxErrors          uint64 // in memory with an error, or cut
	RxFiltered        uint64 // address, VLAN, layer 3 and 4 or control packet filter
	RxDropped         uint64 // receiver or queue off, error, runt
	RxOverflow        uint64 // no room in the FIFO
	RxMissed          uint64 // dropped by the DMA, in DMA_CHx_Miss_Frame_Cnt too
	TxFrames, TxBytes uint64 // on the wire; bytes without FCS
	TxErrors          uint64 // written back with ES
	RxPause           uint64 // PAUSE for this MAC, obeyed or not
	TxPause           uint64 // PAUSE that the MAC made; not in TxFrames
	TxARP             uint64 // ARP replies that the MAC made; not in TxFrames
	RxUnrouted        uint64 // in RxDropped too: the queue is off, is not there or has no channel
	// Frames that passed the MAC in vain, or never reached it, because of the PHY: no
	// link, another speed or duplex, isolation, loopback.
	TxLost, RxLost uint64

	RxDescReads, TxDescReads uint64
	// Doorbells, Loads, Stores and Unknown stay 0 with NoAudit.
	RxDoorbells, TxDoorbells uint64   // tail writes
	Loads, Stores            uint64   // register accesses
	Unknown                  uint64   // those of an offset without a register
	Edges                    []uint64 // how often each interrupt vector fired
}

// Stats returns the counts.
func (m *Model) Stats() Stats {
	m.mu.Lock()
	s := m.stats
	s.RxDescReads, s.TxDescReads = 0, 0
	for i := range m.tx {
		s.TxDoorbells += m.tx[i].bells.Load()
		s.TxDescReads += m.tx[i].reads
	}
	for i := range m.rx {
		s.RxDoorbells += m.rx[i].bells.Load()
		s.RxDescReads += m.rx[i].reads
	}
	m.mu.Unlock()
	s.Loads, s.Stores, s.Unknown = m.regs.loads.Load(), m.regs.stores.Load(), m.regs.unknown.Load()
	m.irqMu.Lock()
	s.Edges = append([]uint64(nil), m.lines.edges...)
	m.irqMu.Unlock()
	return s
}
