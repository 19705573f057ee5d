package sim

import "fmt"

// TAPStats are the counts of a [TAPWire].
type TAPStats struct {
	RxFrames uint64 // from the interface to the MAC
	RxBytes  uint64 // of them, without FCS, with the padding
	// RxTooLong are frames of more than 16 KiB that the interface sent because
	// of its MTU. They are dropped.
	RxTooLong uint64
	TxFrames  uint64 // from the MAC to the interface
	TxBytes   uint64 // of them, without FCS
	// TxRefused are frames that the interface did not take: it is down, has no
	// carrier or is gone, or the kernel has no memory. They are dropped, as on a
	// cable without a receiver.
	TxRefused uint64
	TxBadFCS  uint64 // dropped as a receiver would: the interface knows no FCS
}

// TAPError is an error of a TAP interface.
type TAPError struct {
	Name string // of the interface
	Op   string
	Err  error
}

// Error implements error.
func (e *TAPError) Error() string {
	return fmt.Sprintf("sim: TAP interface %q: %s: %v", e.Name, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *TAPError) Unwrap() error { return e.Err }
