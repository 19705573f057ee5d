// Package vfiouser shows a device that is written in Go to a virtual machine, or to any
// other client of the vfio-user protocol, as a PCI function. QEMU's client is its device
// vfio-user-pci (from version 10.1 on; 11.1 was tried).
//
// [New] makes a [Function] from a [Config]: identification, BARs, capabilities, numbers of
// interrupt vectors. What the function does is a [Device], of which four methods are
// needed: its registers read and written, a reset, and the end of windows. The Function is
// what the device reaches its host with, and it is there before the device, so that one can
// be made with the other:
//
//	f, err := vfiouser.New(vfiouser.Config{Vendor: 0x1f0a, Device: 0x6801, …})
//	…
//	dev := newModel(f)              // keeps f for DMA and interrupts
//	l, err := net.Listen("unix", "/run/nic.sock")
//	…
//	err = f.Serve(ctx, l, dev)      // until ctx ends
//
// # DMA
//
// The client tells which ranges of bus addresses (IOVA) the device may reach, and gives
// out the memory behind them as files. Each file is mapped once, whatever the number of
// ranges; [Function.Read], [Function.Write] and [Function.Window] look the address up and
// copy, or give the memory itself out, without allocation. Ranges without a file are
// reached by messages to the client, which takes a round trip; so are addresses in no
// range, so that the client's IOMMU reports the fault.
//
// An unmapping is answered when nobody uses the memory any more: copies under way are
// over, and the device has let go of its windows ([Device.DropWindows]).
//
// A client that waits for the answer to a read of a register may not answer a message
// meanwhile: QEMU does not, and gives the device up after 5 s. So a device should not wait
// for DMA while it serves a read. One that does gets an error after
// [Config.MessageTimeout], and for the rest of that read at once; with memory that the
// client shares as files the question does not arise.
//
// # Interrupts
//
// [Function.SetINTx] is the level of the interrupt pin, [Function.SignalMSI] and
// [Function.SignalMSIX] fire a vector, [Function.Signal] fires it as whichever of the two
// the client's driver has switched on. Masks are honoured wherever they are set: by the
// client's messages, in configuration space, and in the MSI-X table for entries that the
// client has written (QEMU keeps the table to itself). What fires while it is masked is
// pending, as the PBA shows, and fires once it is not, unless [Function.Withdraw] takes it
// back before.
//
// # Clients are not trusted
//
// Lengths, counts, indices, flags and descriptors of a message are checked; what is wrong
// gets an error reply with an errno, and a client that breaks the framing is hung up on.
// Memory, descriptors and mappings that a client can make the server hold are bounded. A
// file that is not memory (tmpfs, hugetlbfs) is not mapped, because a page of it may never
// come; a file that its owner can still cut short is accessed by copies alone, which
// survive that, and gives no windows. What is refused is told to [Config.Report].
//
// The server works on Linux; elsewhere [Function.Serve] returns an error that is
// [errors.ErrUnsupported]. Start reading at function.go; session_linux.go serves a client,
// commands_linux.go has a function for each command, iova.go is the table of windows.
// Sources: the vfio-user specification (QEMU docs/interop/vfio-user.rst), what QEMU's
// hw/vfio-user does, Linux include/uapi/linux/vfio.h, PCI Local Bus 3.0, PCI Express Base
// 3.0. The package imports mmio, the definitions of package vfio and golang.org/x/sys.
package vfiouser
