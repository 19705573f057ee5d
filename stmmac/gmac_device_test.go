package stmmac_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/internal/bringup"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// fakeGMAC returns the registers of a GMAC 3.2 with what QEMU's npcm-gmac says of
// itself, whose reset ends at once.
func fakeGMAC() *mmio.Fake {
	f := mmio.NewFake(0x2000)
	f.Set(0x0020, 0x1032)
	f.Set(0x1058, 0x100d4f37)
	f.ReadOnly(0x0020, ^uint32(0))
	f.ReadOnly(0x1058, ^uint32(0))
	f.SelfClearing(0x1000, 1, 1)
	f.W1C(0x1014, 0x1ffff)
	return f
}

// scripted is a MAC on scripted registers of a GMAC; the test plays the DMA.
type scripted struct {
	*testing.T
	fake *mmio.Fake
	dev  *fakeDevice
	pool *pagepool.Pool
	mac  *stmmac.MAC
}

func newScripted(t *testing.T, n int, opts ...stmmac.Option) *scripted {
	t.Helper()
	return newScriptedOn(t, fakeGMAC(), n, opts...)
}

func newScriptedOn(t *testing.T, f *mmio.Fake, n int, opts ...stmmac.Option) *scripted {
	t.Helper()
	s := &scripted{T: t, fake: f}
	s.dev = newFakeDevice(s.fake)
	var err error
	if s.pool, err = pagepool.New(s.dev, 64, pagepool.WithBufSize(2048)); err != nil {
		t.Fatal(err)
	}
	s.mac, err = stmmac.Open(t.Context(), s.dev, append([]stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC), stmmac.WithLink(gigabit), stmmac.WithName("fake"), stmmac.WithClock(&stepClock{}),
		stmmac.WithPool(s.pool), stmmac.WithRings(n, n), stmmac.WithHardwareAddr([]byte{2, 0, 0, 0, 0, 1}), noSelfTest,
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.mac.Close(), s.pool.Close()); err != nil {
			t.Error(err)
		}
		s.dev.mustUnmap(t)
	})
	return s
}

// at is n bytes of memory by bus address.
func (s *scripted) at(iova uint64, n int) []byte {
	s.Helper()
	for a, mem := range s.dev.memory {
		if iova >= a && iova+uint64(n) <= a+uint64(len(mem)) {
			return mem[iova-a:][:n]
		}
	}
	s.Fatalf("nothing is mapped at %#x", iova)
	return nil
}

// desc is a descriptor of the list whose address is in a register.
func (s *scripted) desc(list uint32, slot int) []byte {
	return s.at(uint64(s.fake.Peek(list))+uint64(slot)*16, 16)
}

const (
	rxList = 0x100c
	txList = 0x1010
)

func (s *scripted) word(list uint32, slot, w int) uint32 {
	return binary.LittleEndian.Uint32(s.desc(list, slot)[4*w:])
}

func (s *scripted) setStatus(list uint32, slot int, v uint32) {
	binary.LittleEndian.PutUint32(s.desc(list, slot), v)
}

// store puts bytes in the receive buffer of a slot.
func (s *scripted) store(slot int, p []byte) {
	copy(s.at(uint64(s.word(rxList, slot, 2)), len(p)), p)
}

func (s *scripted) recv(n int) [][]byte {
	return receive(s.pool, n, func() {}, s.mac.Rx(0).Recv)
}

// TestGMACTwoSteps: a frame whose last descriptor does not say yet that it is the
// last is left on the ring, whatever the size of the ring, and nothing is posted over
// it (deviation 1 of QEMU's model).
func TestGMACTwoSteps(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newScripted(t, n)
			for i := range 3 * n {
				slot := i % n
				f := frame(60+i, uint64(i))
				s.store(slot, append(bytes.Clone(f), 0xaa, 0xaa, 0xaa, 0xaa))
				status := uint32(len(f)+4)<<16 | 1<<9
				s.setStatus(rxList, slot, status)
				over, end := context.WithCancel(t.Context())
				end()
				if err := s.mac.Rx(0).Wait(over); !errors.Is(err, context.Canceled) {
					t.Fatalf("frame %d is there to be taken in between: %v", i, err)
				}
				for range 3 {
					if got := s.recv(1); len(got) != 0 {
						t.Fatalf("frame %d came in between", i)
					}
					if v := s.word(rxList, slot, 0); v != status {
						t.Fatalf("the descriptor of frame %d is %#x", i, v)
					}
				}
				s.setStatus(rxList, slot, status|1<<8)
				if err := s.mac.Rx(0).Wait(over); err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				if got := s.recv(1); len(got) != 1 || !bytes.Equal(got[0], f) {
					t.Fatalf("frame %d: %d frames", i, len(got))
				}
				s.recv(1) // refills
			}
		})
	}
}

// TestGMACPassed: a device that misses a descriptor in the middle of a frame may mark
// it and go on behind it (deviation 9 of QEMU's model): the frame is lost, and the
// ones behind it are not.
func TestGMACPassed(t *testing.T) {
	const n = 4
	s := newScripted(t, n, stmmac.WithMTU(4000), stmmac.WithConfig(func(c *stmmac.Config) { c.RxFIFO, c.TxFIFO = 8192, 8192 }))
	slot := 0
	for round := range 5 {
		// One whole frame, and then one that needs more than the two that are left.
		f := frame(100, uint64(round))
		s.store(slot, f)
		s.setStatus(rxList, slot, 104<<16|1<<9|1<<8)
		for i := 1; i < n-1; i++ {
			status := uint32(i*1920) << 16
			if i == 1 {
				status |= 1 << 9
			}
			s.setStatus(rxList, (slot+i)%n, status)
		}
		passed := (slot + n - 1) % n
		if s.word(rxList, passed, 0)>>31 != 0 {
			t.Fatalf("round %d: slot %d is the device's", round, passed)
		}
		s.setStatus(rxList, passed, 0x100)
		got := s.recv(1)
		if len(got) != 1 || !bytes.Equal(got[0], f) {
			t.Fatalf("round %d: %d frames", round, len(got))
		}
		s.recv(1)
		// The next one lies behind the mark.
		slot = (passed + 1) % n
		if s.word(rxList, slot, 0)>>31 == 0 {
			t.Fatalf("round %d: slot %d was not given to the device", round, slot)
		}
		f = frame(200, uint64(round))
		s.store(slot, f)
		s.setStatus(rxList, slot, 204<<16|1<<9|1<<8)
		if got := s.recv(1); len(got) != 1 || !bytes.Equal(got[0], f) {
			t.Fatalf("round %d: %d frames behind the mark", round, len(got))
		}
		s.recv(1)
		if st := s.mac.Rx(0).Stats(); st.Packets != uint64(2*(round+1)) || st.Drops() != uint64(round+1) {
			t.Fatalf("round %d: %+v", round, st)
		}
		slot = (slot + 1) % n
	}
}

// TestGMACDescriptors: what the descriptors of both lists hold, in a ring and in a
// chain.
func TestGMACDescriptors(t *testing.T) {
	const n = 4
	for _, chained := range []bool{false, true} {
		s := newScripted(t, n, stmmac.WithNetIPAlign(2), stmmac.WithConfig(func(c *stmmac.Config) { c.Chain = chained }))
		for slot := range n {
			end, next := uint32(0), uint32(0)
			switch {
			case chained:
				end, next = 1<<24, s.fake.Peek(rxList)+uint32(slot+1)%n*16
			case slot == n-1:
				end = 1 << 25
			}
			own, size := uint32(1<<31), uint32(1920)
			if slot == n-1 {
				own, size = 0, 0 // the one that is never the device's, so far
			}
			want := []uint32{own, end | size, s.word(rxList, slot, 2), next}
			for w := range want {
				if got := s.word(rxList, slot, w); got != want[w] {
					t.Errorf("chain %v, receive slot %d: word %d is %#x, want %#x", chained, slot, w, got, want[w])
				}
			}
			if a := s.word(rxList, slot, 2); slot < n-1 && a%16 != 2 {
				t.Errorf("the buffer of slot %d is at %#x", slot, a)
			}
		}
		var bufs []*pagepool.Buf
		for _, each := range []int{100, 50, 100} {
			bufs = append(bufs, chain(t, s.pool, frame(100, 1), each))
		}
		s.fake.ResetLog()
		if k, err := s.mac.Tx(0).Send(bufs); k != 3 || err != nil {
			t.Fatal(k, err)
		}
		for slot, word := range []uint32{1<<30 | 1<<29 | 100, 1<<29 | 50, 1<<30 | 50, 1<<31 | 1<<30 | 1<<29 | 100} {
			next := uint32(0)
			switch {
			case chained:
				word |= 1 << 24
				next = s.fake.Peek(txList) + uint32(slot+1)%n*16
			case slot == n-1:
				word |= 1 << 25
			}
			if a, b, c := s.word(txList, slot, 0), s.word(txList, slot, 1), s.word(txList, slot, 3); a != 1<<31 || b != word || c != next {
				t.Errorf("chain %v, transmit slot %d is %#x %#x, next %#x, want word %#x, next %#x", chained, slot, a, b, c, word, next)
			}
		}
		if log := s.fake.Log(); len(log) != 1 || log[0] != (mmio.Access{Off: 0x1004, Val: 1, Store: true}) {
			t.Errorf("accesses of a Send: %v", log)
		}
		for slot := range n {
			s.setStatus(txList, slot, 0)
		}
		if k := s.mac.Tx(0).Reap(nil); k != 3 {
			t.Errorf("%d frames are done", k)
		}
	}
}

// TestGMACInterrupts: the slots of which the receive descriptors ask for an interrupt.
func TestGMACInterrupts(t *testing.T) {
	const n = 8
	for every, want := range map[int]uint32{0: 0, 1: 0x7f, 2: 0x55, 3: 0x49, 7: 0x01} {
		c := stmmac.Coalesce{RxTime: time.Millisecond / 4, RxFrames: every}
		if every == 1 {
			c = stmmac.Coalesce{}
		}
		f := fakeGMAC()
		f.Set(0x20, 0x1037) // the first with a watchdog is 3.50
		s := newScriptedOn(t, f, n, stmmac.WithCSRClock(1<<27), stmmac.WithCoalesce(c))
		var got uint32
		for slot := range n - 1 {
			if s.word(rxList, slot, 1)>>31 == 0 {
				got |= 1 << slot
			}
		}
		if got != want {
			t.Errorf("each %d: %#x, want %#x", every, got, want)
		}
	}
}

// TestGMACStatus: what the receive status means.
func TestGMACStatus(t *testing.T) {
	s := newScripted(t, 4)
	const whole = 104<<16 | 1<<9 | 1<<8
	slot := 0
	for _, c := range []struct {
		status uint32
		count  string // that goes up; "" if the frame comes
		flags  pagepool.Flags
	}{
		{whole, "", 0},                                        // IEEE 802.3
		{whole | 1<<5, "", pagepool.RxCsumGood},               // IP, all right
		{whole | 1<<5 | 1<<0, "", pagepool.RxCsumBad},         // payload
		{whole | 1<<5 | 1<<7, "", pagepool.RxCsumBad},         // IP header
		{whole | 1<<5 | 1<<7 | 1<<0, "", pagepool.RxCsumBad},  // both
		{whole | 1<<0, "", 0},                                 // a payload that the engine does not know
		{whole | 1<<7 | 1<<0, "", 0},                          // no IP
		{whole | 1<<5 | 1<<0 | 1<<15, "", pagepool.RxCsumBad}, // with the summary
		{whole | 1<<5 | 1<<0 | 1<<1 | 1<<15, "crc", 0},        // and a bad FCS
		{whole | 1<<1, "", 0},                                 // without the summary it is none
		{whole | 1<<11 | 1<<15, "overflow", 0}, {whole | 1<<4 | 1<<15, "watchdog", 0}, {whole | 1<<3 | 1<<15, "receive", 0},
		{whole | 1<<14 | 1<<15, "truncated", 0}, {whole | 1<<6 | 1<<15, "other", 0}, {17<<16 | 1<<9 | 1<<8, "length", 0},
		{0x3fff<<16 | 1<<9 | 1<<8, "length", 0},
	} {
		count := func() uint64 {
			for name, v := range s.mac.Rx(0).Stats().All() {
				if name == c.count {
					return v
				}
			}
			return 0
		}
		before := count()
		s.setStatus(rxList, slot%4, c.status)
		one := make([]*pagepool.Buf, 1)
		k := s.mac.Rx(0).Recv(one)
		switch {
		case c.count == "" && (k != 1 || one[0].Flags != c.flags || one[0].Len() != 100):
			t.Errorf("%#x: %d frames, want flags %#x", c.status, k, c.flags)
		case c.count != "" && (k != 0 || count() != before+1):
			t.Errorf("%#x: %d frames, %s is %d after %d", c.status, k, c.count, count(), before)
		}
		if k == 1 {
			s.pool.Free(one[0])
		}
		s.mac.Rx(0).Recv(one)
		slot++
	}
}

// TestGMACTrace compares the bring-up with that by the stock driver of Linux on QEMU's
// npcm-gmac, on scripted registers; hwtest/rig/trace does it on QEMU's.
func TestGMACTrace(t *testing.T) {
	f := fakeGMAC()
	opts := append(bringup.LinuxGMACOptions(), stmmac.WithClock(&stepClock{}), stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}))
	m, err := stmmac.Open(t.Context(), newFakeDevice(f), opts...)
	if err != nil {
		t.Fatal(err)
	}
	opened := f.Log()
	for _, g := range bringup.LinuxGMACGroups() {
		if err := m.JoinGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	log := f.Log()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for i, a := range opened {
		if a.Off == rxList || a.Off == txList {
			opened[i].Val = 0 // the list is where it is
		}
	}
	goldenStores(t, stmmac.GMAC, "testdata/bringup-gmac.golden", opened)

	stock, err := bringup.LinuxGMAC()
	if err != nil {
		t.Fatal(err)
	}
	r := bringup.Compare(stock, log, bringup.GMACName, bringup.GMACReasons())
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if r.Stores < 60 {
		t.Error(r)
	}
}

// TestGMACIdentify: what is no GMAC 3.x with normal descriptors is refused.
func TestGMACIdentify(t *testing.T) {
	for _, c := range []struct {
		what  string
		fake  func(f *mmio.Fake)
		want  error
		words []string
	}{
		{"gone", func(f *mmio.Fake) { f.OnLoad(0x20, func(uint32) uint32 { return mmio.AllOnes }) }, stmmac.ErrGone, []string{"Version=0xffffffff"}},
		{"nothing", func(f *mmio.Fake) { f.Set(0x20, 0) }, errors.ErrUnsupported, []string{"no MAC"}},
		{"reset under way", func(f *mmio.Fake) {
			f.Set(0x20, 0)
			f.Set(0x1000, 1)
			f.OnLoad(0x1000, func(uint32) uint32 { return 1 })
		}, stmmac.ErrNoClock, []string{"receive clock"}},
		{"GMAC4", func(f *mmio.Fake) { f.Set(0x20, 0x1041) }, errors.ErrUnsupported, []string{"4.10"}},
		{"enhanced descriptors", func(f *mmio.Fake) { f.Set(0x1058, 0x100d4f37|1<<24) }, errors.ErrUnsupported, []string{"ENHDESSEL", "HW_Feature"}},
		{"no clock", func(f *mmio.Fake) { f.OnLoad(0x1000, func(v uint32) uint32 { return v | 1 }) }, stmmac.ErrNoClock, []string{"Bus_Mode", "SWR"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := fakeGMAC()
			c.fake(f)
			d := newFakeDevice(f)
			_, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}))
			mustFail(t, err, c.want, c.words...)
			d.mustUnmap(t)
		})
	}
}

// TestGMACFeatures: without a feature register, and with one that says little, the
// configuration counts.
func TestGMACFeatures(t *testing.T) {
	for _, c := range []struct {
		reg  uint32
		cfg  func(*stmmac.Config)
		want stmmac.Features
	}{
		{0, func(*stmmac.Config) {}, stmmac.Features{MII: true, GMII: true, HalfDuplex: true, MDIO: true}},
		{0, func(c *stmmac.Config) { c.PerfectFilters, c.HashBins = 7, 64 },
			stmmac.Features{MII: true, GMII: true, HalfDuplex: true, MDIO: true, PerfectFilters: 7, HashBins: 64}},
		{1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<17, func(*stmmac.Config) {}, stmmac.Features{GMII: true, PerfectFilters: 1}},
		{1<<1 | 1<<3 | 1<<4, func(c *stmmac.Config) { c.HashBins = 256 }, stmmac.Features{GMII: true, HashBins: 256}},
		{0x100d4f37, func(*stmmac.Config) {}, stmmac.Features{MII: true, GMII: true, HalfDuplex: true, MDIO: true, MMC: true, EEE: true,
			WakeMagic: true, WakeFrame: true, RxChecksum: true, TxChecksum: true, HashBins: 64, PerfectFilters: 1}},
	} {
		f := fakeGMAC()
		f.Set(0x1058, c.reg)
		m, err := stmmac.Open(t.Context(), newFakeDevice(f), stmmac.WithGeneration(stmmac.GMAC), stmmac.WithLink(gigabit),
			stmmac.WithClock(&stepClock{}), noSelfTest, stmmac.WithConfig(c.cfg))
		if err != nil {
			t.Fatal(err)
		}
		c.want.Version, c.want.UserID, c.want.AddrWidth = 0x32, 0x10, 32
		c.want.RxQueues, c.want.TxQueues, c.want.RxChannels, c.want.TxChannels = 1, 1, 1, 1
		if d := cmp.Diff(c.want, m.Features()); d != "" {
			t.Errorf("%#x (-want +got):\n%s", c.reg, d)
		}
		n := 0
		for r := range m.Dump() {
			if r.Off >= 0x1060 || r.Name == "" {
				t.Errorf("dump: %v", r)
			}
			n++
		}
		if n < 22 {
			t.Errorf("%d registers in the dump", n)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGMACStops: the DMA that comes to rest is left alone, one that does not is reset.
func TestGMACStops(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		s := newScripted(t, 4)
		if hangs {
			s.fake.OnLoad(0x1014, func(v uint32) uint32 { return v&^(7<<20) | 3<<20 })
		}
		s.fake.ResetLog()
		if err := s.mac.Close(); err != nil {
			t.Fatal(err)
		}
		reset := slices.ContainsFunc(s.fake.Log(), func(a mmio.Access) bool { return a.Store && a.Off == 0x1000 && a.Val&1 != 0 })
		if reset != hangs {
			t.Errorf("hangs %v: reset %v", hangs, reset)
		}
		if v := s.fake.Peek(0x101c); v != 0 {
			t.Errorf("Interrupt_Enable %#x", v)
		}
	}
}
