package stmmac_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// fence is memory with a page boundary inside, behind which loads fault while
// it is up.
type fence struct {
	mem []byte
	at  int
}

// newFence returns n bytes with the boundary at byte at.
func newFence(t *testing.T, n, at int) *fence {
	t.Helper()
	page := os.Getpagesize()
	before := (at + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, before+(n-at+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return &fence{mem, before}
}

func (f *fence) set(t *testing.T, up bool) {
	t.Helper()
	prot := unix.PROT_READ | unix.PROT_WRITE
	if up {
		prot = unix.PROT_NONE
	}
	if err := unix.Mprotect(f.mem[f.at:], prot); err != nil {
		t.Fatal(err)
	}
}

// TestD22: however many frames wait, a call looks at no more than two
// descriptors for each that it takes off the ring. Loads cannot be counted, but
// a load behind a fence faults. The chain mode of the report does not exist in
// a GMAC4.
func TestD22(t *testing.T) {
	const n, boundary, first = 1024, 512, 100
	for _, c := range []struct {
		name   string
		lay    core.RxLayout
		length int // of the frames
		descs  int // that one takes
	}{
		{"one buffer", core.RxLayout{Start: 64, Size: 1984, First: 1984, MaxFrame: core.MaxFrameLen(1500)}, 60, 1},
		{"several buffers, short frames", core.RxLayout{Start: 64, Size: 256, First: 256, MaxFrame: core.MaxFrameLen(9000)}, 60, 1},
		{"several buffers, long frames", core.RxLayout{Start: 64, Size: 256, First: 256, MaxFrame: core.MaxFrameLen(9000)}, 600, 3},
	} {
		for _, batch := range []int{1, 7, 32} {
			t.Run(fmt.Sprintf("%s/%d", c.name, batch), func(t *testing.T) {
				var rx *fence
				r := newRings(t, ringsConfig{n: n, bufs: 2048, bufSize: 2048, lay: c.lay, sim: sim.Config{RxFIFO: 256 << 10},
					ring: func(size int) []byte {
						f := newFence(t, size, boundary*16)
						if rx == nil {
							rx = f // the receive list is made first
						}
						return f.mem[f.at-boundary*16:][:size]
					}})
				next := uint64(0)
				deliver := func(frames int) {
					for range frames {
						r.wire.deliver(frame(c.length, next))
						next++
					}
					r.step()
				}
				// The ring is full of frames, and what is refilled lies before
				// the fence.
				deliver(first / c.descs)
				r.recv(first / c.descs)
				r.recv(1)
				before := r.dev.Stats().RxDescReads
				total := (n - 1) / c.descs
				deliver(total)
				if reads, used := r.dev.Stats().RxDescReads-before, uint64(total*c.descs); reads > 2*used {
					t.Errorf("the model read %d descriptors for %d that it used", reads, used)
				}

				bufs := make([]*pagepool.Buf, batch)
				head := first / c.descs * c.descs
				rx.set(t, true)
				fault := func() (err any) {
					defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
					defer func() { err = recover() }()
					for head+2*batch*c.descs <= boundary {
						k := r.rx.Recv(bufs)
						if k != batch {
							t.Errorf("at %d: %d frames, want %d", head, k, batch)
							return nil
						}
						r.pool.FreeBatch(bufs)
						head += k * c.descs
					}
					return nil
				}()
				rx.set(t, false)
				if fault != nil {
					r.abandon = true // the fault left the ring inside a call
					t.Fatalf("a call for %d frames at slot %d looks beyond slot %d: %v", batch, head, boundary-1, fault)
				}
				r.recv(total)
				r.settled()
			})
		}
	}
}
