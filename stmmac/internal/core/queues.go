package core

import (
	"errors"
	"fmt"
	"os"
)

// TxSched is how the MAC chooses between transmit queues.
type TxSched uint8

// Schedulers. Databook: MTL_Operation_Mode.SCHALG.
const (
	TxWRR  TxSched = iota // weighted round robin, by packets
	TxWFQ                 // weighted fair queueing; needs Features.DCB
	TxDWRR                // deficit weighted round robin, by bytes; needs Features.DCB
	TxSP                  // strict priority: the queue of the highest number first
)

// String returns the abbreviation of the databook.
func (s TxSched) String() string {
	if int(s) < len(txScheds) {
		return txScheds[s].name
	}
	return fmt.Sprintf("scheduler %d", uint8(s))
}

// txScheds are the weights of the schedulers. Databook:
// MTL_TxQx_Quantum_Weight.ISCQW.
var txScheds = [...]struct {
	name     string
	max, def int
}{
	TxWRR:  {"WRR", 100, 16},
	TxWFQ:  {"WFQ", 0x3fff, 16},
	TxDWRR: {"DWRR", 0x1312d0, 2048},
	TxSP:   {"SP", 0, 0},
}

// RxArb is how the MAC chooses between receive queues.
type RxArb uint8

// Arbiters. Databook: MTL_Operation_Mode.RAA.
const (
	RxSP  RxArb = iota // strict priority: the queue of the highest number first
	RxWSP              // weighted strict priority
)

// maxRxWeight is the largest MTL_RxQx_Control.RXQ_WEGT.
const maxRxWeight = 7

// priorities is the number of priorities of IEEE 802.1Q (PCP).
const priorities = 8

// Queues says how several queues share the MAC. The zero value is weighted
// round robin with equal weights for sending, and for receiving strict
// priority, the eight priorities of VLAN tags spread over the queues in order,
// and everything else in queue 0.
type Queues struct {
	TxSched TxSched
	// TxWeights has one weight for each transmit queue; nil gives them the same.
	// With TxWRR it is 1 to 100 packets, with TxDWRR 1 to 1,250,000 bytes a
	// round; with TxWFQ 1 to 16,383, where a larger weight is a smaller share.
	// TxSP has none.
	TxWeights []int

	RxArb RxArb
	// RxWeights has one weight for each receive queue, 1 to 7 requests a round of
	// RxWSP; nil leaves them as they are after a reset. RxSP has none.
	RxWeights []int

	// PriorityQueue has the receive queue of each of the eight priorities of
	// VLAN tags (PCP); nil spreads them over the queues in order.
	PriorityQueue []int
	Untagged      int  // receive queue of frames without a VLAN tag (UPQ)
	Control       int  // of untagged control frames: pause, LLDP, slow protocols (DCBCPQ)
	PTP           int  // of untagged PTP frames over Ethernet (PTPQ)
	AVControl     int  // of untagged AV control frames (AVCPQ); needs Features.AV
	TaggedControl bool // tagged AV control frames go to AVControl too (TACPQE); needs Features.AV
	// RouteGroups sends multicasts and broadcasts to receive queue Groups
	// (MCBCQEN, MCBCQ); without it their tag, or that they have none, decides.
	RouteGroups bool
	Groups      int
}

// Check returns an error that is os.ErrInvalid if q does not fit the numbers of
// queues, or errors.ErrUnsupported if the device cannot do it.
func (q *Queues) Check(rx, tx int, f *Features) error {
	if int(q.TxSched) >= len(txScheds) || q.RxArb > RxWSP {
		return fmt.Errorf("transmit scheduler %d, receive arbiter %d: %w", q.TxSched, q.RxArb, os.ErrInvalid)
	}
	if s := q.TxSched; (s == TxWFQ || s == TxDWRR) && !f.DCB {
		return fmt.Errorf("the device has no DCB, which scheduler %v needs: %w", s, errors.ErrUnsupported)
	}
	maxRx := 0
	if q.RxArb == RxWSP {
		maxRx = maxRxWeight
	}
	if err := checkWeights("transmit", q.TxWeights, tx, txScheds[q.TxSched].max); err != nil {
		return err
	}
	if err := checkWeights("receive", q.RxWeights, rx, maxRx); err != nil {
		return err
	}
	if n := len(q.PriorityQueue); n != 0 && n != priorities {
		return fmt.Errorf("queues of %d priorities are given, and there are %d: %w", n, priorities, os.ErrInvalid)
	}
	for p, to := range q.PriorityQueue {
		if to < 0 || to >= rx {
			return fmt.Errorf("priority %d goes to receive queue %d of %d: %w", p, to, rx, os.ErrInvalid)
		}
	}
	for _, r := range []struct {
		what string
		to   int
	}{
		{"untagged", q.Untagged}, {"control", q.Control}, {"PTP", q.PTP}, {"AV control", q.AVControl}, {"group", q.Groups},
	} {
		if r.to < 0 || r.to >= rx {
			return fmt.Errorf("%s frames go to receive queue %d of %d: %w", r.what, r.to, rx, os.ErrInvalid)
		}
	}
	if q.Groups != 0 && !q.RouteGroups {
		return fmt.Errorf("receive queue %d is for groups, and RouteGroups is off: %w", q.Groups, os.ErrInvalid)
	}
	if (q.AVControl != 0 || q.TaggedControl) && !f.AV {
		return fmt.Errorf("the device has no AV, so it knows no AV control frames: %w", errors.ErrUnsupported)
	}
	return nil
}

// checkWeights checks the weights of n queues; most is 0 if there are none.
func checkWeights(what string, w []int, n, most int) error {
	switch {
	case len(w) == 0:
		return nil
	case most == 0:
		return fmt.Errorf("%s weights are given, and strict priority has none: %w", what, os.ErrInvalid)
	case len(w) != n:
		return fmt.Errorf("%d %s weights are given for %d queues: %w", len(w), what, n, os.ErrInvalid)
	}
	for i, v := range w {
		if v < 1 || v > most {
			return fmt.Errorf("weight %d of %s queue %d is not in 1..%d: %w", v, what, i, most, os.ErrInvalid)
		}
	}
	return nil
}

// TxWeight is the weight of a transmit queue.
func (q *Queues) TxWeight(i int) int {
	if len(q.TxWeights) == 0 {
		return txScheds[q.TxSched].def
	}
	return q.TxWeights[i]
}

// OfPriority is the receive queue, of rx, of a priority of VLAN tags.
func (q *Queues) OfPriority(p, rx int) int {
	if len(q.PriorityQueue) == 0 {
		return p * rx / priorities
	}
	return q.PriorityQueue[p]
}
