// Command echo answers on a TCP and a UDP port with what it gets (RFC 862), and
// pings, on a TCP/IP stack of its own.
//
//	echo                    a server and a client on two simulated MACs, 5 s
//	echo -dev ADDR          a server on another device, see package stmmac/bus, until ^C
//	echo -dev sim:gmac4,wire=tap:tap0 -addr 192.0.2.2/24
//
// The last one is reached by the machine's own kernel: it makes the interface tap0,
// which then gets an address of the same network and is brought up, as root:
//
//	ip addr add 192.0.2.1/24 dev tap0 && ip link set tap0 up
//	ping 192.0.2.2
//
// It prints what it serves, and counts at the end. Without -dev, the client sends
// over TCP and UDP and compares what comes back. The exit status is 0 if all of it
// did, 1 if it was changed or missing or a device failed, and 2 if the flags are
// wrong or a device cannot be opened. ^C and SIGTERM end it; a second ^C kills it.
//
//	-dev ADDR          the device; two simulated ones on a cable without it
//	-addr PREFIX,…     addresses of the server with the lengths of their prefixes,
//	                   IPv4 or IPv6, default 192.0.2.2/24
//	-gw ADDR,…         default gateways, one of each family at most
//	-port N            1 to 65535, default 7
//	-mtu N             68 to 9000 bytes, with IPv6 from 1280 on, default 1500
//	-duration D        how long, default 5s without -dev and no limit with it;
//	                   0 is no limit
//
// Start reading at serve in server.go. station.go opens what it needs, client.go is
// the client.
package main
