package main

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

var _ stmmac.Device = (*uioDevice)(nil)

// TestOpenFails tells what is wrong with each device, and leaves nothing open.
func TestOpenFails(t *testing.T) {
	const (
		uio = "uio/uio3/maps/map0/"
		buf = "u-dma-buf/udmabuf7/"
	)
	for _, c := range []struct {
		name string
		set  map[string]string
		file func(b *board) // changes the files of the board
		is   error
		says []string
	}{
		{"no devices", nil, func(b *board) { os.RemoveAll(filepath.Dir(b.uio)) }, fs.ErrNotExist,
			[]string{"registers, ", "uio3", "modprobe uio_pdrv_genirq", "memory, ", "udmabuf7", "insmod u-dma-buf.ko"}},
		{"no UIO device", nil, func(b *board) { os.Remove(b.uio) }, fs.ErrNotExist,
			[]string{"registers, ", "uio3", "no such file", "modprobe uio_pdrv_genirq"}},
		{"no u-dma-buf device", nil, func(b *board) { os.Remove(b.dmabuf) }, fs.ErrNotExist,
			[]string{"memory, ", "udmabuf7", "no such file", "insmod u-dma-buf.ko"}},
		{"a device that is not UIO", map[string]string{uio + "size": "-"}, nil, fs.ErrNotExist,
			[]string{"registers, ", "uio3", "map0/size", "modprobe"}},
		{"a device that is not u-dma-buf", map[string]string{buf + "phys_addr": "-"}, nil, fs.ErrNotExist,
			[]string{"memory, ", "udmabuf7", "phys_addr", "insmod"}},
		{"size that is no number", map[string]string{uio + "size": "8 KiB\n"}, nil, os.ErrInvalid, []string{"uio3", `"8 KiB"`}},
		{"no registers", map[string]string{uio + "size": "0x0\n"}, nil, os.ErrInvalid, []string{"uio3"}},
		{"registers behind the map", map[string]string{uio + "offset": "0x2000\n"}, nil, os.ErrInvalid, []string{"uio3", "8192"}},
		{"offset that is no number", map[string]string{uio + "offset": "\n"}, nil, os.ErrInvalid, []string{"offset"}},
		{"fewer registers than it says", nil, func(b *board) { os.Truncate(b.uio, boardRegs-1) }, os.ErrInvalid, []string{"uio3", "8191"}},
		{"more registers than memory", map[string]string{uio + "size": "0xffffffffffffffff"}, nil, os.ErrInvalid, []string{"uio3"}},
		{"less memory than it says", nil, func(b *board) { os.Truncate(b.dmabuf, 100) }, os.ErrInvalid, []string{"udmabuf7", "100"}},
		{"no memory", map[string]string{buf + "size": "0\n"}, nil, os.ErrInvalid, []string{"udmabuf7"}},
		{"memory that wraps", map[string]string{buf + "phys_addr": "0xfffffffffffff000"}, nil, os.ErrInvalid, []string{"0xfffffffffffff000"}},
		{"memory inside a page", map[string]string{buf + "phys_addr": "0x40000040"}, nil, os.ErrInvalid, []string{"0x40000040"}},
		{"memory mapped as registers", map[string]string{buf + "sync_mode": "1\n"}, nil, errors.ErrUnsupported, []string{"echo 2 > ", "udmabuf7/sync_mode"}},
		{"always mapped as registers", map[string]string{buf + "sync_mode": "5\n"}, nil, errors.ErrUnsupported, []string{"echo 2 > "}},
		{"cached memory", map[string]string{buf + "sync_mode": "0\n", buf + "dma_coherent": "0\n"}, nil, errors.ErrUnsupported, []string{"caches", "echo 2 > "}},
		{"cached memory, not known", map[string]string{buf + "sync_mode": "0\n"}, nil, errors.ErrUnsupported, []string{"caches", "echo 2 > "}},
		{"a directory", nil, func(b *board) { os.Remove(b.uio); os.Mkdir(b.uio, 0o777) }, syscall.EISDIR, []string{"registers", "uio3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t, c.set)
			if c.file != nil {
				c.file(b)
			}
			b.leavesNothing(t, func() {
				dev, err := openUIO(b.paths)
				if !errors.Is(err, c.is) || dev != nil {
					t.Fatalf("device %v and error %v, want %v", dev, err, c.is)
				}
				for _, s := range c.says {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("%q is not in: %v", s, err)
					}
				}
			})
		})
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "/dev/udmabuf0", Err: syscall.ENODEV}, "memory, /dev/udmabuf0: no such device"},
		{&fs.PathError{Op: "open", Path: "/sys/size", Err: syscall.ENODEV}, "memory, /dev/udmabuf0: open /sys/size: no such device"},
		{syscall.EACCES, "memory, /dev/udmabuf0: permission denied: run as root, or let a udev rule give the device to your group: " +
			`KERNEL=="udmabuf0", GROUP="…", MODE="0660"`},
		{syscall.EBUSY, "memory, /dev/udmabuf0: device or resource busy: end the program that has it"},
		{syscall.ENOENT, "memory, /dev/udmabuf0: no such file or directory: load it"},
		{syscall.EIO, "memory, /dev/udmabuf0: input/output error"},
	} {
		err := explain("memory", "/dev/udmabuf0", c.err, "load it")
		if err.Error() != c.want || !errors.Is(c.err, errors.Unwrap(err)) {
			t.Errorf("%v\nwant %v", err, c.want)
		}
	}
}

// TestRunWithoutDevices is what somebody sees who runs the program on a machine
// that has neither.
func TestRunWithoutDevices(t *testing.T) {
	dir := t.TempDir()
	err := run(t.Context(), config{paths: paths{uio: dir + "/uio0", dmabuf: dir + "/udmabuf0", sysfs: dir}}, io.Discard)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "uio0") || !strings.Contains(err.Error(), "udmabuf0") {
		t.Error(err)
	}
}

func TestDevice(t *testing.T) {
	b := newBoard(t, map[string]string{"uio/uio3/maps/map0/offset": "0x1000\n"})
	// A name that udev gave leads to the device.
	link := filepath.Join(b.dir, "mac")
	if err := os.Symlink(b.uio, link); err != nil {
		t.Fatal(err)
	}
	b.uio = link
	regs, mem := b.view(t, link, boardRegs), b.view(t, b.dmabuf, boardMem)
	b.leavesNothing(t, func() {
		d, err := openUIO(b.paths)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		r.Store32(0x10, 0xcafe0123)
		if got := binary.NativeEndian.Uint32(regs[0x1010:]); got != 0xcafe0123 || r.Len() != boardRegs-0x1000 {
			t.Errorf("the register holds %#x, and there are %#x bytes", got, r.Len())
		}
		if _, err := d.Region(1); !errors.Is(err, os.ErrNotExist) {
			t.Error("region 1:", err)
		}
		// A file does not interrupt, so the queues poll.
		if n := d.NumInterrupts(); n != 0 {
			t.Errorf("%d interrupts", n)
		}
		if _, err := d.Interrupt(0); !errors.Is(err, os.ErrNotExist) {
			t.Error("interrupt 0:", err)
		}
		if !d.Coherent() {
			t.Error("not coherent")
		}
		if err := d.Reset(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Error("reset:", err)
		}
		if _, err := d.MapDMA(make([]byte, 4096)); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "no IOMMU") {
			t.Error("map:", err)
		}

		for _, bad := range [][2]int{{0, 1}, {-1, 1}, {1, 0}, {1, 3}, {1, -4}} {
			if _, _, err := d.AllocDMA(bad[0], bad[1]); !errors.Is(err, os.ErrInvalid) {
				t.Errorf("allocate %v: %v", bad, err)
			}
		}
		if _, _, err := d.AllocDMA(boardMem+1, 1); !errors.Is(err, syscall.ENOMEM) || errors.Is(err, errors.ErrUnsupported) {
			t.Error("allocate too much:", err)
		}
		if _, _, err := d.AllocDMA(100, 1); err != nil {
			t.Error(err)
		}
		p, addr, err := d.AllocDMA(5000, 4096)
		if err != nil || len(p) != 5000 || cap(p) != 5000 || addr != boardBus+4096 {
			t.Fatalf("%d bytes of %d at %#x: %v", len(p), cap(p), addr, err)
		}
		p[0], p[4999] = 0xaa, 0xbb
		if mem[4096] != 0xaa || mem[4096+4999] != 0xbb {
			t.Error("the memory is not that of the bus address")
		}

		if err := d.Close(); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "5100 bytes") {
			t.Error("close while memory is in use:", err)
		}
		p[1] = 1 // still there
		if err := d.UnmapDMA(addr, 4096); !errors.Is(err, os.ErrInvalid) {
			t.Error("unmap a part:", err)
		}
		if err := d.UnmapDMA(addr, -1); !errors.Is(err, os.ErrInvalid) {
			t.Error("unmap less than nothing:", err)
		}
		if err := errors.Join(d.UnmapDMA(addr, 5000), d.UnmapDMA(boardBus, 100)); err != nil {
			t.Error(err)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error("close:", err)
		}
		_, e1 := d.Region(0)
		_, e2 := d.Interrupt(0)
		_, _, e3 := d.AllocDMA(1, 1)
		for _, err := range []error{e1, e2, e3} {
			if !errors.Is(err, net.ErrClosed) {
				t.Error("after Close:", err)
			}
		}
		if err := d.UnmapDMA(boardBus, 100); !errors.Is(err, os.ErrInvalid) {
			t.Error("unmap after Close:", err)
		}
	})
}

func TestMemoryThatIsCoherent(t *testing.T) {
	for _, c := range []struct{ mode, coherent string }{{"0\n", "1\n"}, {"2\n", "0\n"}, {"2\n", "-"}, {"3\n", "0\n"}, {"6\n", "0\n"}} {
		b := newBoard(t, map[string]string{
			"u-dma-buf/udmabuf7/sync_mode": c.mode, "u-dma-buf/udmabuf7/dma_coherent": c.coherent,
			"uio/uio3/maps/map0/offset": "-", // kernels before 2.6.29
		})
		d, err := openUIO(b.paths)
		if err != nil {
			t.Errorf("%q: %v", c, err)
			continue
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoMAC opens a MAC where none answers: the version register is 0.
func TestNoMAC(t *testing.T) {
	b := newBoard(t, nil)
	b.leavesNothing(t, func() {
		d, err := newUIODevice(b.paths)
		if err != nil {
			t.Fatal(err)
		}
		mac, err := stmmac.Open(t.Context(), d, stmmac.WithName("board"), stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}))
		var e *stmmac.Error
		if mac != nil || !errors.As(err, &e) || e.Reg != "MAC_Version" || e.Val != 0 || e.Dev != "board" || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %v", mac, err)
		}
		if n := d.memory.inUse(); n != 0 {
			t.Errorf("%d bytes stay allocated", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	b.leavesNothing(t, func() {
		err := run(t.Context(), config{paths: b.paths, generation: stmmac.GMAC4, mtu: 1500}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "MAC_Version") || !strings.Contains(err.Error(), b.uio) {
			t.Error(err)
		}
	})
}

// TestMemoryTooSmall has a buffer that holds the rings and not the pool.
func TestMemoryTooSmall(t *testing.T) {
	b := newBoard(t, nil)
	m := newMiniMAC(t, b)
	b.leavesNothing(t, func() {
		stop := m.start()
		defer stop()
		err := run(t.Context(), config{paths: b.paths, generation: stmmac.GMAC4, mtu: 1500}, io.Discard, stmmac.WithConfig(patient))
		if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "make the buffer larger") {
			t.Error(err)
		}
	})
}

// patient makes the reset wait as long as the test may run, and takes a device
// that stands still for no fault.
func patient(o *stmmac.Config) { o.ResetTimeout, o.Recovery.Stall = time.Hour, time.Hour }
