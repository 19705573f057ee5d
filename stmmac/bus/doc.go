// Package bus turns address strings into devices, for examples and tests.
//
// An address is
//
//	scheme:location[,key=value]...
//
// for example
//
//	pci:0000:03:00.0
//	platform:f0804000.ethernet,csr=125000000
//	sim:gmac4,wire=gen:loop
//	sim:gmac4,wire=pcap,in=a.pcap,out=b.pcap
//	sim:gmac4,wire=tap:tap0
//	sim:gmac,version=3.50,wire=pair:x
//
// Neither a location nor a value can hold a comma. What schemes there are is a
// value, an [Opener]: [NewOpener] knows pci:, platform: and sim:, and others are
// added to [Opener.Schemes].
//
// The location of pci: and platform: is a device that is with vfio-pci or
// vfio-platform ("stmmacctl bind" gives it to them): its name, or ids, driver or
// network interface by which vfio.Lookup finds it. Which MAC it has, and what else
// no register tells, is known for the devices of package glue; the keys say it for
// others, and go before what glue says:
//
//	generation= of the MAC: gmac (3.x, normal descriptors) or gmac4
//	region=     number of the BAR or the reg entry with its registers
//	offset=     of the registers in the region, bytes: 0x2000
//	csr=        frequency of the CSR clock in Hz; without it no PHY is looked after
//	width=      bits of a bus address, 32 to 64
//	addr=       the MAC's address, 02:00:00:00:00:01
//	iommu=      the way to the device: auto (the default: an iommufd if there is one,
//	            else its group), group, iommufd, or noiommu, which is auto and lets
//	            it reach all memory of the machine where no IOMMU stands before it;
//	            noiommu-group is that by its group
//	bind=       off (the default) or on: take the device from its kernel driver,
//	            as root, and give it back when it is closed
//
// The devices of one Opener with the same iommu= share a vfio.Domain while one of
// them is open: a frame moves between them without a copy.
//
// The keys of sim: are
//
//	wire=     what the MAC is plugged into, default null:
//	          null       nothing arrives, and what is sent is dropped
//	          gen[:NAME] a generator and checker; the two addresses of one NAME
//	                     send each other's frames through a forwarder (see
//	                     sim.NewLoop and Opener.Loop)
//	          pair:NAME  a cable to the other address of this NAME
//	          pcap       plays the file in= and records to the file out=
//	          tap:NAME   the TAP interface NAME of the Linux kernel, in the
//	                     network namespace of the thread that opens the address
//	                     (see sim.NewTAP)
//	in= out=  capture files of wire=pcap, at least one of them
//	fault=    rates of faults on the way from the wire to the MAC, joined by
//	          plus signs: drop=1e-4+dup=1e-3+seed=7; the faults are drop, crc,
//	          corrupt, dup and reorder (see sim.ParseFaultRates)
//	rxq= txq= queues that the device has, 1 to 8, default 8; a gmac has 1
//	rxfifo= txfifo=
//	          bytes of FIFO for all queues together, default 16384
//	bus=      width of the bus: 4, 8 or 16 bytes, default 8
//	width=    width of bus addresses: 32, 40 or 48 bits, default 48; of a gmac 32
//	version=  of the core: 4.00 to 5.30, default 5.20; of a gmac 3.00 to 3.70,
//	          default 3.70
//	hwfeature=
//	          on (the default) or none (a gmac without the register HW_Feature)
//	phy=      on (the default: a gigabit PHY whose partner negotiates) or none
//	          (the link is fixed: 1000 Mbit/s full duplex)
//	irq=      common (one interrupt vector for all, the default) or each (one
//	          vector for each direction of each queue; not on a gmac)
//	features= usual (the default) or all: with what the driver does not use yet too
//	          (see sim.Config.EnableAll); not on a gmac
//	profile=  strict (the default) or linux (see sim.Profile)
//	audit=    on (the default) or off: whether the model watches its driver
//
// The location of sim: is the generation of the MAC; there are gmac (3.x, normal
// descriptors) and gmac4.
//
// Start reading at [Opener.Open]. The package may import stmmac, its sim
// and glue, and vfio.
package bus
