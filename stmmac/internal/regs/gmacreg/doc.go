// Package gmacreg names the registers, bits and descriptor words of GMAC 3.x
// (DWC Ethernet MAC 10/100/1000 Universal), as the databook names them.
//
// Start reading at [Map], the table of all registers; mac.go, mmc.go and dma.go
// hold one block each, desc.go the normal descriptors. It imports mmio and regs.
package gmacreg
