// Package usercheck checks package vfiouser with its client, QEMU's vfio-user-pci: a small
// device written in Go is a PCI function of a q35 machine in which no guest runs, and the
// checks do over the qtest socket what a guest would do.
//
// Start reading at [Tests]. It works on Linux; elsewhere every test is refused with
// [errors.ErrUnsupported].
package usercheck
