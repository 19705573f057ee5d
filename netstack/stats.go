package netstack

import (
	"iter"
	"sync/atomic"
)

// Stats counts what an endpoint did. All counts start at 0 when it is made.
type Stats struct {
	RxPackets, RxBytes uint64 // frames taken off the ring, without FCS
	RxDelivered        uint64 // of them, packets given to the stack
	RxChecksum         uint64 // dropped: the MAC found a checksum wrong
	RxVLAN             uint64 // dropped: with a VLAN tag beside them
	RxShort            uint64 // dropped: without a whole Ethernet header
	RxOtherHost        uint64 // dropped: to the unicast address of somebody else
	RxDetached         uint64 // dropped: the stack was gone

	TxPackets, TxBytes uint64 // frames that the ring took, without FCS
	TxRefused          uint64 // dropped: they can never be sent
	TxClosed           uint64 // dropped: the endpoint or the MAC was closed
	TxNoLink           uint64 // dropped: no room, and the link was down or the device had failed
	TxNoRoom           uint64 // dropped: no room, and the device finished nothing

	TxRingWaits uint64 // times that a sender waited for the ring
	TxPoolWaits uint64 // times that a sender waited for buffers
}

// All yields the counts by name.
func (s Stats) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range []struct {
			name string
			v    uint64
		}{
			{"rx_packets", s.RxPackets}, {"rx_bytes", s.RxBytes}, {"rx_delivered", s.RxDelivered},
			{"rx_checksum", s.RxChecksum}, {"rx_vlan", s.RxVLAN}, {"rx_short", s.RxShort},
			{"rx_other_host", s.RxOtherHost}, {"rx_detached", s.RxDetached},
			{"tx_packets", s.TxPackets}, {"tx_bytes", s.TxBytes},
			{"tx_refused", s.TxRefused}, {"tx_closed", s.TxClosed}, {"tx_no_link", s.TxNoLink}, {"tx_no_room", s.TxNoRoom},
			{"tx_ring_waits", s.TxRingWaits}, {"tx_pool_waits", s.TxPoolWaits},
		} {
			if !yield(c.name, c.v) {
				return
			}
		}
	}
}

// Dropped is the number of packets that were dropped in either direction.
func (s Stats) Dropped() uint64 {
	return s.RxChecksum + s.RxVLAN + s.RxShort + s.RxOtherHost + s.RxDetached +
		s.TxRefused + s.TxClosed + s.TxNoLink + s.TxNoRoom
}

// counters are the counts as the endpoint keeps them. Those of received frames
// are published once a batch.
type counters struct {
	rxPackets, rxBytes, rxDelivered                      atomic.Uint64
	rxChecksum, rxVLAN, rxShort, rxOtherHost, rxDetached atomic.Uint64
	txPackets, txBytes, txRefused, txClosed, txNoLink    atomic.Uint64
	txNoRoom, txRingWaits, txPoolWaits                   atomic.Uint64
}

// Stats returns the counts. It may be called after Close.
func (e *Endpoint) Stats() Stats {
	c := &e.c
	return Stats{
		RxPackets: c.rxPackets.Load(), RxBytes: c.rxBytes.Load(), RxDelivered: c.rxDelivered.Load(),
		RxChecksum: c.rxChecksum.Load(), RxVLAN: c.rxVLAN.Load(), RxShort: c.rxShort.Load(),
		RxOtherHost: c.rxOtherHost.Load(), RxDetached: c.rxDetached.Load(),
		TxPackets: c.txPackets.Load(), TxBytes: c.txBytes.Load(),
		TxRefused: c.txRefused.Load(), TxClosed: c.txClosed.Load(), TxNoLink: c.txNoLink.Load(), TxNoRoom: c.txNoRoom.Load(),
		TxRingWaits: c.txRingWaits.Load(), TxPoolWaits: c.txPoolWaits.Load(),
	}
}
