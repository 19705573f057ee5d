// Package qemu runs QEMU as a child and speaks the qtest protocol with it
// (docs/devel/testing/qtest.rst of QEMU), and QMP with its monitor. What machine it is, and what is asked of it, is
// for its users: package qtest and package q35.
//
// Start reading at [Process], then [Conn] and [Monitor]. They need Linux.
package qemu
