// Package gmac4reg names the registers, bits and descriptor words of GMAC4 and
// GMAC5 (DWC Ethernet QoS 4.00 to 5.30), as the databook names them.
//
// Start reading at [Map], the table of all registers; mac.go, mtl.go and dma.go
// hold one block each, desc.go the descriptors. It imports mmio and regs.
package gmac4reg
