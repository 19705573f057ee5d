package pagepool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errBus is how a bus fails.
var errBus = errors.New("the bus fails")

// bus is the DMA side of a device: it maps memory of the process at addresses
// of its own choice, or brings memory, and can be made to misbehave.
type bus struct {
	brings bool // AllocDMA gives memory
	// mapFails and allocFails are the number, from 1, of the call that fails.
	mapFails, allocFails int
	unmapFails           bool
	// shape changes what AllocDMA gives.
	shape func(mem []byte, iova uint64) ([]byte, uint64)

	mu          sync.Mutex
	next        uint64
	live        map[uint64][]byte // what the device reaches
	own         map[uint64][]byte // what AllocDMA mapped
	maps, alloc int
	faults      []string
}

func newBus(t *testing.T, base uint64, brings bool) *bus {
	t.Helper()
	b := &bus{next: base, brings: brings, live: map[uint64][]byte{}, own: map[uint64][]byte{}}
	t.Cleanup(func() {
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	return b
}

func (b *bus) Coherent() bool { return true }

func (b *bus) take(mem []byte) uint64 {
	iova := b.next
	// a page between mappings, so that no address of one follows another's
	b.next += uint64(len(mem) + os.Getpagesize())
	b.live[iova] = mem
	return iova
}

func (b *bus) MapDMA(mem []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := os.Getpagesize()
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); len(mem) == 0 || at%uintptr(page) != 0 || len(mem)%page != 0 {
		b.faults = append(b.faults, fmt.Sprintf("MapDMA of %d bytes at %#x", len(mem), at))
	}
	if b.maps++; b.maps == b.mapFails {
		return 0, errBus
	}
	return b.take(mem), nil
}

func (b *bus) AllocDMA(n, align int) ([]byte, uint64, error) {
	if !b.brings {
		return nil, 0, errors.ErrUnsupported
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alloc++; b.alloc == b.allocFails {
		return nil, 0, errBus
	}
	mem, err := unix.Mmap(-1, 0, roundUp(n, os.Getpagesize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, 0, err
	}
	for i := range mem {
		mem[i] = 0x5a // memory of a device is not clear
	}
	given := mem[:n]
	iova := b.take(given)
	b.own[iova] = mem
	if b.shape != nil {
		delete(b.live, iova)
		delete(b.own, iova)
		given, iova = b.shape(given, iova)
		b.live[iova], b.own[iova] = given, mem
	}
	return given, iova, nil
}

func (b *bus) UnmapDMA(iova uint64, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	mem, ok := b.live[iova]
	if !ok || len(mem) != n {
		b.faults = append(b.faults, fmt.Sprintf("UnmapDMA of %d bytes at %#x, where %d are mapped", n, iova, len(mem)))
		return unix.EINVAL
	}
	if b.unmapFails {
		return errBus
	}
	delete(b.live, iova)
	if own := b.own[iova]; own != nil {
		delete(b.own, iova)
		return unix.Munmap(own)
	}
	return nil
}

// at is where the device's address leads to, nil if nowhere.
func (b *bus) at(iova uint64) unsafe.Pointer {
	b.mu.Lock()
	defer b.mu.Unlock()
	for base, mem := range b.live {
		if iova >= base && iova-base < uint64(len(mem)) {
			return unsafe.Pointer(&mem[iova-base])
		}
	}
	return nil
}

// mapped is how many pieces of memory the device reaches.
func (b *bus) mapped() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.live)
}

// drop forgets what the device still reaches.
func (b *bus) drop() {
	for iova, mem := range b.own {
		_ = unix.Munmap(mem)
		delete(b.own, iova)
	}
	clear(b.live)
}

// perArena limits the arenas of a pool to n buffers, so that tests need not
// touch gigabytes to have several.
func perArena(n int) Option { return func(c *config) { c.arenaBufs = n } }

// inMaps returns the line of /proc/self/maps that covers p, "" if there is none.
func inMaps(t *testing.T, p uintptr) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if first, end, ok := span(line); ok && p >= first && p < end {
			return line
		}
	}
	return ""
}

func span(line string) (first, end uintptr, ok bool) {
	a, rest, _ := strings.Cut(line, "-")
	b, _, _ := strings.Cut(rest, " ")
	x, err1 := strconv.ParseUint(a, 16, 64)
	y, err2 := strconv.ParseUint(b, 16, 64)
	return uintptr(x), uintptr(y), err1 == nil && err2 == nil
}

// vmFlags returns the VmFlags of the mapping of p.
func vmFlags(t *testing.T, p uintptr) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		if first, end, ok := span(line); ok {
			inside = p >= first && p < end
		}
		if f, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			flags := map[string]bool{}
			for _, s := range strings.Fields(f) {
				flags[s] = true
			}
			return flags
		}
	}
	t.Fatalf("no mapping at %#x", p)
	return nil
}

// dontFork counts the KiB of the process that a child of fork does not get.
// Nothing but this package asks for that, so they are the payloads, and the
// count does not depend on what the Go runtime maps meanwhile.
func dontFork(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	total, size := 0, 0
	for line := range strings.Lines(string(text)) {
		if f, ok := strings.CutPrefix(line, "Size:"); ok {
			size, _ = strconv.Atoi(strings.Fields(f)[0])
		}
		if f, ok := strings.CutPrefix(line, "VmFlags:"); ok && strings.Contains(f, " dc") {
			total += size
		}
	}
	return total
}

// noLeak fails the test if at its end the process has other payloads than now.
func noLeak(t *testing.T) {
	t.Helper()
	before := dontFork(t)
	t.Cleanup(func() {
		if now := dontFork(t); now != before {
			t.Errorf("%d KiB of payload at the end, %d at the start", now, before)
		}
	})
}

func newPool(t *testing.T, m Mapper, n int, opts ...Option) *Pool {
	t.Helper()
	p, err := New(m, n, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func attach(t *testing.T, p *Pool, m Mapper) *Mapping {
	t.Helper()
	mp, err := p.Attach(m)
	if err != nil {
		t.Fatal(err)
	}
	return mp
}

func closeAll(t *testing.T, cs ...interface{ Close() error }) {
	t.Helper()
	for _, c := range cs {
		if err := c.Close(); err != nil {
			t.Errorf("close %T: %v", c, err)
		}
	}
}

func alloc(t *testing.T, p *Pool, n int) []*Buf {
	t.Helper()
	bufs := make([]*Buf, n)
	if got := p.AllocBatch(bufs); got != n {
		t.Fatalf("%d buffers, want %d", got, n)
	}
	return bufs
}

// wantTyped checks that err is an *Error that comes from cause.
func wantTyped(t *testing.T, err, cause error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Op == "" {
		t.Errorf("error %v (%T) is no *Error", err, err)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %v does not come from %v", err, cause)
	}
}
