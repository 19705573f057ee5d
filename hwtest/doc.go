// Package hwtest is one list of hardware tests that runs on any device with any
// peer: a board with a cable to another, the loopback of a MAC, a simulated device.
//
//	go test -tags hwtest ./hwtest -device pci:0000:03:00.0 -peer af_packet:eth1 -v
//	go test -tags hwtest ./hwtest -device sim:gmac4 -peer sim
//
// The tests have the build tag hwtest; README.md tells how to run them on a board.
// Start reading at list_test.go, the list and what each test needs; rig_test.go is
// what they use. The addresses are those of package stmmac/bus, the peers those of
// package hwtest/peer.
package hwtest
