// Package drive runs the driver of package stmmac on a board of package qtest: what
// it sends is compared with what comes out of QEMU's MAC, and the other way round.
//
// The MAC of QEMU neither filters nor checks, pads or counts, and its frames end in
// four bytes that are no FCS (hwtest/rig/qtest); the tests ask for what it does.
// Start reading at Tests. The package imports stmmac, pagepool and qtest.
package drive
