// Package chips puts the models of stmmac/sim into chips: PCI functions that package
// vfiouser shows to a virtual machine, where the stock Linux drivers of the chips, or this
// driver behind VFIO, find them.
//
// A [Chip] says what is around the MAC: identification, where the registers lie, interrupt
// vectors, a block of the chip's own. [Chip.New] makes one that is plugged into a wire, a
// [Card], and [Card.Serve] shows it. Start reading at card.go.
//
// What of the registers around the MACs no data sheet tells is taken from the Linux drivers
// (dwmac-motorcomm.c, dwmac-intel.c). The package imports vfio/vfiouser, stmmac/sim and
// mmio.
package chips
