package chips

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func newCard(t *testing.T, name string, o Options) *Card {
	t.Helper()
	c, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := sim.NewPair(4)
	k, err := c.New(w, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func (k *Card) load(off uint64) uint32 {
	var b [4]byte
	k.ReadBAR(0, off, b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (k *Card) store(off uint64, v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	k.WriteBAR(0, off, b[:])
}

// TestMACs: the MAC of each chip is where its driver looks for it.
func TestMACs(t *testing.T) {
	for _, c := range []struct {
		chip    string
		version uint64 // offset of the version register
		want    uint32
		vectors []int
	}{
		{"yt6801", 0x2110, 0x52, []int{5, 0, 4}},
		{"ehl", 0x110, 0x52, []int{29, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15}},
		{"gmac", 0x20, 0x37, []int{0}},
		{"gmac4", 0x110, 0x52, []int{0, 1, 2}},
	} {
		k := newCard(t, c.chip, Options{})
		if v := k.load(c.version); v&0xff != c.want {
			t.Errorf("%s: version %#x", c.chip, v)
		}
		if len(k.vectors) != len(c.vectors) {
			t.Fatalf("%s: vectors %v", c.chip, k.vectors)
		}
		for i, v := range c.vectors {
			if k.vectors[i] != v {
				t.Errorf("%s: line %d has vector %d, want %d", c.chip, i, k.vectors[i], v)
			}
		}
		if v := k.load(0xfffc); v != 0 {
			t.Errorf("%s: %#x where nothing is", c.chip, v)
		}
		k.store(0xfffc, 1)
		var b [4]byte
		k.ReadBAR(1, 0, b[:])
		if b != [4]byte{} {
			t.Errorf("%s: BAR 1 reads % x", c.chip, b)
		}
		k.Reset()
		if k = newCard(t, c.chip, Options{Single: true}); len(k.vectors) != 1 || k.vectors[0] != 0 {
			t.Errorf("%s with one vector: %v", c.chip, k.vectors)
		}
	}
}

// TestQueues: four queues of the bare MAC have vectors of their own, behind each other.
func TestQueues(t *testing.T) {
	k := newCard(t, "gmac4", Options{Queues: 4})
	for i, v := range k.vectors {
		if v != i {
			t.Errorf("line %d has vector %d", i, v)
		}
	}
	if len(k.vectors) != 9 {
		t.Errorf("%d vectors", len(k.vectors))
	}
	c, err := Find("yt6801")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := sim.NewPair(4)
	if _, err := c.New(w, Options{Queues: 4}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("a YT6801 with vectors that it does not have: %v", err)
	}
	if _, err := c.New(w, Options{Model: func(c *sim.Config) { c.HashBins = 7 }}); err == nil {
		t.Error("a model that there is not")
	}
	if _, err := Find("e1000"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a chip that there is not: %v", err)
	}
}

// told keeps what a card tells its host.
type told struct{ fired, pending []bool }

func (s *told) Signal(v int)   { s.fired[v], s.pending[v] = true, true }
func (s *told) Withdraw(v int) { s.pending[v] = false }
func (s *told) SetINTx(bool)   {}

// TestWithdraw: an interrupt of which the driver has cleared the reason, or that a reset of
// the MAC took away, is not pending any more, and one that has another reason still is.
func TestWithdraw(t *testing.T) {
	const (
		mode, channel    = 0x1000, 0x1100
		swr              = 1 << 0
		enable, status   = 0x34, 0x60
		rps, ais, stride = 1 << 8, 1 << 14, 0x80
		mac, vectors     = 29, 32
	)
	for _, c := range []struct {
		name  string
		clear func(k *Card)
	}{
		{"cleared", func(k *Card) {
			k.store(channel+status, rps|ais)
			k.store(channel+stride+status, rps|ais)
		}},
		{"reset", func(k *Card) {
			k.store(mode, swr)
			for k.load(mode)&swr != 0 {
				runtime.Gosched()
			}
		}},
		{"disabled", func(k *Card) { k.store(channel+enable, 0); k.store(channel+stride+enable, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newCard(t, "ehl", Options{})
			s := &told{make([]bool, vectors), make([]bool, vectors)}
			k.out = s
			for ch := range 2 {
				k.store(uint64(channel+ch*stride+enable), rps|ais)
				k.model.RaiseStatus(ch, rps)
			}
			k.load(channel + status)
			if !s.fired[mac] || !s.pending[mac] {
				t.Fatal("the common vector is not pending")
			}
			k.store(channel+status, rps|ais)
			if !s.pending[mac] {
				t.Error("it is not pending while another channel has a reason")
			}
			c.clear(k)
			if s.pending[mac] {
				t.Error("it is pending without a reason")
			}
		})
	}
}

// TestEFuse reads the records as the driver does.
func TestEFuse(t *testing.T) {
	addr := [6]byte{0x02, 1, 2, 3, 4, 5}
	for _, c := range []struct {
		addr [6]byte
		want map[uint16]uint32
	}{
		{addr, map[uint16]uint32{ytAddrLow: 0x02030405, ytAddrHigh: 0x0201}},
		{[6]byte{}, map[uint16]uint32{}},
	} {
		k := newCard(t, "yt6801", Options{Addr: c.addr})
		if v := k.load(ytEFuseOp1); v != 0 {
			t.Errorf("done before it began: %#x", v)
		}
		got := map[uint16]uint32{}
		for n := range 39 {
			var r [6]byte
			for i := range r {
				k.store(ytEFuseOp0, 1|ytEFuseStart|uint32(ytEFuseRecords+6*n+i)<<ytEFuseAddrShift)
				v := k.load(ytEFuseOp1)
				if v&ytEFuseDone == 0 {
					t.Fatalf("byte %d is not read", i)
				}
				r[i] = byte(v >> ytEFuseDataShift)
			}
			reg := binary.LittleEndian.Uint16(r[:])
			if reg == 0 {
				break
			}
			got[reg] = binary.LittleEndian.Uint32(r[2:])
		}
		if len(got) != len(c.want) {
			t.Errorf("%x: records %x, want %x", c.addr, got, c.want)
		}
		for reg, v := range c.want {
			if got[reg] != v {
				t.Errorf("%x: record %#x is %#x, want %#x", c.addr, reg, got[reg], v)
			}
		}
	}
}

// TestYT6801Block: the reset of the block resets the MAC, the PHY runs only when it is let,
// and interrupts pass only then.
func TestYT6801Block(t *testing.T) {
	k := newCard(t, "yt6801", Options{})
	const mac, config = ytBlock, ytBlock + 0x0000
	const swr = mac + 0x1000
	k.store(config, 1) // RE
	if k.load(config) == 0 {
		t.Fatal("MAC_Configuration keeps nothing")
	}
	k.store(ytSysReset, k.load(ytSysReset)&^ytReleased)
	if v := k.load(config); v&1 != 0 {
		t.Errorf("MAC_Configuration is %#x behind the reset of the chip", v)
	}
	if v := k.load(ytSysReset); v&ytReleased != 0 {
		t.Errorf("SYS_RESET reads %#x while the chip is in reset", v)
	}
	k.store(ytSysReset, ytReleased)
	// Without the PHY's clock a software reset does not end.
	k.store(swr, 1)
	if k.load(swr)&1 == 0 {
		t.Error("a software reset ended while the PHY was in reset")
	}
	k.store(ytEPHYCtrl, ytEPHYRunning)
	for i := 0; k.load(swr)&1 != 0; i++ {
		if i > 1e6 {
			t.Fatal("a software reset does not end")
		}
	}
	if !k.block.quiet() {
		t.Error("interrupts pass before OOB_WOL_CTRL lets them")
	}
	k.store(ytOOBWOLCtrl, ytWOLDisabled)
	if k.block.quiet() {
		t.Error("interrupts do not pass")
	}
	k.Reset()
	if !k.block.quiet() || k.load(ytEPHYCtrl) != 0 || k.load(ytSysReset) != ytReleased {
		t.Error("the block is not reset with the function")
	}
}

// TestInterruptKinds: a card has the one kind of interrupts that it was left, and one vector
// where the lines of the MAC have no numbers among those of the kind.
func TestInterruptKinds(t *testing.T) {
	for _, c := range []struct {
		chip            string
		only            Interrupts
		line, msi, msix bool
		vectors         int
	}{
		{"yt6801", AllInterrupts, true, true, true, 3},
		{"yt6801", MSIX, false, false, true, 3},
		{"yt6801", MSI, false, true, false, 1},
		{"yt6801", INTx, true, false, false, 1},
		{"ehl", MSI, false, true, false, 17},
		{"ehl", INTx, true, false, false, 1},
		{"gmac", MSIX, false, false, true, 1},
	} {
		k := newCard(t, c.chip, Options{Only: c.only})
		pci := k.chip.pci
		if err := c.only.leave(&pci); err != nil {
			t.Fatal(err)
		}
		if pci.INTx != c.line || pci.MSI.Vectors > 0 != c.msi || pci.MSIX.Vectors > 0 != c.msix || len(k.vectors) != c.vectors {
			t.Errorf("%s with %v: pin %v, MSI %+v, MSI-X %+v, vectors %v", c.chip, c.only, pci.INTx, pci.MSI, pci.MSIX, k.vectors)
		}
	}
	c, err := Find("ehl")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := sim.NewPair(4)
	if _, err := c.New(w, Options{Only: MSIX}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("Elkhart Lake with MSI-X: %v", err)
	}
}

// TestStrict: a tail at the end of the ring is legal for Linux's driver, and wrong for ours.
func TestStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		k := newCard(t, "gmac4", Options{Strict: strict})
		const base, descriptors = 0x1000, 8
		k.store(0x1130, descriptors-1) // DMA_CH0_RxDesc_Ring_Length
		k.store(0x111c, base)          // DMA_CH0_RxDesc_List_Address
		k.store(0x1128, base+16*descriptors)
		k.store(0x1108, 1) // DMA_CH0_Rx_Control, SR
		outside := func(v sim.Violation) bool { return v.Kind == sim.TailOutside }
		if found := slices.ContainsFunc(k.Model().Audit(), outside); found != strict {
			t.Errorf("strict %v: violations %v", strict, k.Model().Audit())
		}
	}
}
