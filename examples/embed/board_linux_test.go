package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	boardRegs = 0x2000      // bytes of registers
	boardMem  = 4 << 20     // bytes of reserved memory
	boardBus  = 0x840000000 // bus address of it: more than 32 bits
)

// board is a pair of devices made of files: a file maps as well as a device.
type board struct {
	paths
	dir string
}

// newBoard makes the files. set replaces attributes of sysfs by their path
// below class; "-" removes one.
func newBoard(t *testing.T, set map[string]string) *board {
	t.Helper()
	b := &board{dir: t.TempDir()}
	b.paths = paths{
		uio:    filepath.Join(b.dir, "dev", "uio3"),
		dmabuf: filepath.Join(b.dir, "dev", "udmabuf7"),
		sysfs:  filepath.Join(b.dir, "sys"),
	}
	attributes := map[string]string{
		"uio/uio3/maps/map0/size":       fmt.Sprintf("%#x\n", boardRegs),
		"uio/uio3/maps/map0/offset":     "0x0\n",
		"u-dma-buf/udmabuf7/size":       fmt.Sprintf("%d\n", boardMem),
		"u-dma-buf/udmabuf7/phys_addr":  fmt.Sprintf("%#016x\n", boardBus),
		"u-dma-buf/udmabuf7/sync_mode":  "2\n",
		"u-dma-buf/udmabuf7/sync_owner": "0\n",
	}
	for name, v := range set {
		attributes[name] = v
	}
	for name, v := range attributes {
		if v != "-" {
			write(t, filepath.Join(b.sysfs, "class", name), []byte(v))
		}
	}
	write(t, b.uio, make([]byte, boardRegs))
	write(t, b.dmabuf, make([]byte, boardMem))
	return b
}

func write(t *testing.T, path string, p []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, p, 0o666); err != nil {
		t.Fatal(err)
	}
}

// view maps a file of the board for the test itself.
func (b *board) view(t *testing.T, path string, n int) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return mem
}

// held is what a process has of a board.
type held struct {
	maps, fds  []string
	goroutines int
}

func (b *board) held(t *testing.T) held {
	t.Helper()
	h := held{goroutines: runtime.NumGoroutine()}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, b.dir) {
			h.maps = append(h.maps, strings.TrimSpace(line))
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		// The directory itself is closed by now, and has no target.
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			h.fds = append(h.fds, fd.Name()+" "+to)
		}
	}
	slices.Sort(h.fds)
	return h
}

// leavesNothing runs f and compares mappings, open files and goroutines before
// and after.
func (b *board) leavesNothing(t *testing.T, f func()) {
	t.Helper()
	// The runtime opens its poller with the first file and keeps it.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	before := b.held(t)
	f()
	var after held
	// A goroutine that is done needs a turn to end.
	for range 10_000 {
		if after = b.held(t); after.goroutines <= before.goroutines {
			break
		}
		runtime.Gosched()
	}
	if !slices.Equal(before.maps, after.maps) {
		t.Errorf("mappings before:\n%s\nand after:\n%s", strings.Join(before.maps, "\n"), strings.Join(after.maps, "\n"))
	}
	if !slices.Equal(before.fds, after.fds) {
		t.Errorf("open files before: %q, and after: %q", before.fds, after.fds)
	}
	if after.goroutines > before.goroutines {
		t.Errorf("%d goroutines before, and after %d", before.goroutines, after.goroutines)
	}
}
