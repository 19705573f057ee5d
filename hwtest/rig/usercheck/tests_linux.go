package usercheck

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// Tests returns all tests.
func Tests() []Test {
	var all []Test
	for _, t := range []struct {
		name string
		board
		run func(s *script)
	}{
		{"configuration space", board{shared: true}, configuration},
		{"registers", board{shared: true}, registers},
		{"bus mastering", board{shared: true}, master},
		{"DMA by shared memory", board{shared: true}, dma},
		{"DMA by messages", board{}, dma},
		{"DMA through an IOMMU that is off", board{shared: true, iommu: true}, dma},
		{"DMA through an IOMMU", board{shared: true, iommu: true}, translated},
		{"MSI-X", board{shared: true}, msix},
		{"MSI", board{shared: true}, msi},
		{"INTx", board{shared: true}, intx},
	} {
		all = append(all, Test{t.name, func(ctx context.Context, c Config) error {
			return with(func(sv *server) error { return sv.on(ctx, c, t.board, t.run) })
		}})
	}
	return append(all, Test{"QEMU ends, and another connects", func(ctx context.Context, c Config) error {
		return with(func(sv *server) error {
			for range 3 {
				if err := sv.on(ctx, c, board{shared: true}, func(s *script) { registers(s); dma(s) }); err != nil {
					return err
				}
			}
			return nil
		})
	}})
}

// with runs f with a server.
func with(f func(s *server) error) error {
	s, err := serve()
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.stop())
}

// on runs f on a machine.
func (s *server) on(ctx context.Context, c Config, b board, f func(s *script)) error {
	m, err := s.start(c, b)
	if err != nil {
		return err
	}
	k := &script{m: m, ctx: ctx}
	f(k)
	if k.err != nil {
		k.err = fmt.Errorf("%w (%s)", k.err, m.qemu.Wrote())
	}
	return errors.Join(k.err, m.end())
}

// configuration: what the function is, its capabilities, and the sizes of its BARs.
func configuration(s *script) {
	s.equal("vendor and device", s.config(0, 4), product<<16|vendor)
	s.equal("class and revision", s.config(8, 4), class<<8|2)
	s.equal("interrupt pin", s.config(0x3d, 1), 1)
	for _, id := range []uint64{1, 5, 0x10, 0x11} {
		s.capability(id)
	}
	s.equal("MSI-X vectors", s.config(s.capability(0x11)+2, 2)&0x7ff, msixVectors-1)
	s.equal("MSI-X table", s.config(s.capability(0x11)+4, 4), tableOffset|2)
	s.equal("MSI vectors", s.config(s.capability(5)+2, 2)>>1&7, 2)
	for off, want := range map[int]uint64{0x10: 1<<32 - barSize, 0x14: 0, 0x18: 1<<32 - bar2Size | 0xc, 0x1c: 1<<32 - 1, 0x20: 0} {
		s.setConfig(off, 4, 0xffff_ffff)
		s.equal(fmt.Sprintf("BAR at %#x", off), s.config(off, 4), want)
	}
	if s.m.dev.wasReset() == 0 {
		s.check("reset", errors.New("QEMU did not reset the device at its start"))
	}
}

// registers: accesses of all widths, and posted writes in their order.
func registers(s *script) {
	s.enable()
	s.m.dev.written()
	for _, n := range []int{1, 2, 4, 8} {
		v := uint64(0xf1e2_d3c4_b5a6_9788) >> (64 - 8*n)
		at := uint64(0x100 + 16*n)
		s.store(bar0+at, n, v)
		s.equal(fmt.Sprintf("a register of %d bytes", n), s.load(bar0+at, n), v)
	}
	if _, widths := s.m.dev.written(); s.err == nil && (widths[1] != 1 || widths[2] != 1 || widths[4] < 1) {
		s.check("widths of writes", fmt.Errorf("%v", widths))
	}
	var want []uint64
	for i := range uint64(500) {
		s.store(bar0+4*i, 4, i+1)
		want = append(want, 4*i)
	}
	s.equal("the last register", s.load(bar0+4*499, 4), 500)
	if order, _ := s.m.dev.written(); s.err == nil && !slices.Equal(order, want) {
		s.check("posted writes", fmt.Errorf("%d arrive instead of %d, or in another order", len(order), len(want)))
	}
	s.equal("the first register", uint64(s.m.dev.word(0)), 1)
}

// master: no DMA before bus mastering is on, nor after it is off.
func master(s *script) {
	for range 2 {
		if err := s.m.f.Read(0, make([]byte, 4)); s.err == nil && !errors.Is(err, vfiouser.ErrMaster) {
			s.check("a read without bus mastering", fmt.Errorf("the error is %v", err))
		}
		s.enable()
		s.check("a read with bus mastering", s.m.f.Read(0, make([]byte, 4)))
		s.setConfig(4, 2, 2)
	}
}

// dma: the device reads and writes RAM, and addresses where there is none.
func dma(s *script) {
	const ram = 0x10_0000
	f := s.m.f
	s.enable()
	s.load(bar0, 4) // the writes before it were served
	for i := range uint64(200) {
		s.store(ram+8*i, 8, i*0x0101_0101_0101_0101)
	}
	got := make([]byte, 1600)
	s.check("a read of RAM", f.Read(ram, got))
	for i := range uint64(200) {
		s.equal("a word of RAM", binary.LittleEndian.Uint64(got[8*i:]), i*0x0101_0101_0101_0101)
	}
	frame := bytes.Repeat([]byte{0x5a, 0xa5, 0x3c}, 505)[:1514]
	s.check("a write of RAM", f.Write(ram+0x1002, frame))
	back := make([]byte, 1520)
	for i := range uint64(190) {
		binary.LittleEndian.PutUint64(back[8*i:], s.load(ram+0x1000+8*i, 8))
	}
	if s.err == nil && !bytes.Equal(back[2:2+1514], frame) {
		s.check("a write of RAM", errors.New("the machine reads something else"))
	}
	if w := f.Window(ram, 64); s.m.shared {
		if len(w) != 64 {
			s.check("a window", errors.New("there is none of shared memory"))
		} else {
			w[5] = 77
			s.equal("what a window wrote", s.load(ram+5, 1), 77)
		}
	} else if w != nil {
		s.check("a window", errors.New("there is one of memory that is not shared"))
	}
	if err := f.Read(1<<45, got); s.err == nil && err == nil {
		s.check("a read where there is no RAM", errors.New("no error"))
	}
}

// target is where messages of interrupts are written: RAM, so that they are seen.
const target = 0x20_0000

// arrives waits until the message of vector v is in RAM, and takes it out.
func (s *script) arrives(v int, data uint64) {
	at := target + 16*uint64(v)
	s.until(fmt.Sprintf("interrupt %d", v), func() bool { return s.load(at, 4) == data })
	s.store(at, 4, 0)
}

// msix: each vector, and one that is masked.
func msix(s *script) {
	s.enable()
	at := s.capability(0x11)
	for v := range uint64(msixVectors) {
		entry := bar2 + tableOffset + 16*v
		s.store(entry, 4, target+16*v)
		s.store(entry+4, 4, 0)
		s.store(entry+8, 4, 0x100+v)
		s.store(entry+12, 4, 0)
	}
	s.setConfig(at+2, 2, 1<<15)
	for round := range 3 {
		for v := range msixVectors {
			if round == 0 {
				s.m.f.SignalMSIX(v)
			} else {
				s.m.f.Signal(v)
			}
			s.arrives(v, 0x100+uint64(v))
		}
	}
	// While vector 1 is masked the next one arrives, and it does when it is unmasked.
	s.store(bar2+tableOffset+16+12, 4, 1)
	s.m.f.SignalMSIX(1)
	s.m.f.SignalMSIX(2)
	s.arrives(2, 0x102)
	s.equal("the message of a masked vector", s.load(target+16, 4), 0)
	s.store(bar2+tableOffset+16+12, 4, 0)
	s.arrives(1, 0x101)
	// So with the mask of the function, which the server holds too.
	s.setConfig(at+2, 2, 3<<14)
	s.m.f.SignalMSIX(3)
	s.equal("the PBA", s.load(bar2+pbaOffset, 4), 1<<3)
	s.equal("the message of a masked function", s.load(target+48, 4), 0)
	s.setConfig(at+2, 2, 1<<15)
	s.arrives(3, 0x103)
	s.equal("the PBA", s.load(bar2+pbaOffset, 4), 0)
}

// msi: four vectors, whose data differ in the lowest bits.
func msi(s *script) {
	s.enable()
	at := s.capability(5)
	s.setConfig(at+4, 4, target)
	s.setConfig(at+8, 4, 0)
	s.setConfig(at+12, 2, 0x40)
	s.setConfig(at+2, 2, 1|2<<4)
	for v := range msiVectors {
		s.m.f.SignalMSI(v)
		s.arrives(0, 0x40+uint64(v))
		s.m.f.Signal(v)
		s.arrives(0, 0x40+uint64(v))
	}
}

// intx: the line goes up and down with that of the device. QEMU takes an access to a BAR
// for the end of the interrupt: it lowers the line and unmasks it.
func intx(s *script) {
	s.enable()
	s.line()
	var seen []bool
	rises := func(n int) bool {
		seen = append(seen, s.line()...)
		up := 0
		for _, high := range seen {
			if high {
				up++
			}
		}
		return up >= n
	}
	s.m.f.SetINTx(true)
	s.until("the interrupt", func() bool { return rises(1) })
	s.equal("the status register", s.config(6, 2)>>3&1, 1)
	s.until("the interrupt of a line that is still high", func() bool { return rises(3) })
	s.m.f.SetINTx(false)
	s.until("the end of the interrupt", func() bool {
		l := s.line()
		seen = append(seen, l...)
		return len(l) == 0 && len(seen) > 0 && !seen[len(seen)-1]
	})
	s.equal("the status register", s.config(6, 2)>>3&1, 0)
	// Disabled, it does not come.
	s.setConfig(4, 2, 6|1<<10)
	s.m.f.SetINTx(true)
	for range 20 {
		if l := s.line(); slices.Contains(l, true) {
			s.check("the interrupt", errors.New("it comes while it is disabled"))
		}
	}
	s.setConfig(4, 2, 6)
	seen = nil
	s.until("the interrupt that was disabled", func() bool { return rises(1) })
}
