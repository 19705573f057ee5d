// Package sim holds behavioural models of DesignWare Ethernet MACs and the wires that
// they are plugged into, so that a driver runs without hardware.
//
// [New] gives a [Device], a GMAC4 or GMAC5 (4.00 to 5.30) or, by [Config].Generation, a
// GMAC 3.x, that a driver in the same process opens like any other; [NewModel] is the
// same MAC behind another transport. A device either runs on a goroutine of its own,
// which sleeps until a doorbell, the wire or a timer wakes it, or, with
// [Config].Inline, in [Model.Step] alone. [Faults] make it behave like cores in the
// field, and [Model.Audit] tells what the driver did that the databook forbids.
//
// What is modelled: the register file with its reset values and masks, software reset,
// DMA channels with descriptor lists, tails and both buffers, the receive FIFO and its
// queues, arbitration between the transmit queues (strict, round robin by frames or
// bytes, fair) and between the receive queues, routing and filters, frame length rules,
// PAUSE both ways in full duplex, loopback, interrupt lines and the receive watchdog,
// MMC counters, the checksum engines of both directions, the filtering, stripping and
// insertion of one or two VLAN tags and the insertion of source addresses, and the
// management interface with PHYs of clause 22 and 45. A GMAC has one queue each way,
// lists of normal descriptors in a ring or a chain that OWN and poll demands alone
// govern, a type 2 checksum engine, VLAN filtering and clause 22. Half duplex has
// collisions where a fault asks for them and no back pressure. What is not: timestamps,
// segmentation, split header, priority flow control, credit-based shaping, frame
// preemption, energy saving; the feature registers say so, and their control bits read
// as 0. So they do of checksum and VLAN engines that [Config] leaves out.
//
// Sources: DWC Ethernet QoS databook and DWC Ethernet MAC Universal databook (GMAC),
// for the registers chapter and the descriptor chapter; Linux
// drivers/net/ethernet/stmicro/stmmac (dwmac4*.h, dwmac1000*, norm_desc.c) for their
// places; IEEE 802.3 and 802.1Q for frames; RFC 1071 and those of the protocols for
// checksums. The package imports barrier, mmio, stmmac/internal/core and
// stmmac/internal/regs. Start reading at [Config], then model.go; dmatx.go and dmarx.go
// are the data path, csum*.go and vlan*.go the offloads, sched.go, route.go and flow.go
// what stands between the queues and the wire, and phy.go tells how a test scripts the
// link. generation.go says what each generation does in its own way: gmac_*.go is GMAC
// 3.x, the rest GMAC4 and what they share.
package sim
