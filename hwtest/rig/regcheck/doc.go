// Package regcheck tests a GMAC 3.x with normal descriptors register by register: reset
// values, the software reset, MDIO, frames in both directions with descriptors made
// by hand, interrupts. It shares nothing with the driver of this module, so it says whether
// a rig works before the driver runs on it.
//
// [Tests] is what every such MAC does, [Deviations] what QEMU's model does instead of what
// the databook says. Offsets and bits are those of the databook as Linux has them in
// dwmac1000.h, dwmac_dma.h and descs.h.
package regcheck
