//go:build !linux

package sim

import "errors"

// TAPWire is a cable to a TAP interface; there is none but on Linux.
type TAPWire struct{ Wire }

// NewTAP returns an error that is errors.ErrUnsupported.
func NewTAP(name string) (*TAPWire, error) {
	return nil, &TAPError{name, "open", errors.ErrUnsupported}
}

// Name is the name of the interface.
func (w *TAPWire) Name() string { return "" }

// Done is closed when the interface is gone.
func (w *TAPWire) Done() <-chan struct{} { return nil }

// Err is what ended the wire.
func (w *TAPWire) Err() error { return nil }

// Stop keeps frames from arriving.
func (w *TAPWire) Stop() {}

// SetCarrier pulls the cable out or plugs it in.
func (w *TAPWire) SetCarrier(bool) error { return errors.ErrUnsupported }

// Stats returns the counts.
func (w *TAPWire) Stats() TAPStats { return TAPStats{} }
