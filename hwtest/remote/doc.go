// Command remote is the peer of hardware tests that run on another machine: it sends,
// echoes and counts frames on an interface or with a device of its own.
//
//	go run ./hwtest/remote -listen 192.0.2.1:7777 -iface eth1
//	go run ./hwtest/remote -listen 192.0.2.1:7777 -dev pci:0000:03:00.0
//	go test -tags hwtest ./hwtest -device … -peer remote:192.0.2.1:7777
//
// Who can connect can send any frame on that interface: there is no password, so
// -listen names an address that only the tester can reach. One test at a time is
// served; ^C ends, and gives the device back. The protocol is in package
// hwtest/peer.
//
// Start reading at main.go. It may import hwtest/peer and stmmac/bus.
package main
