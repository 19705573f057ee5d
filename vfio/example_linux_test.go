package vfio_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// Registers of the copy engine of the example.
const (
	engineSource mmio.Reg[uint32] = 0x00 // bus address
	engineTarget mmio.Reg[uint32] = 0x04 // bus address
	engineStart  mmio.Reg[uint32] = 0x08 // how many bytes to copy
)

// copyEngine is a machine with a PCI function that copies memory, in Go: what a test
// of a driver has instead of the hardware.
func copyEngine(dir string) (*vfiotest.Kernel, error) {
	k, err := vfiotest.New(dir, vfiotest.Config{})
	if err != nil {
		return nil, err
	}
	var engine *vfiotest.Device
	var regs [3]uint32
	engine, err = k.AddPCI(vfiotest.PCI{
		BDF: "0000:01:00.0", Vendor: 0x1234, Device: 0x11e8, Class: 0x088000, Driver: "vfio-pci", MSI: 1, FLR: true,
		BARs: []vfiotest.Region{{
			Size: 4096,
			Read: func(off uint64, p []byte) { clear(p) },
			Write: func(off uint64, p []byte) {
				if off/4 >= uint64(len(regs)) {
					return
				}
				regs[off/4] = binary.LittleEndian.Uint32(p)
				if off == 8 {
					data := make([]byte, regs[2])
					if engine.Bus().Read(uint64(regs[0]), data) == nil {
						engine.Bus().Write(uint64(regs[1]), data)
					}
					engine.Fire(1, 0) // MSI
				}
			},
		}},
	})
	return k, err
}

// A driver opens its device, maps memory, tells the device what to do and waits for
// its interrupt. Nothing of it is about networks.
func Example() {
	dir, err := os.MkdirTemp("", "vfio")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	kernel, err := copyEngine(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer kernel.Free()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Without WithKernel it is the machine's own.
	dev, err := vfio.Open(ctx, "1234:11e8", vfio.WithKernel(kernel), vfio.WithDevice(vfio.WithAddrWidth(32)))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	regs, err := dev.Region(0)
	if err != nil {
		log.Fatal(err)
	}
	done, err := dev.Interrupt(0)
	if err != nil {
		log.Fatal(err)
	}
	mem, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		log.Fatal(err)
	}
	defer unix.Munmap(mem)
	bus, err := dev.MapDMA(mem)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.UnmapDMA(bus, len(mem))

	n := copy(mem, "from here to there")
	engineSource.Store(regs, uint32(bus))
	engineTarget.Store(regs, uint32(bus)+100)
	engineStart.Store(regs, uint32(n))
	fired, err := done.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %q %d\n", dev.Info().Name, mem[100:100+n], fired)
	// Output:
	// 0000:01:00.0 "from here to there" 1
}

// What keeps a device from being opened is told without opening it.
func ExampleExplain() {
	dir, err := os.MkdirTemp("", "vfio")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	kernel, err := vfiotest.New(dir, vfiotest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer kernel.Free()
	if _, err := kernel.AddPCI(vfiotest.PCI{BDF: "0000:03:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 14, Driver: "dwmac-motorcomm",
		BARs: []vfiotest.Region{{Size: 64 * kib}}}); err != nil {
		log.Fatal(err)
	}
	report, err := vfio.Explain(kernel, "03:00.0")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Severity == vfio.Failure {
			fmt.Println(f.Dev, f.Text)
		}
	}
	// Output:
	// 0000:03:00.0 it is with the kernel driver dwmac-motorcomm, and not with vfio-pci
}
