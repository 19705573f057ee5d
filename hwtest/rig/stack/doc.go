// Package stack runs the TCP/IP stack of package netstack on boards of package qtest:
// it answers a ping that comes over the wire, and serves a TCP download to the stack
// of a second board, through two of QEMU's MACs.
//
// Start reading at Ping and Download. The package imports netstack, stmmac, drive and qtest.
package stack
