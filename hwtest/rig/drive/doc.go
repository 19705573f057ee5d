// Package drive runs the driver of package stmmac on a board of package qtest: what
// it sends is compared with what comes out of QEMU's MAC, and the other way round.
//
// The MAC of QEMU neither filters nor checks, pads or counts, and its frames end in
// four bytes that are no FCS (hwtest/rig/qtest); the tests ask for what it does.
// Start reading at Tests, and at Survivals for what that MAC does otherwise than hardware:
// survive_*.go, on a device whose registers, interrupts and rings the test sees (watched.go).
// The package imports barrier, mmio, note, pagepool, qtest and stmmac.
package drive
