// Package gmac drives GMAC 3.x (DWC Ethernet MAC 10/100/1000 Universal 3.00 to
// 3.70, "dwmac1000") with normal descriptors, in a ring or a chain: its registers
// and the format of its descriptors.
//
// hw.go identifies, resets, starts and stops the MAC, setup.go programs it; irq.go
// serves its channel; filter.go says which frames come in, flow.go when a partner
// pauses; mmc.go counts; dump.go shows the registers; mdio.go reaches the PHYs;
// desc.go, rxdesc.go and txdesc.go move batches of descriptors. Whatever does not
// depend on the generation is in package core.
//
// It may import core, regs, mmio, barrier and pagepool, never package stmmac.
package gmac
