package gmac

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// tickClock goes only as far as its sleepers ask.
type tickClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *tickClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *tickClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	return ctx.Err()
}

func (c *tickClock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// newHW returns the hardware of scripted registers with the given features, as
// after a reset.
func newHW(cfg core.Config, f core.Features) (*HW, *mmio.Fake) {
	fake := mmio.NewFake(0x2000)
	cfg.Clock = &tickClock{}
	h := New(&cfg, fake)
	h.feat = f
	h.resetFilter()
	fake.Set(uint32(gmacreg.VersionReg), 0x37)
	return h, fake
}

// named are the stores of a fake, oldest first, as "MAC_Frame_Filter 00000001".
func named(f *mmio.Fake) (out []string) {
	const hex = "0123456789abcdef"
	for _, a := range f.Log() {
		if !a.Store {
			continue
		}
		s := gmacreg.Map.Name(a.Off) + " "
		for shift := 28; shift >= 0; shift -= 4 {
			s += string(hex[a.Val>>shift&0xf])
		}
		out = append(out, s)
	}
	return out
}

func addr(t *testing.T, s string) net.HardwareAddr {
	t.Helper()
	a, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestHash holds the bins of case D45, as registers and bits.
func TestHash(t *testing.T) {
	type place struct {
		off uint32
		bit int
	}
	for _, c := range []struct {
		addr  string
		where map[int]place // by the number of bins
	}{
		{"01:00:5e:00:00:01", map[int]place{64: {0x08, 0}, 128: {0x508, 0}, 256: {0x510, 0}}},
		{"33:33:00:00:00:01", map[int]place{64: {0x0c, 1}, 128: {0x500, 3}, 256: {0x500, 6}}},
		{"33:33:ff:12:34:56", map[int]place{64: {0x08, 29}, 128: {0x50c, 26}, 256: {0x51c, 20}}},
		{"01:80:c2:00:00:0e", map[int]place{64: {0x0c, 30}, 128: {0x504, 28}, 256: {0x50c, 24}}},
	} {
		for bins, want := range c.where {
			h, f := newHW(core.Config{}, core.Features{HashBins: bins})
			use, err := h.SetFilter(core.Filter{Multicast: []net.HardwareAddr{addr(t, c.addr)}})
			if err != nil || use.Hashed != 1 {
				t.Fatal(use, err)
			}
			for off := uint32(0x008); off < 0x520; off += 4 {
				var bit uint32
				if off == want.off {
					bit = 1 << want.bit
				}
				if off != uint32(gmacreg.VersionReg) && f.Peek(off) != bit {
					t.Errorf("%s in %d bins: %#x is %#x, want %#x", c.addr, bins, off, f.Peek(off), bit)
				}
			}
			if got := gmacreg.MACFrameFilter.Load(f); got != gmacreg.HMC|gmacreg.HPF {
				t.Errorf("%s: MAC_Frame_Filter %v", c.addr, got)
			}
		}
	}
}

func TestFilter(t *testing.T) {
	a, b := addr(t, "02:00:00:00:00:0a"), addr(t, "02:00:00:00:00:0b")
	h, f := newHW(core.Config{}, core.Features{PerfectFilters: 17})
	for _, s := range []struct {
		f    core.Filter
		want []string
	}{
		{core.Filter{Promiscuous: true}, nil}, // all pairs are written after a reset
		{core.Filter{Unicast: []net.HardwareAddr{a}}, []string{
			"MAC_Frame_Filter 00000001", "MAC_Address1_High 80000a00", "MAC_Address1_Low 00000002", "MAC_Frame_Filter 00000000"}},
		{core.Filter{Unicast: []net.HardwareAddr{b, a}, Source: []net.HardwareAddr{b}, AllMulticast: true, NoBroadcast: true}, []string{
			"MAC_Frame_Filter 00000010", "MAC_Address2_High c0000b00", "MAC_Address2_Low 00000002",
			"MAC_Address3_High 80000b00", "MAC_Address3_Low 00000002", "MAC_Frame_Filter 00000230"}},
	} {
		f.ResetLog()
		if _, err := h.SetFilter(s.f); err != nil {
			t.Fatal(err)
		}
		got := named(f)
		if s.want == nil {
			if len(got) != 2*17+1 || !slices.Contains(got, "MAC_Address17_Low 00000000") {
				t.Errorf("after a reset: %v", got)
			}
			continue
		}
		// The filter in between is judged in package gmac4.
		if s.want[0] == "MAC_Frame_Filter 00000001" {
			s.want = s.want[1:]
		}
		got = slices.DeleteFunc(got, func(g string) bool { return g == "MAC_Frame_Filter 00000001" })
		if d := cmp.Diff(s.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", s.f, d)
		}
	}
	if _, err := h.SetFilter(core.Filter{VLANs: []uint16{1}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a filter of VLANs: %v", err)
	}
	if _, err := h.SetFilter(core.Filter{Unicast: []net.HardwareAddr{addr(t, "01:00:5e:00:00:01")}}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("a group among the unicasts: %v", err)
	}
}

func TestMDIO(t *testing.T) {
	const (
		gmiiAddress = 0x10
		gmiiData    = 0x14
		cr          = 1 << 2
	)
	w := func(off, v uint32) mmio.Access { return mmio.Access{Off: off, Val: v, Store: true} }
	r := func(off, v uint32) mmio.Access { return mmio.Access{Off: off, Val: v} }
	fresh := func() (*HW, *mmio.Fake) {
		h, f := newHW(core.Config{CSRClock: 125_000_000}, core.Features{MDIO: true})
		f.SelfClearing(gmiiAddress, 1, 0)
		return h, f
	}
	h, f := fresh()
	f.OnStore(gmiiAddress, func(uint32) { f.Set(gmiiData, 0xbeef) })
	if v, err := h.MDIO().Read(31, 17); v != 0xbeef || err != nil {
		t.Errorf("read %#x, %v", v, err)
	}
	if d := cmp.Diff([]mmio.Access{r(gmiiAddress, 0), w(gmiiData, 0), w(gmiiAddress, 31<<11|17<<6|cr|1),
		r(gmiiAddress, 31<<11|17<<6|cr), r(gmiiData, 0xbeef)}, f.Log()); d != "" {
		t.Error(d)
	}
	h, f = fresh()
	if err := h.MDIO().Write(1, 31, 0x1234); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]mmio.Access{r(gmiiAddress, 0), w(gmiiData, 0x1234), w(gmiiAddress, 1<<11|31<<6|cr|3),
		r(gmiiAddress, 1<<11|31<<6|cr|2)}, f.Log()); d != "" {
		t.Error(d)
	}
	f.Set(gmiiData, 0x0362)
	if v, err := h.MDIO().Read(3, 2); v != 0 || err != nil {
		t.Errorf("an absent PHY reads %#x, %v", v, err)
	}
	if _, err := h.MDIO().Read45(0, 1, 2); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("clause 45: %v", err)
	}
	if err := h.MDIO().Write45(0, 1, 2, 3); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("clause 45: %v", err)
	}
	for _, a := range [][2]int{{32, 0}, {-1, 0}, {0, 32}, {0, -1}} {
		if _, err := h.MDIO().Read(a[0], a[1]); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%v: %v", a, err)
		}
	}
	f.OnLoad(gmiiAddress, func(uint32) uint32 { return 1 })
	if _, err := h.MDIO().Read(0, 1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("busy for ever: %v", err)
	}
	f.OnLoad(gmiiAddress, func(uint32) uint32 { return mmio.AllOnes })
	if _, err := h.MDIO().Read(0, 1); !errors.Is(err, core.ErrGone) {
		t.Errorf("gone: %v", err)
	}
	h.cfg.CSRClock = 0
	if _, err := h.MDIO().Read(0, 1); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no clock: %v", err)
	}
	h.feat.MDIO = false
	if _, err := h.MDIO().Read(0, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no SMA: %v", err)
	}
}

// TestFlowThresholds: a frame has room when a pause is asked for, it ends below where
// it began, and the codes are those of the databook.
func TestFlowThresholds(t *testing.T) {
	for _, c := range []struct {
		size, mtu   int
		stop, start int // KiB below the end; 0: no pauses
	}{
		{2048, 1500, 0, 0}, {4096, 1500, 2, 3}, {8192, 1500, 4, 6}, {16384, 1500, 4, 6}, {32768, 9000, 0, 0}, {4096, 3500, 0, 0},
	} {
		v := flowThresholds(c.size, core.MaxFrameLen(c.mtu))
		stop, start := 0, 0
		if v&gmacreg.EFC != 0 {
			stop, start = int(gmacreg.RFAFrom(v))+1, int(gmacreg.RFDFrom(v))+1
		}
		if stop != c.stop || start != c.start {
			t.Errorf("%d bytes, MTU %d: %d and %d, want %d and %d", c.size, c.mtu, stop, start, c.stop, c.start)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		size, mtu := rapid.IntRange(128, 1<<17).Draw(t, "size"), rapid.IntRange(46, 9000).Draw(t, "mtu")
		v := flowThresholds(size, core.MaxFrameLen(mtu))
		stop, start := 1024*(int(gmacreg.RFAFrom(v))+1), 1024*(int(gmacreg.RFDFrom(v))+1)
		if v != 0 && (v&gmacreg.EFC == 0 || stop < core.MaxFrameLen(mtu) || start <= stop || start >= size || gmacreg.RFDFrom(v) > gmacreg.MaxThreshold) {
			t.Fatalf("%v: pause at %d and go on at %d below the end", v, stop, start)
		}
	})
}

func TestLink(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{HalfDuplex: true, MII: true, GMII: true})
	for _, c := range []struct {
		l    core.Link
		flow uint32
		conf gmacreg.Configuration
	}{
		{core.Link{Up: true, Speed: 1000, FullDuplex: true, RxPause: true, TxPause: true}, 0xffff0006, gmacreg.TE | gmacreg.RE | gmacreg.DM},
		{core.Link{Up: true, Speed: 100, FullDuplex: true, RxPause: true}, 4, gmacreg.TE | gmacreg.RE | gmacreg.DM | gmacreg.PS | gmacreg.FES},
		{core.Link{Up: true, Speed: 10, TxPause: true}, 0, gmacreg.TE | gmacreg.RE | gmacreg.PS},
		{core.Link{}, 0, gmacreg.PS},
	} {
		if err := h.SetLink(c.l); err != nil {
			t.Fatal(err)
		}
		if flow, conf := f.Peek(0x18), gmacreg.MACConfiguration.Load(f); flow != c.flow || conf != c.conf {
			t.Errorf("%v: Flow_Control %#x, MAC_Configuration %v", c.l, flow, conf)
		}
	}
	for _, l := range []core.Link{{Up: true, Speed: 2500, FullDuplex: true}, {Up: true, Speed: 1000}, {Up: true}} {
		if err := h.SetLink(l); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", l, err)
		}
	}
	if m := h.LinkModes(); m&core.Mode2500Full != 0 || m&core.Mode1000Full == 0 || m&core.Mode10Half == 0 {
		t.Errorf("modes %v", m)
	}
}

func TestWatchdog(t *testing.T) {
	h, f := newHW(core.Config{CSRClock: 256_000_000}, core.Features{Version: 0x35})
	for _, c := range []struct {
		d, actual time.Duration
		code      uint32
		err       error
	}{
		{0, 0, 0, nil}, {time.Nanosecond, 16 * time.Microsecond, 16, nil}, {100 * time.Microsecond, 100 * time.Microsecond, 100, nil},
		{255 * time.Microsecond, 255 * time.Microsecond, 255, nil}, {257 * time.Microsecond, 0, 255, os.ErrInvalid}, {-1, 0, 255, os.ErrInvalid},
		{math.MaxInt64, 0, 255, os.ErrInvalid},
	} {
		got, err := h.SetRxWatchdog(0, c.d)
		if got != c.actual || !errors.Is(err, c.err) || f.Peek(0x1024) != c.code {
			t.Errorf("%v: %v, %v, code %d", c.d, got, err, f.Peek(0x1024))
		}
	}
	h.feat.Version = 0x34
	if _, err := h.SetRxWatchdog(0, time.Millisecond); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("3.40: %v", err)
	}
	f.ResetLog()
	if _, err := h.SetRxWatchdog(0, 0); err != nil || len(f.Log()) != 0 {
		t.Errorf("3.40, off: %v, %v", err, f.Log())
	}
}

func TestEvents(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{})
	f.W1C(0x1014, 0x1ffff)
	if err := h.Unmask(0, core.EventRx); err != nil || f.Peek(0x101c) != 0x10040 {
		t.Fatal(err, f.Peek(0x101c))
	}
	// A transmit event has happened too, which is not enabled.
	f.Set(0x1014, uint32(gmacreg.RI|gmacreg.TU|gmacreg.NIS))
	if e := h.Events(0, core.EventRx|core.EventTx|core.EventFatal); e != core.EventRx {
		t.Errorf("events %#x", e)
	}
	if st, en := f.Peek(0x1014), f.Peek(0x101c); st != uint32(gmacreg.TU) || en != 0 {
		t.Errorf("Status %#x, Interrupt_Enable %#x", st, en)
	}
	h.irq.Set(core.EventFatal)
	f.Set(0x1014, uint32(gmacreg.FBI|gmacreg.AIS))
	if e := h.Events(0, core.EventFatal); e != core.EventFatal {
		t.Errorf("events %#x", e)
	}
	f.OnLoad(0x1014, func(uint32) uint32 { return mmio.AllOnes })
	if e, err := h.Events(0, core.EventFatal), h.Unmask(0, core.EventTx); e != core.EventGone || !errors.Is(err, core.ErrGone) {
		t.Errorf("gone: %#x, %v", e, err)
	}
}

func TestLost(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{})
	for v, want := range map[uint32][2]uint32{
		0: {}, 5 | 7<<17: {5, 7}, 1<<16 | 1: {65537, 0}, 1<<28 | 3<<17: {0, 2051}, mmio.AllOnes: {},
	} {
		f.Set(0x1020, v)
		if missed, full := h.Lost(0); missed != want[0] || full != want[1] {
			t.Errorf("%#x: %d missed, %d full", v, missed, full)
		}
	}
}

// TestCounters: the counters are those of the features, each has the name of the
// map, and their sums outlive a reset.
func TestCounters(t *testing.T) {
	for _, c := range []struct {
		f core.Features
		n int
	}{{core.Features{}, 0}, {core.Features{MMC: true}, 46}, {core.Features{MMC: true, HalfDuplex: true}, 52}, {core.Features{MMC: true, RxChecksum: true}, 74}} {
		h, f := newHW(core.Config{}, c.f)
		h.setupMMC()
		for _, m := range h.mmc.Counters() {
			f.ReadClear(uint32(m.Reg), mmio.AllOnes)
			f.Set(uint32(m.Reg), uint32(m.Reg))
		}
		h.ReadCounters()
		h.setupMMC()
		h.ReadCounters()
		n := 0
		for name, v := range h.Counters() {
			if v == 0 || gmacreg.Map.Name(uint32(v)) != name {
				t.Errorf("%s is %#x", name, v)
			}
			n++
		}
		if n != c.n {
			t.Errorf("%+v: %d counters, want %d", c.f, n, c.n)
		}
	}
}
