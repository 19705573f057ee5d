// Embed shows how a program of its own module drives a MAC, by VFIO or through a
// transport that it brings: it sends every frame that it receives back to where it
// came from, in the buffer that it was received in, and prints counters at the end.
//
// Start reading at echo in echo.go, the loop; run in main.go is what stands
// around it, and vfio.go how a device is opened by VFIO. A transport is a
// [stmmac.Device]: uio_linux.go has one, whose registers and interrupt
// (interrupt_linux.go) come from Linux UIO and whose memory (memory_linux.go,
// extents.go) from u-dma-buf. Of the driver, package stmmac is all that a transport
// needs; the loop needs pagepool beside it.
//
// # Running it
//
//	go run . -vfio 0000:03:00.0
//	go run . -uio /dev/uio0 -dmabuf /dev/udmabuf0
//
// The first takes a device that is with vfio-pci or vfio-platform; stmmacctl (bind,
// doctor) brings one there. What follows is about the second.
//
// The peer sends to the address that is printed. Frames to a group address are
// not echoed, since it would become the source. ^C and SIGTERM end the program:
// it stops the DMA, masks the interrupt and gives back all memory. It exits with
// 1 on a failure, and says what to do where it can.
//
// # What the board needs
//
// The MAC need not see the caches of the CPU, since they are off for the memory
// that it reaches. No IOMMU may stand before it: the bus addresses that it uses
// are those that u-dma-buf reports. It can write anywhere in memory, so whoever
// may open the two devices is as good as root.
//
// Take the MAC from its kernel driver and give it to UIO. It needs no change of
// the device tree (f0804000.ethernet stands for its name in
// /sys/bus/platform/devices):
//
//	modprobe uio_pdrv_genirq
//	cd /sys/bus/platform
//	echo f0804000.ethernet > devices/f0804000.ethernet/driver/unbind
//	echo uio_pdrv_genirq > devices/f0804000.ethernet/driver_override
//	echo f0804000.ethernet > drivers/uio_pdrv_genirq/bind
//
// UIO enables no clock and no regulator, and the kernel driver turned them off:
// boot with clk_ignore_unused, or never let it have the MAC (a device tree with
// compatible = "generic-uio", and of_id=generic-uio for the module). The PHY must
// be out of reset, drive the receive clock, and have a link of 1000 Mbit/s full
// duplex: nothing here talks to it.
//
// Reserve memory with u-dma-buf (github.com/ikwzm/udmabuf), and have it mapped
// uncached and write-combined:
//
//	insmod u-dma-buf.ko udmabuf0=8388608
//	echo 2 > /sys/class/u-dma-buf/udmabuf0/sync_mode
//
// The default sync_mode of 1 is refused: it maps the memory as registers are, in
// which a program on arm64 cannot clear or copy. A MAC with the default rings of
// 512 descriptors takes at most 4.3 MiB.
//
// To run it without root, let udev give both devices to a group:
//
//	KERNEL=="uio0|udmabuf0", GROUP="netdev", MODE="0660"
//
// # Size
//
// The whole program, built by go1.26.8 with CGO_ENABLED=0, -trimpath and
// -ldflags "-s -w", is one file of 4.00 MB for linux/amd64 and 3.87 MB for
// linux/arm64. go test -v -run TestBuilds prints it for every platform.
package main
