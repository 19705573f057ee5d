// Package stmmac drives Synopsys DesignWare Ethernet MACs (Linux: stmmac) from
// a Go process.
//
// [Open] takes a [Device] (its registers, interrupts and DMA mappings, from
// VFIO, from the simulation or from a transport of the caller's own) and
// returns a running [MAC]. Its queues move batches of frames between the rings
// and buffers of a [pagepool.Pool], without a copy and without allocation:
//
//	n := rx.Recv(bufs)             // never blocks
//	sent, err := tx.Send(bufs[:n]) // takes a prefix: back-pressure
//	err = rx.Wait(ctx)             // until there is something to receive
//
// A queue belongs to one goroutine at a time; [TxQueue.Shared] is for many
// senders. Buffers that Recv gave out belong to the caller, who sends them on
// another queue of a MAC of the same pool or frees them to the pool.
//
// Errors are of type [*Error] and name the call, the device, the register and
// the reason; errors.Is finds the reasons of this package and those of the
// standard library (net.ErrClosed, errors.ErrUnsupported, os.ErrInvalid).
// What is not there yet is refused with errors.ErrUnsupported.
//
// Start reading at Open in open.go; rxqueue.go and txqueue.go are the way of a
// frame, dispatch.go that of an interrupt. The rings stand in internal/core and
// the registers and descriptors of a generation in a folder of its own. The
// package may import mmio, barrier, pagepool, zerolog and its internal folders.
package stmmac
