package mmio_test

import (
	"fmt"

	"github.com/gostmmac/gostmmac/mmio"
)

// Configuration is the value of one register: bits of another do not fit.
type Configuration uint32

const (
	MACConfiguration mmio.Reg[Configuration] = 0x0000

	DM  Configuration = 1 << 13 // full duplex
	FES Configuration = 1 << 14 // 100 Mbit/s
	PS  Configuration = 1 << 15 // 10 or 100 Mbit/s

	IPG mmio.Field[Configuration] = 7 << 24 // inter-packet gap
)

func ExampleReg() {
	region := mmio.NewFake(0x1000)
	MACConfiguration.Store(region, FES|PS)
	// 1 Gbit/s, full duplex, and the shortest gap
	v := MACConfiguration.Update(region, FES|PS|IPG.Mask(), DM|IPG.Of(IPG.Max()))
	fmt.Printf("%#x, gap %d\n", v, IPG.Get(v))
	// Output: 0x7002000, gap 7
}

func ExampleField() {
	v := IPG.Put(DM, 3)
	fmt.Printf("%#x %d of %d\n", v, IPG.Get(v), IPG.Max())
	// Output: 0x3002000 3 of 7
}

func ExampleFake() {
	const dmaMode, dmaStatus = 0x1000, 0x1160
	f := mmio.NewFake(0x2000)
	f.SelfClearing(dmaMode, 1, 2) // a reset that takes two reads
	f.W1C(dmaStatus, 0xffff)
	f.Set(dmaStatus, 0x8041)

	f.Store32(dmaMode, 1)
	for f.Load32(dmaMode)&1 != 0 {
	}
	f.Store32(dmaStatus, 0x8001)
	fmt.Printf("status %#x\n", f.Load32(dmaStatus))
	for _, a := range f.Log() {
		fmt.Println(a)
	}
	// Output:
	// status 0x40
	// W 1000 00000001
	// R 1000 00000001
	// R 1000 00000001
	// R 1000 00000000
	// W 1160 00008001
	// R 1160 00000040
}
