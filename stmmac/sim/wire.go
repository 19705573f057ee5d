package sim

// Frame is an Ethernet frame on a wire.
type Frame struct {
	// Data is the frame from the destination address to the end of the payload,
	// without FCS. Whoever hands a Frame over keeps the memory and may reuse it
	// as soon as the call returned; a receiver that keeps the frame copies it.
	Data []byte
	// BadFCS says that the four bytes behind Data do not match it.
	BadFCS bool
}

// Wire is what a MAC is plugged into. The model calls Transmit and Receive from
// one goroutine at a time.
type Wire interface {
	// Transmit puts a frame on the wire. It returns false when the wire has no
	// room; the model then keeps the frame and tries again when notified.
	Transmit(f Frame) bool
	// Receive takes the next frame that arrives at the MAC, if there is one.
	// The frame is valid until the next call.
	Receive() (Frame, bool)
	// Elastic says that frames wait on the wire until the MAC has room for
	// them, as with a file or a generator. On a wire that is not elastic they
	// arrive whether the MAC has room or not.
	Elastic() bool
	// Notify sets the function that the wire calls, from any goroutine, when
	// Receive may have a frame or Transmit may have room again.
	Notify(f func())
	// Close ends the wire; later calls of Transmit drop the frame and return
	// true, and Receive has none. It is safe to call twice.
	Close() error
}
