package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// noWindows is a device's view of memory of which the model keeps nothing: it may be
// unmapped at any time.
type noWindows struct{ vfiotest.Bus }

func (noWindows) Window(uint64, int) []byte { return nil }

// chip is a YT6801 whose MAC is the model: an address space of the model at 0x2000 of
// BAR 0 and the block of the chip in front of it.
type chip struct {
	*vfiotest.Device
	model *sim.Model
	block *mmio.Fake
}

// addChip adds a YT6801 that is plugged into w.
func addChip(t *testing.T, k *vfiotest.Kernel, bdf string, group int, w sim.Wire, more ...func(*vfiotest.PCI)) *chip {
	t.Helper()
	const csr = 0x2000
	c := &chip{block: yt6801()}
	var m atomic.Pointer[sim.Model]
	p := vfiotest.PCI{
		BDF: bdf, Vendor: 0x1f0a, Device: 0x6801, Group: group, Driver: "vfio-pci", Native: "dwmac-motorcomm",
		BARs: []vfiotest.Region{{
			Size: 0x10000,
			Read: func(off uint64, p []byte) {
				if off >= csr {
					binary.LittleEndian.PutUint32(p, m.Load().Load(uint32(off-csr)))
					return
				}
				binary.LittleEndian.PutUint32(p, c.block.Load32(uint32(off)))
			},
			Write: func(off uint64, p []byte) {
				if v := binary.LittleEndian.Uint32(p); off >= csr {
					m.Load().Store(uint32(off-csr), v)
				} else {
					c.block.Store32(uint32(off), v)
				}
			},
		}, {}, {Size: 0x2000}},
		MSIX: vfiotest.MSIX{Count: 6, BAR: 2, PBA: 0x1000}, FLR: true,
		OnReset: func() {
			if m := m.Load(); m != nil {
				m.Reset()
			}
		},
	}
	for _, f := range more {
		f(&p)
	}
	d, err := k.AddPCI(p)
	if err != nil {
		t.Fatal(err)
	}
	c.Device = d
	// One receive and one transmit queue: the lines of the model are the common one,
	// receive, transmit; those of the chip are 5, 0 and 4.
	lines := [...]int{5, 0, 4}
	const msix = 2
	c.model, err = sim.NewModel(sim.Config{NumInterrupts: len(lines), CSRClock: 25_000_000}, noWindows{d.Bus()}, func(v int) { d.Fire(msix, lines[v]) }, w)
	if err != nil {
		t.Fatal(err)
	}
	m.Store(c.model)
	t.Cleanup(c.model.Close)
	return c
}

// addBoard adds a GMAC 3.x of STMicroelectronics that is plugged into w.
func addBoard(t *testing.T, k *vfiotest.Kernel, bdf string, group int, w sim.Wire) *chip {
	t.Helper()
	var m atomic.Pointer[sim.Model]
	d, err := k.AddPCI(vfiotest.PCI{
		BDF: bdf, Vendor: 0x104a, Device: 0xcc09, Group: group, Driver: "vfio-pci", Native: "stmmaceth", MSI: 1, FLR: true,
		BARs: []vfiotest.Region{{
			Size:  0x2000,
			Read:  func(off uint64, p []byte) { binary.LittleEndian.PutUint32(p, m.Load().Load(uint32(off))) },
			Write: func(off uint64, p []byte) { m.Load().Store(uint32(off), binary.LittleEndian.Uint32(p)) },
		}},
		OnReset: func() {
			if m := m.Load(); m != nil {
				m.Reset()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const msi = 1
	c := &chip{Device: d}
	c.model, err = sim.NewModel(sim.Config{Generation: sim.GMAC, CSRClock: 125_000_000, PHY: &sim.PHYConfig{}}, noWindows{d.Bus()}, func(v int) { d.Fire(msi, v) }, w)
	if err != nil {
		t.Fatal(err)
	}
	m.Store(c.model)
	t.Cleanup(c.model.Close)
	return c
}

// openMAC opens the MAC of a handle with a pool, if there is one already.
func openMAC(t *testing.T, h *Handle, p *pagepool.Pool) *stmmac.MAC {
	t.Helper()
	opts := h.Options
	if p != nil {
		opts = append(opts, stmmac.WithPool(p))
	}
	m, err := stmmac.Open(t.Context(), h.Device, append(opts, stmmac.WithRings(32, 32))...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// waitUp waits for the link of a MAC.
func waitUp(t *testing.T, m *stmmac.MAC) {
	t.Helper()
	for l := range m.Links(patience(t)) {
		if l.Up {
			return
		}
	}
	t.Fatal("the link did not come up")
}

// frameOf is a broadcast frame that differs from those of other numbers.
func frameOf(n int) []byte {
	f := append(bytes.Repeat([]byte{0xff}, 6), 2, 0, 0, 0, 0, 9, 0x88, 0xb5)
	f = binary.BigEndian.AppendUint32(f, uint32(n))
	return append(f, bytes.Repeat([]byte{byte(n)}, 50+n%1400)...)
}

// TestStack drives the model through all that stands between the driver and a chip:
// address, glue, VFIO and its kernel, a fake one. Two chips send each other frames by
// way of one pool; the last ones without a copy.
func TestStack(t *testing.T) {
	for _, kind := range []chipKind{
		{"gmac4", "", true, func(t *testing.T, k *vfiotest.Kernel, bdf string, group int, w sim.Wire) *chip {
			return addChip(t, k, bdf, group, w)
		}},
		{"gmac", ",csr=125000000", false, addBoard},
	} {
		t.Run(kind.name, func(t *testing.T) { testStack(t, kind) })
	}
}

type chipKind struct {
	name, keys string
	// wide says that it reaches all memory, also that above 4 GiB which this process
	// may have without an IOMMU.
	wide bool
	add  func(t *testing.T, k *vfiotest.Kernel, bdf string, group int, w sim.Wire) *chip
}

func testStack(t *testing.T, kind chipKind) {
	for _, c := range []struct {
		iommu string
		cfg   vfiotest.Config
		group int
	}{
		{"auto", vfiotest.Config{}, 7},
		{"group", vfiotest.Config{}, 7},
		{"iommufd", vfiotest.Config{}, 7},
		{"noiommu", vfiotest.Config{Type1: true, NoIOMMU: true, CapSysRawIO: true}, -1},
		{"noiommu", vfiotest.Config{IOMMUFD: true, NoIOMMU: true, CapSysRawIO: true}, -1},
	} {
		if c.iommu == "noiommu" && !kind.wide {
			continue
		}
		t.Run(fmt.Sprintf("%s/%v", c.iommu, c.cfg.IOMMUFD), func(t *testing.T) {
			o, k := machine(t, c.cfg)
			wa, wb := sim.NewPair(64)
			group := func(n int) int {
				if c.group < 0 {
					return c.group
				}
				return c.group + n
			}
			a, b := kind.add(t, k, "0000:03:00.0", group(0), wa), kind.add(t, k, "0000:04:00.0", group(1), wb)
			ha, hb := mustOpen(t, o, "pci:0000:03:00.0,iommu="+c.iommu+kind.keys), mustOpen(t, o, "pci:04:00.0,iommu="+c.iommu+kind.keys)
			pool, err := pagepool.New(ha.Device, 256)
			if err != nil {
				t.Fatal(err)
			}
			ma, mb := openMAC(t, ha, pool), openMAC(t, hb, pool)
			waitUp(t, ma)
			waitUp(t, mb)
			ctx := patience(t)
			const frames = 300
			window := make(chan struct{}, 16) // frames on their way: no ring overflows
			go send(t, ctx, ma.Tx(0), pool, frames, window)
			// b sends back what it gets, in the buffer that it came in.
			go func() {
				bufs := make([]*pagepool.Buf, 16)
				for back := 0; back < frames; {
					n := mb.Rx(0).Recv(bufs)
					for rest := bufs[:n]; len(rest) > 0; {
						k, err := mb.Tx(0).Send(rest)
						if err != nil {
							t.Error(err)
							return
						}
						rest = rest[k:]
						back += k
					}
					if n == 0 {
						if err := mb.Rx(0).Wait(ctx); err != nil {
							t.Errorf("after %d frames: %v", back, err)
							return
						}
					}
				}
			}()
			receive(t, ctx, ma.Rx(0), pool, frames, window)
			for _, m := range []*stmmac.MAC{ma, mb} {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			for _, c := range []*chip{a, b} {
				if v := c.model.Audit(); len(v) != 0 {
					t.Errorf("%s: %v", c.Name(), v)
				}
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range []*chip{a, b} {
				// The bus mastering of a chip is off while no memory is mapped for it.
				if c.Command()&4 != 0 {
					t.Errorf("%s: command %#x", c.Name(), c.Command())
				}
			}
			for _, h := range []*Handle{ha, hb} {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
			if n, m := k.OpenFDs(), k.Mappings(); n != 0 || len(m) != 0 {
				t.Errorf("%d descriptors and the mappings %v are left", n, m)
			}
		})
	}
}

func send(t *testing.T, ctx context.Context, q *stmmac.TxQueue, pool *pagepool.Pool, frames int, window chan<- struct{}) {
	for i := range frames {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return
		}
		b, err := pool.Alloc()
		if err != nil {
			t.Error(err)
			return
		}
		b.SetData(frameOf(i))
		for {
			n, err := q.Send([]*pagepool.Buf{b})
			if err == nil && n == 0 {
				err = q.Wait(ctx)
			}
			if err != nil {
				t.Errorf("after %d frames: %v", i, err)
				return
			}
			if n == 1 {
				break
			}
		}
	}
}

// receive wants the frames that send has sent, in their order.
func receive(t *testing.T, ctx context.Context, q *stmmac.RxQueue, pool *pagepool.Pool, frames int, window <-chan struct{}) {
	t.Helper()
	bufs := make([]*pagepool.Buf, 16)
	for got := 0; got < frames; {
		n := q.Recv(bufs)
		for _, b := range bufs[:n] {
			if want := frameOf(got); !bytes.Equal(b.Bytes(), want) {
				t.Fatalf("frame %d: % x...", got, b.Bytes()[:min(32, b.Len())])
			}
			got++
			<-window
		}
		pool.FreeBatch(bufs[:n])
		if n == 0 {
			if err := q.Wait(ctx); err != nil {
				t.Fatalf("after %d frames: %v", got, err)
			}
		}
	}
}

// dying is a kernel whose process can die: all of its descriptors are closed, and
// nothing else is done.
type dying struct {
	*vfiotest.Kernel
	mu  sync.Mutex
	fds []int
}

func (k *dying) note(fd int, err error) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.fds = append(k.fds, fd)
	}
	return fd, err
}

func (k *dying) Open(name string) (int, error) { return k.note(k.Kernel.Open(name)) }

func (k *dying) Ioctl(fd int, req uint32, arg []byte) (int, error) {
	const groupGetDeviceFD = 0x3b6a
	n, err := k.Kernel.Ioctl(fd, req, arg)
	if req == groupGetDeviceFD {
		return k.note(n, err)
	}
	return n, err
}

func (k *dying) die() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, fd := range k.fds {
		k.Kernel.Close(fd)
	}
}

// watch is a device of which a test sees whether its DMA runs when memory is mapped
// for it.
type watch struct {
	stmmac.Device
	running        func() bool
	mapped, during int
}

func (w *watch) MapDMA(mem []byte) (uint64, error) {
	w.mapped++
	if w.running() {
		w.during++
	}
	return w.Device.MapDMA(mem)
}

// TestDeadOwner opens a chip whose owner died while it was receiving: its DMA is at
// rest before any memory of the new one is mapped, whether VFIO can reset it or not.
func TestDeadOwner(t *testing.T) {
	for _, reset := range []bool{true, false} {
		for _, iommu := range []string{"group", "iommufd"} {
			t.Run(fmt.Sprintf("%s, reset %v", iommu, reset), func(t *testing.T) {
				o, k := machine(t, vfiotest.Config{})
				wa, _ := sim.NewPair(64)
				c := addChip(t, k, "0000:03:00.0", 7, wa, func(p *vfiotest.PCI) { p.FLR = reset })
				const rxControl, sr = 0x1108, 1 // DMA_CH0_Rx_Control.SR
				running := func() bool { return c.model.Load(rxControl)&sr != 0 }
				first := &dying{Kernel: k}
				dead := NewOpener()
				dead.Kernel = first
				h := mustOpen(t, dead, "pci:0000:03:00.0,iommu="+iommu)
				m := openMAC(t, h, nil)
				if !running() {
					t.Fatal("the receive DMA of an open MAC does not run")
				}
				first.die()
				if running() == reset {
					t.Fatalf("after its owner died, the DMA runs: %v", running())
				}
				d := watch{Device: mustOpen(t, o, "pci:0000:03:00.0,iommu="+iommu).Device, running: running}
				again := openMAC(t, &Handle{Device: &d, Options: []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4),
					stmmac.WithConfig(func(c *stmmac.Config) { c.CSROffset, c.CSRClock = 0x2000, 25e6 })}}, nil)
				if d.mapped == 0 || d.during != 0 {
					t.Errorf("memory was mapped %d times, %d of them while the DMA was running", d.mapped, d.during)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
				m.Close() // what is left of the dead one says that its device is gone
			})
		}
	}
}

// swapped is a device whose registers can be replaced by others.
type swapped struct {
	stmmac.Device
	region atomic.Pointer[mmio.Region]
}

func (s *swapped) Region(int) (mmio.Region, error) { return s, nil }
func (s *swapped) Load32(off uint32) uint32        { return (*s.region.Load()).Load32(off) }
func (s *swapped) Store32(off, v uint32)           { (*s.region.Load()).Store32(off, v) }
func (s *swapped) Len() uint32                     { return (*s.region.Load()).Len() }

// TestRevoked takes the registers away from under a running MAC: they lie in a mapping
// of a file that is truncated, so that each access of the driver raises SIGBUS. Every
// call ends, with the reason where it can say one.
func TestRevoked(t *testing.T) {
	type call struct {
		name string
		do   func(t *testing.T, m *stmmac.MAC) error
	}
	buf := func(t *testing.T, m *stmmac.MAC) *pagepool.Buf {
		b, err := m.Pool().Alloc()
		if err != nil {
			t.Fatal(err)
		}
		b.SetData(frameOf(1))
		return b
	}
	for _, c := range []call{
		{"wait to receive", func(t *testing.T, m *stmmac.MAC) error { return m.Rx(0).Wait(patience(t)) }},
		{"send", func(t *testing.T, m *stmmac.MAC) error {
			for {
				b := buf(t, m)
				n, err := m.Tx(0).Send([]*pagepool.Buf{b})
				if n == 0 {
					m.Pool().Free(b)
				}
				if err != nil {
					return err
				}
				time.Sleep(time.Millisecond) // until somebody has looked
			}
		}},
		{"wait to send", func(t *testing.T, m *stmmac.MAC) error {
			b := buf(t, m)
			if n, err := m.Tx(0).Send([]*pagepool.Buf{b}); n == 0 {
				m.Pool().Free(b)
				return err
			}
			return m.Tx(0).Wait(patience(t))
		}},
		{"receive, then wait", func(t *testing.T, m *stmmac.MAC) error {
			for b := range m.Rx(0).Frames(patience(t)) {
				if b != nil {
					m.Pool().Free(b)
				}
			}
			return m.Rx(0).Wait(patience(t))
		}},
		{"set MTU", func(t *testing.T, m *stmmac.MAC) error { return m.SetMTU(t.Context(), 1400) }},
		{"set link", func(t *testing.T, m *stmmac.MAC) error {
			return m.SetLink(stmmac.Link{Up: true, Speed: 100, FullDuplex: true})
		}},
		{"promiscuous", func(t *testing.T, m *stmmac.MAC) error { return m.SetPromiscuous(true) }},
		{"nothing", func(*testing.T, *stmmac.MAC) error { return stmmac.ErrGone }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := machine(t, vfiotest.Config{})
			nic := addNIC(t, k, "0000:03:00.0", 7, yt6801(), func(p *vfiotest.PCI) {
				p.BARs[0] = vfiotest.Region{Size: 0x10000, Mmap: true}
			})
			hw, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(o.Kernel))
			if err != nil {
				t.Fatal(err)
			}
			mapped, err := hw.Region(0)
			if err != nil {
				t.Fatal(err)
			}
			wire, _ := sim.NewPair(4)
			model, err := sim.New(sim.Config{NoPHY: true}, wire)
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			s := &swapped{Device: model}
			live, err := model.Region(0)
			if err != nil {
				t.Fatal(err)
			}
			s.region.Store(&live)
			m, err := stmmac.Open(t.Context(), s, stmmac.WithGeneration(stmmac.GMAC4),
				stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}))
			if err != nil {
				t.Fatal(err)
			}
			s.region.Store(&mapped)
			if err := nic.Unplug(); err != nil {
				t.Fatal(err)
			}
			if err := c.do(t, m); !errors.Is(err, stmmac.ErrGone) {
				t.Errorf("error %v", err)
			}
			// Frames that came before are still there; then there are none.
			bufs := make([]*pagepool.Buf, 8)
			m.Pool().FreeBatch(bufs[:m.Rx(0).Recv(bufs)])
			if err := m.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if c.name != "nothing" && !hw.Gone() {
				t.Error("the device does not know that it is gone")
			}
			if err := hw.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
