package stmmac_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// openOn opens a MAC on a fake device with a few options.
func openOn(t *testing.T, f *mmio.Fake, opts ...stmmac.Option) (*stmmac.MAC, *fakeDevice, error) {
	t.Helper()
	d := newFakeDevice(f)
	opts = append([]stmmac.Option{
		on(t).options(sim.Config{}), stmmac.WithLink(gigabit), stmmac.WithName("fake"), stmmac.WithClock(&stepClock{}),
	}, opts...)
	m, err := stmmac.Open(t.Context(), d, opts...)
	return m, d, err
}

// TestOpenRefuses holds what is refused, the reason that the error wraps, and
// what it says. Nothing stays mapped.
func TestOpenRefuses(t *testing.T) {
	config := func(f func(*stmmac.Config)) []stmmac.Option { return []stmmac.Option{stmmac.WithConfig(f)} }
	for _, tc := range []struct {
		name   string
		fake   func(*mmio.Fake)
		opts   []stmmac.Option
		target error
		words  []string
	}{
		{"version 0", func(f *mmio.Fake) { f.Set(0x110, 0) }, nil, errors.ErrUnsupported, []string{"MAC_Version", "no MAC", "clock"}},
		{"all ones", func(f *mmio.Fake) {
			f.OnLoad(0x110, func(uint32) uint32 { return mmio.AllOnes })
		}, nil, stmmac.ErrGone, []string{"MAC_Version", "0xffffffff"}},
		{"GMAC 3.7", func(f *mmio.Fake) { f.Set(0x110, 0x1037) }, nil, errors.ErrUnsupported, []string{"3.70", "not a GMAC4"}},
		{"XGMAC 2.10 by number", func(f *mmio.Fake) { f.Set(0x110, 0x7621) }, nil, errors.ErrUnsupported, []string{"2.10"}},
		{"version 5.40", func(f *mmio.Fake) { f.Set(0x110, 0x54) }, nil, errors.ErrUnsupported, []string{"5.40"}},
		{"no generation", nil, []stmmac.Option{stmmac.WithGeneration(0)}, os.ErrInvalid, []string{"generation"}},
		{"generation mac100", nil, []stmmac.Option{stmmac.WithGeneration(stmmac.MAC100)}, errors.ErrUnsupported, []string{"mac100"}},
		{"generation xgmac", nil, []stmmac.Option{stmmac.WithGeneration(stmmac.XGMAC)}, errors.ErrUnsupported, nil},
		{"no clock", func(f *mmio.Fake) { f.SelfClearing(0x1000, 1, -1) }, nil, stmmac.ErrNoClock, []string{"SWR", "PHY", "DMA_Mode"}},
		{"gone in the reset", func(f *mmio.Fake) {
			n := 0
			f.OnLoad(0x1000, func(v uint32) uint32 {
				if n++; n > 3 {
					return mmio.AllOnes
				}
				return v
			})
		}, nil, stmmac.ErrGone, []string{"reset"}},
		{"no queue", nil, []stmmac.Option{stmmac.WithQueues(0, 1)}, os.ErrInvalid, []string{"receive queues 0"}},
		{"nine queues", nil, []stmmac.Option{stmmac.WithQueues(1, 9)}, os.ErrInvalid, []string{"transmit queues 9"}},
		{"more queues than there are", nil, []stmmac.Option{stmmac.WithQueues(5, 1)}, os.ErrInvalid, []string{"5 receive queues", "has 4"}},
		{"ring of one", nil, []stmmac.Option{stmmac.WithRings(512, 1)}, os.ErrInvalid, []string{"transmit ring 1"}},
		{"ring of 1025", nil, []stmmac.Option{stmmac.WithRings(1025, 512)}, os.ErrInvalid, []string{"receive ring 1025"}},
		{"MTU 45", nil, []stmmac.Option{stmmac.WithMTU(45)}, os.ErrInvalid, []string{"MTU 45", "46..9000"}},
		{"MTU 9001", nil, []stmmac.Option{stmmac.WithMTU(9001)}, os.ErrInvalid, []string{"MTU 9001"}},
		{"MTU beyond the FIFO of a queue", nil, []stmmac.Option{stmmac.WithMTU(9000), stmmac.WithQueues(4, 4)}, os.ErrInvalid, []string{"FIFO", "fewer queues"}},
		{"multicast address", nil, []stmmac.Option{stmmac.WithHardwareAddr(net.HardwareAddr{1, 0, 0, 0, 0, 1})}, os.ErrInvalid, []string{"unicast"}},
		{"zero address", nil, []stmmac.Option{stmmac.WithHardwareAddr(make(net.HardwareAddr, 6))}, os.ErrInvalid, nil},
		{"short address", nil, []stmmac.Option{stmmac.WithHardwareAddr(net.HardwareAddr{2, 0})}, os.ErrInvalid, nil},
		{"speed 40", nil, []stmmac.Option{stmmac.WithLink(stmmac.Link{Up: true, Speed: 40, FullDuplex: true})}, errors.ErrUnsupported, []string{"40 Mbit/s"}},
		{"half duplex gigabit", nil, []stmmac.Option{stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000})}, errors.ErrUnsupported, []string{"half duplex"}},
		{"region that is not there", nil, config(func(c *stmmac.Config) { c.RegionNo = 3 }), os.ErrNotExist, []string{"region 3"}},
		{"offset behind the region", nil, config(func(c *stmmac.Config) { c.CSROffset = 0x1800 }), os.ErrInvalid, []string{"0x1800"}},
		{"offset that is no register", nil, config(func(c *stmmac.Config) { c.CSROffset = 0x41 }), os.ErrInvalid, nil},
		{"burst length 12345", nil, config(func(c *stmmac.Config) { c.AXI.BurstLens = 12345 }), os.ErrInvalid, []string{"burst"}},
		{"PBL 3", nil, config(func(c *stmmac.Config) { c.AXI.PBL = 3 }), os.ErrInvalid, []string{"PBL"}},
		{"17 reads", nil, config(func(c *stmmac.Config) { c.AXI.MaxReads = 17 }), os.ErrInvalid, nil},
		{"CSR clock in MHz", nil, config(func(c *stmmac.Config) { c.CSRClock = 125 }), os.ErrInvalid, []string{"CSR clock of 125 Hz"}},
		{"no time to reset", nil, config(func(c *stmmac.Config) { c.ResetTimeout = 0 }), os.ErrInvalid, nil},
		{"negative NET_IP_ALIGN", nil, []stmmac.Option{stmmac.WithNetIPAlign(-1)}, os.ErrInvalid, nil},
		{"buffers too small", nil, []stmmac.Option{stmmac.WithBufSize(100)}, os.ErrInvalid, []string{"buffer size 100"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fakeGMAC4()
			if tc.fake != nil {
				tc.fake(f)
			}
			m, d, err := openOn(t, f, tc.opts...)
			if err == nil {
				m.Close()
				t.Fatal("opened")
			}
			mustFail(t, err, tc.target, tc.words...)
			var e *stmmac.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), "fake") {
				t.Errorf("%v is no *Error that names the device", err)
			}
			d.mustUnmap(t)
		})
	}
}

// TestOpenMapFails fails each mapping in turn: nothing stays behind.
func TestOpenMapFails(t *testing.T) {
	for k := 1; ; k++ {
		f := fakeGMAC4()
		d := newFakeDevice(f)
		d.failMap = k
		m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithQueues(2, 2), stmmac.WithClock(&stepClock{}))
		if err == nil {
			if k < 5 {
				t.Errorf("opened with %d mappings", k-1)
			}
			m.Close()
			return
		}
		mustFail(t, err, os.ErrPermission)
		d.mustUnmap(t)
	}
}

// TestOpenCanceled ends the wait for the reset.
func TestOpenCanceled(t *testing.T) {
	f := fakeGMAC4()
	f.SelfClearing(0x1000, 1, -1)
	d := newFakeDevice(f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := stmmac.Open(ctx, d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}))
	mustFail(t, err, context.Canceled, "reset")
	d.mustUnmap(t)
}

// TestAddress keeps the address of the registers, and makes one up where they
// hold none.
func TestAddress(t *testing.T) {
	f := fakeGMAC4()
	f.Set(0x300, 0x80006655)
	f.Set(0x304, 0x44332202)
	m, _, err := openOn(t, f)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.HardwareAddr().String(); got != "02:22:33:44:55:66" {
		t.Errorf("address %s", got)
	}
	m.Close()
	for _, lo := range []uint32{0, 0xffffffff} {
		f := fakeGMAC4()
		f.Set(0x300, lo&0xffff)
		f.Set(0x304, lo)
		m, _, err := openOn(t, f)
		if err != nil {
			t.Fatal(err)
		}
		if a := m.HardwareAddr(); a[0]&3 != 2 {
			t.Errorf("address %s is not local unicast", a)
		}
		m.Close()
	}
}

// TestStopFails keeps memory mapped when neither the MAC nor the device obeys.
func TestStopFails(t *testing.T) {
	f := fakeGMAC4()
	m, d, err := openOn(t, f)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(0x100c, 0x1100) // processes that do not stop
	f.SelfClearing(0x1000, 1, -1)
	err = m.Close()
	if err != nil {
		t.Fatalf("the reset of the device helps: %v", err)
	}
	if d.resets != 1 {
		t.Errorf("%d resets of the device", d.resets)
	}
	d.mustUnmap(t)
}

// TestFeatures decodes the feature registers.
func TestFeatures(t *testing.T) {
	m, _, err := openOn(t, fakeGMAC4())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := m.Features()
	if f.Version != 0x52 || f.UserID != 0x10 || f.RxQueues != 4 || f.TxChannels != 4 || f.RxFIFO != 16384 ||
		f.AddrWidth != 40 || f.HashBins != 64 || !f.MMC || !f.MDIO || f.TSO || f.PCS {
		t.Errorf("%+v", f)
	}
}

// TestLost adds up the counters of lost frames, which clear when they are read
// and tell when they ran over.
func TestLost(t *testing.T) {
	f := fakeGMAC4()
	f.ReadClear(0x1164, ^uint32(0))
	f.ReadClear(0x0d34, ^uint32(0))
	m, _, err := openOn(t, f)
	if err != nil {
		t.Fatal(err)
	}
	want := stmmac.RxStats{}
	for _, tc := range []struct {
		miss, overflow uint32
		missed, full   uint64
	}{
		{0, 0, 0, 0},
		{5, 7, 5, 7},
		{2047, 3<<16 | 2047, 2050, 2047},
		{1<<15 | 1, 1<<27 | 1<<16 | 1<<11 | 2, 2049 + 2049, 2050},
		{mmio.AllOnes, mmio.AllOnes, 0, 0},
	} {
		f.Set(0x1164, tc.miss)
		f.Set(0x0d34, tc.overflow)
		want.Missed += tc.missed
		want.FIFOFull += tc.full
		for range 2 {
			if got := m.Rx(0).Stats(); got != want {
				t.Errorf("%#x, %#x: %+v, want %+v", tc.miss, tc.overflow, got, want)
			}
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	f.Set(0x1164, 9)
	if got := m.Rx(0).Stats(); got != want {
		t.Errorf("after Close: %+v", got)
	}
}

// TestReopen opens and closes a device many times in one process: nothing is
// left of it.
func TestReopen(t *testing.T) {
	maps, fds := countLines(t, "/proc/self/maps"), countDir("/proc/self/fd")
	goroutines := runtime.NumGoroutine()
	a, b := sim.NewPair(64)
	defer b.Close()
	d, err := sim.New(sim.Config{RxQueues: 2, TxQueues: 2}, a)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithQueues(2, 2), stmmac.WithRings(64, 64))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal("second close:", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for i := 0; runtime.NumGoroutine() > goroutines; i++ {
		if i == 1000 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
		time.Sleep(time.Millisecond)
	}
	// The runtime maps memory of its own now and then.
	if n := countLines(t, "/proc/self/maps"); n > maps+10 {
		t.Errorf("%d mappings, %d before", n, maps)
	}
	if n := countDir("/proc/self/fd"); n > fds {
		t.Errorf("%d file descriptors, %d before", n, fds)
	}
}

func countLines(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Skip("no ", file)
	}
	return strings.Count(string(b), "\n")
}

func countDir(dir string) int {
	e, _ := os.ReadDir(dir)
	return len(e)
}

// TestHeapObjects holds that an open device has few heap objects, however large
// its rings and its pool.
func TestHeapObjects(t *testing.T) {
	count := func(queues, ring, bufs int) int {
		clock := sim.NewManualClock()
		d, err := sim.New(sim.Config{Inline: true, RxQueues: 4, TxQueues: 4, Clock: clock}, &testWire{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		objects := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapObjects)
		}
		before := objects()
		pool, err := pagepool.New(d, bufs)
		if err != nil {
			t.Fatal(err)
		}
		m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithPool(pool),
			stmmac.WithClock(clock), stmmac.WithQueues(queues, queues), stmmac.WithRings(ring, ring))
		if err != nil {
			t.Fatal(err)
		}
		n := objects() - before
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		return n
	}
	count(1, 64, 1024) // what is allocated once in a process
	for _, tc := range []struct{ queues, ring, bufs int }{{1, 64, 1024}, {1, 1024, 4096}, {1, 1024, 65536}, {4, 1024, 65536}} {
		n := count(tc.queues, tc.ring, tc.bufs)
		most := 64 + 16*2*tc.queues
		t.Logf("%d+%d queues, rings of %d, %d buffers: %d heap objects (at most %d)", tc.queues, tc.queues, tc.ring, tc.bufs, n, most)
		if n > most {
			t.Errorf("%d heap objects, more than %d", n, most)
		}
	}
}
