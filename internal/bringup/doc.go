// Package bringup compares the stores to registers with which a MAC is brought up with
// those of the stock Linux driver, as a second source of the order and of the values.
//
// What the stock driver did on QEMU's GMAC is here, with the reasons why this driver does
// otherwise; one on scripted registers (package stmmac) and one on QEMU's model
// (hwtest/rig/trace) are compared with it.
//
// Start reading at [Compare]. Only tests and the rigs import the package. It imports mmio
// and stmmac.
package bringup
