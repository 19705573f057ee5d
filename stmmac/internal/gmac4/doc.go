// Package gmac4 drives GMAC4 and GMAC5 (DWC Ethernet QoS 4.00 to 5.30): their
// registers and the format of their descriptors.
//
// hw.go identifies, resets, sets up, starts and stops the MAC; irq.go serves
// its channels; filter.go and vlan.go say which frames come in, queues.go where
// they go, flow.go when a partner pauses, offload.go what the device does to frames;
// mmc.go counts; dump.go shows the registers; mdio.go reaches the PHYs; rxdesc.go and txdesc.go move batches of
// descriptors. Whatever does not depend on the generation is in package core.
//
// It may import core, regs, mmio, barrier and pagepool, never package stmmac.
package gmac4
