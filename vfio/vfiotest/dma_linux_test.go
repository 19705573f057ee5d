package vfiotest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

func address(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

const readWrite = uapi.MapRead | uapi.MapWrite

func (r *rig) mapDMA(container int, iova, addr, n uint64, flags uint32) {
	r.Helper()
	r.ok(call(r.k, container, uapi.IOMMUMapDMA, &uapi.Type1Map{Argsz: 32, Flags: flags, Vaddr: addr, IOVA: iova, Size: n}))
}

// TestDMA looks addresses up in a container: the pages are mapped so that the
// third is behind a gap, and the fourth and fifth are swapped.
func TestDMA(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	mem, addr := r.memory(8)
	for i := range mem {
		mem[i] = byte(i / page)
	}
	r.mapDMA(l.container, 0x10000, addr, 2*page, readWrite)
	r.mapDMA(l.container, 0x12000, addr+2*page, page, readWrite)
	r.mapDMA(l.container, 0x20000, addr+4*page, page, readWrite)
	r.mapDMA(l.container, 0x21000, addr+3*page, page, readWrite)
	r.mapDMA(l.container, 0x30000, addr+5*page, page, uapi.MapRead)
	r.mapDMA(l.container, 0x31000, addr+6*page, page, uapi.MapWrite)
	if _, err := d.DMA(0x10000, 1); !errors.As(err, new(*vfiotest.DMAFault)) {
		t.Fatalf("DMA before the function is bus master: %v", err)
	}
	r.command(l.device, 6)
	for _, c := range []struct {
		name  string
		iova  uint64
		n     int
		page  int // of the process, -1 for a fault
		read  bool
		write bool
	}{
		{"first byte", 0x10000, 1, 0, true, true},
		{"last byte", 0x10fff, 1, 0, true, true},
		{"across pages of a mapping", 0x10800, page, 0, true, true},
		{"across mappings that are neighbours", 0x11800, page, 1, true, true},
		{"all three pages", 0x10000, 3 * page, 0, true, true},
		{"below", 0xffff, 1, -1, false, false},
		{"from below", 0xffff, 2, -1, false, false},
		{"beyond", 0x12fff, 2, -1, false, false},
		{"in the gap", 0x18000, 64, -1, false, false},
		{"across mappings that are none", 0x20fff, 2, -1, false, false},
		{"swapped", 0x21000, page, 3, true, true},
		{"read only", 0x30000, 16, -1, true, false},
		{"write only", 0x31000, 16, -1, false, true},
		{"from one to the other", 0x30fff, 2, -1, false, false},
		{"nothing", 0x10000, 0, -1, true, true},
		{"negative", 0x10000, -1, -1, true, true},
		{"wraps", 1<<64 - 1, 2, -1, false, false},
		{"up to the end", 1<<64 - 16, 16, -1, false, false},
	} {
		got, err := d.DMA(c.iova, c.n)
		var fault *vfiotest.DMAFault
		switch {
		case c.page < 0:
			if !errors.As(err, &fault) || !errors.Is(err, unix.EFAULT) || !strings.Contains(err.Error(), nicName) || fault.Addr != c.iova || fault.Len != c.n || fault.Dev != nicName {
				t.Errorf("%s: %v, want a fault", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case len(got) != c.n || address(got) != addr+uint64(c.page)*page+c.iova%page:
			t.Errorf("%s: %d bytes at %#x, of memory at %#x", c.name, len(got), address(got), addr)
		}
		if w := d.Bus().Window(c.iova, c.n); (w != nil) != (c.page >= 0) {
			t.Errorf("%s: a window: %v", c.name, w != nil)
		}
		p := make([]byte, max(c.n, 0))
		if err := d.Bus().Read(c.iova, p); (err == nil) != c.read {
			t.Errorf("%s: read: %v", c.name, err)
		}
		if err := d.Bus().Write(c.iova, p); (err == nil) != c.write {
			t.Errorf("%s: write: %v", c.name, err)
		}
	}
	if err := d.Bus().Write(0x11ffe, []byte{1, 2, 3, 4}); err != nil || !bytes.Equal(mem[2*page-2:2*page+2], []byte{1, 2, 3, 4}) {
		t.Errorf("written: %v, %x", err, mem[2*page-2:2*page+2])
	}
	r.close(l.device, l.group, l.container)
	if _, err := d.DMA(0x10000, 1); err == nil {
		t.Error("DMA of a device that is closed")
	}
	if m := r.k.Mappings(); len(m) > 0 {
		t.Errorf("mappings outlive the container: %+v", m)
	}
	if n := r.k.OpenFDs(); n != 0 {
		t.Errorf("%d descriptors are open", n)
	}
}
