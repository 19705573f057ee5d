// Package phy brings a copper Ethernet PHY up and follows its link, for any MAC
// that gives it a [Bus]. It is a state machine that is driven by calls: it has
// no goroutine, takes no lock, and one goroutine at a time calls it.
//
// [Find] looks for the PHY and writes nothing; [PHY.Start] powers it up, resets
// it if asked to, and sets up what it negotiates; [PHY.Poll], called every
// [PHY.Interval], says what link there is and goes on with whatever a failed
// access interrupted. No call may overlap a reset of the MAC, and the PHY has
// to be started before the MAC is reset: the reset needs the clock of the PHY.
//
// What IEEE 802.3 defines is used and nothing of a vendor: a PHY that lowers
// the speed by itself on a bad cable (downshift) tells that in registers of its
// vendor, and is not understood; nor is a PHY of a fibre.
//
// Start reading at phy.go; find.go looks for the PHY, clause22.go and
// clause45.go access its registers, which regs.go names, and resolve.go tells
// the link from what both sides advertise. It may import core.
package phy
