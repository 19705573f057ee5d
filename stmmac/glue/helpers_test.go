package glue

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

// tree is a kernel of which only the files matter.
type tree struct {
	vfio.Kernel
	files fstest.MapFS
}

func (t tree) FS() fs.FS { return t.files }

// pciInfo is a PCI function whose BARs 0 and 2 have addresses.
func pciInfo(vendor, device uint16) vfio.Info {
	return vfio.Info{Bus: vfio.PCI, Name: "0000:03:00.0", Vendor: vendor, Device: device, Class: 0x020000,
		BARs: []vfio.BAR{{Index: 2, Base: 0xfe010000, Size: 0x1000}, {Index: 0, Base: 0xfe000000, Size: 0x10000}}}
}

func platformInfo(compatible ...string) vfio.Info {
	return vfio.Info{Bus: vfio.Platform, Name: "f0804000.ethernet", Compatible: compatible}
}

// ofNode is a device tree node of that platform device.
func ofNode(properties map[string]string) tree {
	t := tree{files: fstest.MapFS{}}
	for name, v := range properties {
		t.files[path.Join("sys/bus/platform/devices/f0804000.ethernet/of_node", name)] = &fstest.MapFile{Data: []byte(v)}
	}
	return t
}

// cells is a property of numbers.
func cells(v ...uint32) string {
	var b []byte
	for _, n := range v {
		b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return string(b)
}

func mustFind(t *testing.T, k vfio.Kernel, i vfio.Info) *Glue {
	t.Helper()
	g, err := Find(k, i)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// configOf is the configuration that options make, as stmmac.Open sees it: it ends
// at a device without registers.
func configOf(t *testing.T, opts []stmmac.Option) stmmac.Config {
	t.Helper()
	var got stmmac.Config
	seen := false
	opts = append(opts, stmmac.WithConfig(func(c *stmmac.Config) { got, seen = *c, true }))
	if _, err := stmmac.Open(context.Background(), &device{}, opts...); err == nil || !seen {
		t.Fatalf("opened without registers: %v", err)
	}
	return got
}

// device is a Device whose region 0 is r, or that has none.
type device struct {
	r mmio.Region

	mu       sync.Mutex
	resets   int
	resetErr error
	onReset  func()
	closes   int
	closeErr error
}

func (d *device) Region(i int) (mmio.Region, error) {
	if i != 0 || d.r == nil {
		return nil, os.ErrNotExist
	}
	return d.r, nil
}

func (d *device) NumInterrupts() int { return 6 }

func (d *device) Interrupt(int) (mmio.Interrupt, error) { return nil, errors.ErrUnsupported }

func (d *device) MapDMA([]byte) (uint64, error) { return 0x1000, nil }

func (d *device) UnmapDMA(uint64, int) error { return nil }

func (d *device) Coherent() bool { return true }

func (d *device) AllocDMA(int, int) ([]byte, uint64, error) { return nil, 0, errors.ErrUnsupported }

func (d *device) Reset(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets++
	if d.onReset != nil {
		d.onReset()
	}
	return d.resetErr
}

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closes++
	return d.closeErr
}
