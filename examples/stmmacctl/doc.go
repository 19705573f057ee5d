// Command stmmacctl looks at a MAC: its counters, its link and its registers. It tries
// it in loopback, and captures what it receives. It also says what a machine has of
// MACs and what keeps one from being opened, and gives one to VFIO and back.
//
//	stmmacctl stats ADDR             all counts, with the names of the databook
//	stmmacctl link ADDR              the link and the PHY; sets them with -set and -renegotiate
//	stmmacctl dump ADDR              the registers, except those that a read changes
//	stmmacctl loopback ADDR          sends frames of every size to itself and compares them
//	stmmacctl capture FILE ADDR      writes what passes to a pcapng file until ^C
//
//	stmmacctl list                   the Ethernet controllers of the machine
//	stmmacctl doctor [ADDR]          what keeps a device from being opened with VFIO, and what
//	                                 to do about it; without ADDR what keeps any
//	stmmacctl bind ADDR              gives a device to vfio-pci or vfio-platform, as root
//	stmmacctl unbind ADDR            gives it back to its kernel driver, as root
//
// ADDR is a device, see package stmmac/bus: sim:gmac4, or sim:gmac4,wire=tap:tap0. The
// words and flags may come in any order. The device belongs to the command while it
// runs: it is reset and set up, frames that arrive are counted and dropped, and it is
// given back at the end. ^C and SIGTERM end the command; a second ^C kills it.
//
// The commands of the second part open no device, and have of the flags only -json, -all
// and -force. Their ADDR is pci:0000:03:00.0 or platform:f0804000.ethernet, as list prints
// it, or what vfio.Lookup takes: 03:00.0, 1f0a:6801, driver=dwmac-intel, enp3s0.
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
//	-all             list: all devices of PCI and the platform
//	-force           bind: take a device whose network interface is up
//
// A FILE of - is the standard output; messages go to standard error then:
//
//	stmmacctl capture - sim:gmac4,wire=tap:tap0 | tshark -r -
//
// The exit status is 0 if it was done, 1 if a device failed or a frame of loopback was
// lost or changed or doctor found a failure, and 2 if the arguments are wrong or what they name cannot be opened.
//
// Start reading at runWith in main.go; device.go opens the MAC, machine.go reads the addresses
// of what is not opened, and each command has a file of its own.
package main
