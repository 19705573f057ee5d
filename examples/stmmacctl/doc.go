// Command stmmacctl looks at a MAC: its counters, its link and its registers. It tries
// it in loopback, and captures what it receives.
//
//	stmmacctl stats ADDR             all counts, with the names of the databook
//	stmmacctl link ADDR              the link and the PHY; sets them with -set and -renegotiate
//	stmmacctl dump ADDR              the registers, except those that a read changes
//	stmmacctl loopback ADDR          sends frames of every size to itself and compares them
//	stmmacctl capture FILE ADDR      writes what passes to a pcapng file until ^C
//
// ADDR is a device, see package stmmac/bus: sim:gmac4, or sim:gmac4,wire=tap:tap0. The
// words and flags may come in any order. The device belongs to the command while it
// runs: it is reset and set up, frames that arrive are counted and dropped, and it is
// given back at the end. ^C and SIGTERM end the command; a second ^C kills it.
//
//	-json            print JSON: one object, with link -watch one for each change
//	-queues N        receive and transmit queues, 1 to 8, default 1
//	-mtu N           46 to 9000 bytes, default 1500
//	-wire W          the wire of a simulated device, as in its address: gen, tap:NAME
//	-wait D          all but capture: how long to wait for the link first, and in
//	                 loopback for a frame, default 2s
//	-duration D      stats: how long to count, default 0
//	                 link -watch, capture: how long, default 0, no limit
//	-nonzero         stats: leave out what is 0
//	-set MODE        link: 10/half to 2500/full, auto; for a fixed link down too
//	-renegotiate     link: negotiate again
//	-watch           link: print each change
//	-snaplen N       capture: bytes of a frame that are kept, default 0, all
//	-promisc=false   stats, capture: only frames for this station
//
// A FILE of - is the standard output; messages go to standard error then:
//
//	stmmacctl capture - sim:gmac4,wire=tap:tap0 | tshark -r -
//
// The exit status is 0 if it was done, 1 if a device failed or a frame of loopback was
// lost or changed, and 2 if the arguments are wrong or what they name cannot be opened.
//
// Start reading at runWith in main.go; device.go opens the MAC, and each command has a
// file of its own.
package main
