package vfiouser_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// mac shows a model of package sim in BAR 0: all that it takes.
type mac struct{ *sim.Model }

func (m mac) ReadBAR(_ int, off uint64, p []byte)  { vfiouser.ReadRegion(m, off, p) }
func (m mac) WriteBAR(_ int, off uint64, p []byte) { vfiouser.WriteRegion(m, off, p) }

func (m mac) Load32(off uint32) uint32 { return m.Load(off) }
func (m mac) Store32(off, v uint32)    { m.Store(off, v) }

// wire keeps the frames that leave.
type wire struct{ frames chan []byte }

func (w wire) Transmit(f sim.Frame) bool  { w.frames <- bytes.Clone(f.Data); return true }
func (w wire) Receive() (sim.Frame, bool) { return sim.Frame{}, false }
func (w wire) Elastic() bool              { return true }
func (w wire) Notify(func())              {}
func (w wire) Close() error               { return nil }

// TestModel: a client sends a frame through the model of a GMAC5: registers, descriptors
// and buffers by DMA, the write-back, an MSI-X vector, and an unmapping in between. It does
// so by windows, by copies of a file that can be cut, and by messages.
func TestModel(t *testing.T) {
	for name, how := range map[string]struct {
		sealed, file bool
	}{"windows": {true, true}, "copies": {false, true}, "messages": {true, false}} {
		t.Run(name, func(t *testing.T) {
			f, err := vfiouser.New(vfiouser.Config{
				Vendor: 0x1f0a, Device: 0x6801, Class: 0x020000,
				BARs: [6]vfiouser.BAR{{Size: 0x1_0000}, {Size: 0x1000}}, MSIX: vfiouser.MSIX{Vectors: 1, BAR: 1, PBA: 0x800}, PCIe: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			w := wire{make(chan []byte, 1)}
			model, err := sim.NewModel(sim.Config{NoPHY: true}, f, f.Signal, w)
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			fd, mem := memfd(t, memory, how.sealed)
			c := start(t, f, mac{model})
			c.master()
			c.write16(configRegion, c.capability(0x11)+2, 1<<15)
			irq := c.eventfd()
			if errno := c.irqs(msix, dataEventfd|actionTrigger, 0, 1, nil, irq); errno != 0 {
				t.Fatal(errno)
			}
			if got := c.read32(0, 0x110) & 0xff; got != 0x52 {
				t.Errorf("version %#x", got)
			}
			for round := range 3 {
				at := iova + uint64(round)*memory // an address of its own each time
				file := fd
				if !how.file {
					file = -1
				}
				if errno := c.dmaMap(file, 0, at, memory, rw); errno != 0 {
					t.Fatal(errno)
				}
				frame := bytes.Repeat([]byte{byte(round + 1)}, 1514)
				copy(mem[page+2:], frame)
				// A ring of four descriptors; the first holds the frame.
				le := binary.LittleEndian
				clear(mem[:64])
				le.PutUint32(mem[0:], uint32(at)+page+2)
				le.PutUint32(mem[8:], 1<<31|1514)
				le.PutUint32(mem[12:], 1<<31|3<<28|1514)
				c.want(deviceReset, nil)
				c.master()
				c.write16(configRegion, c.capability(0x11)+2, 1<<15)
				c.write32(0, 0x1000, 1)
				for c.read32(0, 0x1000)&1 != 0 {
				}
				for _, r := range [][2]uint32{
					{0x0d00, 2 | 2<<2}, {0x1114, uint32(at)}, {0x112c, 3}, {0x1134, 1<<15 | 1}, {0x1104, 1}, {0, 1<<1 | 1<<13}, {0x1120, uint32(at) + 16},
				} {
					c.send(regionWrite, noReply, body(uint64(r[0]), 0, 4, r[1]))
				}
				got := c.frame(w, mem, at)
				if !bytes.Equal(got, frame) {
					t.Errorf("round %d: another frame of %d bytes leaves", round, len(got))
				}
				c.fire(irq, mem, at)
				if le.Uint32(mem[12:])>>31 != 0 {
					t.Errorf("round %d: the descriptor is not given back: %#x", round, le.Uint32(mem[12:]))
				}
				if errno := c.dmaUnmap(at, memory); errno != 0 {
					t.Error(errno)
				}
			}
		})
	}
}

// frame answers messages until a frame left.
func (c *client) frame(w wire, mem []byte, at uint64) []byte {
	var got []byte
	c.answer(mem, at, func() bool {
		select {
		case got = <-w.frames:
			return true
		default:
			return false
		}
	})
	return got
}

// fire answers messages until an interrupt came.
func (c *client) fire(irq int, mem []byte, at uint64) {
	c.answer(mem, at, func() bool { return c.fired(irq) > 0 })
}

// answer serves DMA messages from mem, which is mapped at at, until done.
func (c *client) answer(mem []byte, at uint64, done func() bool) {
	c.Helper()
	raw, err := c.conn.SyscallConn()
	if err != nil {
		c.Fatal(err)
	}
	for !done() {
		there := false
		if err := raw.Control(func(fd uintptr) {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(p, 1)
			there = err == nil && n > 0
		}); err != nil {
			c.Fatal(err)
		}
		if !there {
			continue
		}
		m := c.recv()
		addr, n := ne.Uint64(m.body), ne.Uint64(m.body[8:])
		off := addr - at
		if off > uint64(len(mem)) || n > uint64(len(mem))-off {
			c.Fatalf("%d bytes at %#x are asked for", n, addr)
		}
		if m.cmd == dmaRead {
			c.sendRaw(body(m.id, m.cmd, 32+int(n), isReply, 0, addr, n, mem[off:off+n]))
		} else {
			copy(mem[off:], m.body[16:])
			c.sendRaw(body(m.id, m.cmd, 32, isReply, 0, addr, n))
		}
	}
}
