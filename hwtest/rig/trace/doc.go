// Package trace compares the bring-up of a MAC by the driver of package stmmac with that
// by the stock Linux driver, both as QEMU's model of the MAC saw them: the witness is
// QEMU's own trace of the accesses to its registers (-trace 'npcm_gmac_reg_*').
//
// What the stock driver did, and why this one does otherwise, is in internal/bringup.
// Start reading at [BringUp]. The package imports internal/bringup, drive, note, qtest, mmio
// and stmmac.
package trace
