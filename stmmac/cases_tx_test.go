package stmmac_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// tally is a wire for a model on its own goroutine. It counts the frames of
// each sender and fails on one that is lost, doubled or out of order.
type tally struct {
	mu    sync.Mutex
	next  map[uint32]uint32 // by sender: the number of its next frame
	total int
	wrong string
}

func (w *tally) Transmit(f sim.Frame) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := binary.BigEndian.Uint64(f.Data[14:])
	from, seq := uint32(id>>32), uint32(id)
	if want := w.next[from]; w.wrong == "" && (seq != want || !bytes.Equal(f.Data, frame(len(f.Data), id))) {
		w.wrong = fmt.Sprintf("sender %d: frame %d of %d bytes, want %d", from, seq, len(f.Data), want)
	}
	w.next[from] = seq + 1
	w.total++
	return true
}

func (w *tally) Receive() (sim.Frame, bool) { return sim.Frame{}, false }
func (w *tally) Elastic() bool              { return true }
func (w *tally) Notify(func())              {}
func (w *tally) Close() error               { return nil }

// TestD27: eight goroutines send while two reap. The case's watchdog does not
// exist; a sender that is never woken ends the test by its context.
func TestD27(t *testing.T) {
	const senders, reapers = 8, 2
	type queue struct {
		send func([]*pagepool.Buf) (int, error)
		reap func([]*pagepool.Buf) int
		wait func(context.Context) error
	}
	for _, c := range []struct {
		name string
		of   func(q *stmmac.TxQueue) queue
	}{
		{"shared", func(q *stmmac.TxQueue) queue {
			s := q.Shared()
			return queue{s.Send, s.Reap, s.Wait}
		}},
		// Without the lock a call that finds another under way does nothing: a
		// reap that comes between the choice of a slot and its OWN is such a call.
		{"not shared", func(q *stmmac.TxQueue) queue {
			return queue{q.Send, q.Reap, func(context.Context) error { runtime.Gosched(); return nil }}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &tally{next: map[uint32]uint32{}}
			d, err := sim.New(sim.Config{}, w)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			pool, err := pagepool.New(d, 512)
			if err != nil {
				t.Fatal(err)
			}
			m, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithPool(pool), stmmac.WithRings(8, 8))
			if err != nil {
				t.Fatal(err)
			}
			base := pool.InUse()
			q := c.of(m.Tx(0))
			each := scale(t, 10_000_000) / senders
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var sending, reaping sync.WaitGroup
			var done atomic.Bool
			for id := range uint64(senders) {
				sending.Go(func() {
					rng := rand.New(rand.NewPCG(27, id))
					var bufs [3]*pagepool.Buf
					for seq := 0; seq < each; {
						k := min(1+rng.IntN(len(bufs)), each-seq)
						for i := range k {
							b, err := pool.Alloc()
							if err != nil {
								t.Error(err)
								return
							}
							b.SetData(frame(60+rng.IntN(40), id<<32|uint64(seq+i)))
							bufs[i] = b
						}
						seq += k
						for left := bufs[:k]; len(left) > 0; {
							n, err := q.send(left)
							if err != nil {
								t.Error(err)
								return
							}
							if left = left[n:]; n == 0 {
								if err := q.wait(ctx); err != nil {
									t.Error(err)
									return
								}
							}
							if rng.IntN(8) == 0 {
								runtime.Gosched()
							}
						}
					}
				})
			}
			for range reapers {
				reaping.Go(func() {
					for !done.Load() && ctx.Err() == nil {
						q.reap(nil)
						runtime.Gosched()
					}
				})
			}
			sending.Wait()
			for s := m.Tx(0).Stats(); s.Done < s.Packets && ctx.Err() == nil; s = m.Tx(0).Stats() {
				runtime.Gosched() // the reapers finish what is in flight
			}
			done.Store(true)
			reaping.Wait()
			if n := pool.InUse(); n != base {
				t.Errorf("%d buffers are in use, %d when idle: %v", n, base, pool.Holders())
			}
			if s := m.Tx(0).Stats(); s.Packets != uint64(senders*each) || s.Done != s.Packets || s.Errors() != 0 || s.Refused != 0 {
				t.Errorf("%+v", s)
			}
			for _, err := range []error{m.Close(), pool.Close()} {
				if err != nil {
					t.Error(err)
				}
			}
			if w.wrong != "" || w.total != senders*each {
				t.Errorf("%d frames, want %d: %s", w.total, senders*each, w.wrong)
			}
			if n := pool.Misfreed(); n != 0 {
				t.Errorf("%d buffers were freed twice", n)
			}
			for _, v := range d.Audit() {
				t.Errorf("audit: %v", v)
			}
		})
	}
}

// txOwned is the slots of the transmit list that the device has.
func (r *rig) txOwned(n int) (slots []int) {
	r.Helper()
	for i := range n {
		if r.gen.owned(r.desc(sending, i)) {
			slots = append(slots, i)
		}
	}
	return slots
}

// TestD29: a frame of more pieces than there are free descriptors waits whole,
// and one that can never fit is refused.
func TestD29(t *testing.T) {
	const n = 8
	for _, pieces := range []int{1, 2, 6, 7, 8, 9, 20} {
		for used := range n { // descriptors that are in flight before
			t.Run(fmt.Sprintf("pieces=%d/used=%d", pieces, used), func(t *testing.T) {
				r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
				q := r.mac.Tx(0)
				for start := range n { // every slot is the first once
					r.wire.blocked = true
					before := frames(used, 60, uint64(start)*100)
					r.send(before...)
					r.step()
					was := r.txOwned(n)
					f := frame(20*pieces, 7)
					b := r.buf(f, 20)
					k, err := q.Send([]*pagepool.Buf{b})
					switch {
					case used == n-1: // full, whatever comes
						if k != 0 || err != nil {
							t.Fatalf("%d frames taken by a full ring: %v", k, err)
						}
					case pieces > n-1:
						mustFail(t, err, stmmac.ErrFrameTooLong)
						if k != 0 {
							t.Fatalf("%d frames taken with %v", k, err)
						}
					case err != nil:
						t.Fatal(err)
					case (k == 1) != (used+pieces <= n-1):
						t.Fatalf("%d frames taken", k)
					}
					if k == 0 {
						// Nothing of it is with the device.
						if now := r.txOwned(n); fmt.Sprint(now) != fmt.Sprint(was) {
							t.Fatalf("the device has slots %v, before %v", now, was)
						}
						if got := b.FrameLen(); got != len(f) {
							t.Fatalf("the frame has %d bytes left", got)
						}
					}
					r.wire.blocked = false
					r.step()
					want := before
					if k == 1 {
						want = append(want, f)
					}
					r.same(r.wire.take(), pad(want))
					q.Reap(nil)
					if k == 0 && pieces <= n-1 {
						if k, err := q.Send([]*pagepool.Buf{b}); k != 1 || err != nil {
							t.Fatalf("%d frames taken by an empty ring: %v", k, err)
						}
						r.step()
						r.same(r.wire.take(), pad([][]byte{f}))
					} else if k == 0 {
						_, err := q.Send([]*pagepool.Buf{b})
						mustFail(t, err, stmmac.ErrFrameTooLong)
						r.pool.Free(b)
					}
					r.settled()
					if start%2 == 0 { // so that used = 0 and a refused frame move on too
						r.send(frame(60, 9))
						r.step()
						r.wire.take()
					}
					r.settled()
				}
				if st := q.Stats(); pieces > n-1 && st.Refused < n || pieces <= n-1 && st.Refused != 0 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
	// The control: the audit does notice a chain that is handed over in part.
	t.Run("half a chain", func(t *testing.T) {
		b := newBare(t, bareConfig{n: n})
		b.start()
		b.put(b.txList, 0, b.bufAddr(0), 60, uint32(r4.TxOWN|r4.TxFD)|120)
		r4.DMACHTxDescTailPointer.Store(b.ch, uint32(b.txList.Addr())+16)
		b.step()
		if ks := kinds(b.dev); len(ks) != 1 || ks[0] != sim.ChainCut {
			t.Errorf("audit: %v", ks)
		}
	})
}

// pad returns frames as they look on the wire: at least 60 bytes.
func pad(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, f := range list {
		if out[i] = f; len(f) < 60 {
			out[i] = append(bytes.Clone(f), make([]byte, 60-len(f))...)
		}
	}
	return out
}

// TestD30: a failure at any fragment of a frame leaves nothing behind. The
// driver maps arenas and not frames and has no bounce buffers, so what can
// fail for a frame is the check of each fragment, and a mapping only when the
// device is opened or the pool grows.
func TestD30(t *testing.T) { onEach(t, testD30) }

func testD30(t *testing.T) {
	t.Run("fragments", func(t *testing.T) {
		r := newRig(t, rigConfig{bufs: 256, bufSize: 512, opts: []stmmac.Option{stmmac.WithRings(16, 16)}})
		type fault struct {
			want error
			do   func(list []*pagepool.Buf, f int)
			undo func(list []*pagepool.Buf, f int)
		}
		var keep *pagepool.Buf
		none := func([]*pagepool.Buf, int) {}
		faults := map[string]fault{
			"empty": {stmmac.ErrFrameTooShort, func(l []*pagepool.Buf, f int) { l[f].SetLen(0) }, none},
			"freed": {stmmac.ErrNotHeld,
				// The links behind it are gone too: what followed is freed with it.
				func(l []*pagepool.Buf, f int) { r.pool.Free(l[f]) },
				func(l []*pagepool.Buf, f int) {
					if f == 0 {
						l[0] = nil
					} else {
						l[f-1].SetNext(nil)
					}
				}},
			"twice": {stmmac.ErrNotHeld,
				func(l []*pagepool.Buf, f int) {
					if keep = l[f].Next(); keep == nil {
						keep, _ = r.pool.Alloc()
					}
					// One that is queued already stands in its place.
					b := r.buf(frame(60, 5), 60)
					if n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
						t.Fatal(n, err)
					}
					l[f].SetNext(b)
				},
				func(l []*pagepool.Buf, f int) { l[f].SetNext(keep) }},
			"too long": {stmmac.ErrFrameTooLong,
				func(l []*pagepool.Buf, f int) {
					for range 4 { // the pool's buffers have less than 512 bytes
						b, err := r.pool.Alloc()
						if err != nil {
							t.Fatal(err)
						}
						b.SetLen(b.Tailroom())
						b.SetNext(l[f].Next())
						l[f].SetNext(b)
					}
				}, none},
		}
		sends := scale(t, 100_000)
		for done := 0; done < sends; {
			for name, x := range faults {
				for total := 1; total <= 6; total++ {
					for f := range total {
						b := r.buf(frame(40*total, 1), 40)
						var list []*pagepool.Buf
						for p := b; p != nil; p = p.Next() {
							list = append(list, p)
						}
						x.do(list, f)
						good := r.buf(frame(60, 2), 60)
						// A good frame before it goes, with it nothing.
						n, err := r.mac.Tx(0).Send([]*pagepool.Buf{good, b})
						if n != 1 || !errors.Is(err, x.want) {
							t.Fatalf("%s at fragment %d of %d: %d frames, error %v", name, f, total, n, err)
						}
						r.step()
						x.undo(list, f)
						r.pool.Free(list[0])
						r.settled()
						done++
					}
				}
			}
			for _, f := range r.wire.take() {
				if len(f) != 60 {
					t.Fatalf("a refused frame of %d bytes left", len(f))
				}
			}
		}
		r.send(frame(60, 3))
		r.step()
		r.same(r.wire.take(), frames(1, 60, 3))
		r.settled()
	})
	t.Run("mappings", func(t *testing.T) {
		clock := sim.NewManualClock()
		d, err := sim.New(sim.Config{Inline: true, Clock: clock}, &testWire{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		s := newSpy(d)
		pool, err := pagepool.New(d, 64)
		if err != nil {
			t.Fatal(err)
		}
		opts := []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithPool(pool), stmmac.WithRings(8, 8),
			stmmac.WithClock(clock)}
		fail := errors.New("no mapping left")
		calls, at := 0, 0
		d.SetFaults(func(f *sim.Faults) {
			f.FailMap = func(int) error {
				if calls++; calls == at {
					return fail
				}
				return nil
			}
		})
		for range scale(t, 2000) {
			failed := 0
			for at = 1; ; at++ {
				calls = 0
				m, err := stmmac.Open(t.Context(), s, opts...)
				if err == nil {
					// A pool that cannot grow is as it was.
					before, n := s.mappings(), pool.Size()
					calls, at = 0, 1
					if err := pool.Grow(8); !errors.Is(err, fail) || pool.Size() != n || s.mappings() != before {
						t.Fatalf("%v, %d buffers, %d mappings", err, pool.Size(), s.mappings())
					}
					if err := m.Close(); err != nil {
						t.Fatal(err)
					}
				} else if failed++; !errors.Is(err, fail) {
					t.Fatalf("mapping %d: %v", at, err)
				}
				if n := pool.InUse(); n != 0 || s.mappings() != 0 {
					t.Fatalf("mapping %d: %d buffers are in use, %d mappings are left", at, n, s.mappings())
				}
				if err == nil {
					break
				}
			}
			if failed < 3 { // the pool and two lists
				t.Fatalf("only %d mappings could fail", failed)
			}
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestD31: buffers up to the limit of the length field go out as they are, and
// nothing beyond it is told to the device.
func TestD31(t *testing.T) { onEach(t, testD31) }

func testD31(t *testing.T) {
	limit := on(t).limits().txBuf
	lay := core.RxLayout{Start: 64, Size: 1984, First: 1984, MaxFrame: core.MaxFrameLen(1500)}
	r := newRings(t, ringsConfig{bufs: 64, bufSize: pagepool.MaxBufSize, maxFrame: 3 * limit, lay: lay,
		sim: sim.Config{TxFIFO: 64 << 10}})
	r.tolerate = append(r.tolerate, sim.FrameBeyondFIFO)
	sent := func(want error, sizes ...int) {
		t.Helper()
		total := 0
		for _, n := range sizes {
			total += n
		}
		whole := frame(total, uint64(total))
		var head, tail *pagepool.Buf
		for at := 0; len(sizes) > 0; sizes = sizes[1:] {
			b, err := r.pool.Alloc()
			if err != nil || !b.SetData(whole[at:][:sizes[0]]) {
				t.Fatal(err)
			}
			at += sizes[0]
			if head == nil {
				head = b
			} else {
				tail.SetNext(b)
			}
			tail = b
		}
		n, err := r.tx.Send([]*pagepool.Buf{head})
		if want != nil {
			if n != 0 || !errors.Is(err, want) {
				t.Fatalf("%d frames, error %v, want %v", n, err, want)
			}
			r.pool.Free(head)
		} else if n != 1 || err != nil {
			t.Fatalf("%d frames, error %v", n, err)
		}
		if want == nil {
			// Each descriptor has its own length and the first that of the frame:
			// no bit of a sum runs over into a neighbour.
			list := r.gen.list(r.csr, 0, sending)
			i := int(r.gen.current(r.csr, 0, sending)-list) / 16
			sum := 0
			for p := head; p != nil; p = p.Next() {
				d := r.spy.desc(t, list, i%16)
				want := txDesc{owned: true, first: p == head, last: p.Next() == nil, irq: p.Next() == nil, n: p.Len()}
				if want.first && r.gen.limits().total {
					want.total = total
				}
				got := r.gen.queued(d)
				if got != want {
					t.Fatalf("descriptor of %d bytes is %08x", p.Len(), *d)
				}
				sum += got.n
				i++
			}
			if sum != total {
				t.Fatalf("the buffers have %d bytes, the frame %d", sum, total)
			}
		}
		r.step()
		got := r.wire.take()
		if want != nil {
			same(t, got, nil)
			return
		}
		// The MAC cuts what is longer than the longest packet, with FCS.
		const longest = 1<<14 - 1 - core.FCSLen
		same(t, got, [][]byte{whole[:min(total, longest)]})
		r.tx.Reap(nil)
	}
	for _, n := range []int{limit - 5, limit - 4, limit - 3, limit - 1, limit} {
		sent(nil, n)
	}
	for _, n := range []int{limit + 1, 2 * limit, 2*limit + 1} {
		sent(stmmac.ErrFrameTooLong, n)
		sent(stmmac.ErrFrameTooLong, 60, n)
		sent(stmmac.ErrFrameTooLong, n, 60)
	}
	sent(nil, 100, limit-300, 60)
	sent(nil, limit, limit) // the sum, 32,766, still fits the field of the frame's length
	r.settled()

	// What Open allows: the MTU, the header and two tags.
	for _, mtu := range []int{1500, 9000} {
		r := newRig(t, rigConfig{bufSize: 9216, opts: []stmmac.Option{stmmac.WithMTU(mtu)}})
		most := mtu + 22
		for _, each := range []int{most, most - 1, most/2 + 1, 512} {
			for _, n := range []int{most - 1, most} {
				f := frame(n, 1)
				b := r.buf(f, each)
				if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); each > limit {
					mustFail(t, err, stmmac.ErrFrameTooLong)
					r.pool.Free(b)
					continue
				} else if k != 1 || err != nil {
					t.Fatalf("%d bytes in pieces of %d: %v", n, each, err)
				}
				r.step()
				r.same(r.wire.take(), [][]byte{f})
			}
			b := r.buf(frame(most+1, 1), each)
			_, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
			mustFail(t, err, stmmac.ErrFrameTooLong)
			r.pool.Free(b)
			r.settled()
		}
	}
}

// TestD34: what belongs to the first descriptor of a frame stands on it alone,
// and what belongs to the last on that. Checksum insertion and timestamps are
// not built: their bits stay clear everywhere.
func TestD34(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(16, 16)}})
	want := [][]byte{frame(80, 1), frame(200, 2), frame(60, 3), frame(90, 4)}
	bufs := []*pagepool.Buf{r.buf(want[0], 80), r.buf(want[1], 50), r.buf(want[2], 60), r.buf(want[3], 30)}
	for lap := range 5 {
		at := int(r4.DMACHCurAppTxDesc.Load(chan0(t, r.dev))-r4.DMACHTxDescListAddr.Load(chan0(t, r.dev))) / 16
		if n, err := r.mac.Tx(0).Send(bufs); n != len(bufs) || err != nil {
			t.Fatal(n, err)
		}
		const own, fd, ld, ioc = uint32(r4.TxOWN), uint32(r4.TxFD), uint32(r4.TxLD), uint32(r4.IOC)
		for i, d := range [][2]uint32{
			{80, own | fd | ld | 80},
			{50, own | fd | 200}, {50, own}, {50, own}, {50, own | ld},
			{60, own | fd | ld | 60},
			{30, own | fd | 90}, {30, own}, {30 | ioc, own | ld}, // one interrupt a batch
		} {
			if got := r.desc(sending, (at+i)%16); got[2] != d[0] || got[3] != d[1] {
				t.Errorf("lap %d: descriptor %d is %08x %08x, want %08x %08x", lap, i, got[2], got[3], d[0], d[1])
			}
		}
		r.step()
		r.same(r.wire.take(), want)
		r.settled()
		for i, each := range []int{80, 50, 60, 30} {
			bufs[i] = r.buf(want[i], each)
		}
	}
	r.pool.FreeBatch(bufs)
	r.settled()

	// The control: the model takes bits that are repeated, and says so.
	for _, c := range []struct {
		d2, d3 uint32
		bad    bool
	}{
		{0, 0, false}, {uint32(r4.IOC), 0, false},
		{0, uint32(r4.CIC.Of(3)), true}, {uint32(r4.TTSE), 0, true}, {0, uint32(r4.CPC.Of(1)), true},
	} {
		b := newBare(t, bareConfig{n: 8})
		b.start()
		f := frame(120, 1)
		for i := range 4 {
			d2, d3 := 30|c.d2, uint32(r4.TxOWN)|c.d3
			switch i {
			case 0:
				d2, d3 = 30, uint32(r4.TxOWN|r4.TxFD)|120
			case 3:
				d3 |= uint32(r4.TxLD)
			}
			copy(b.buf(i), f[30*i:])
			b.put(b.txList, i, b.bufAddr(i), d2, d3)
		}
		r4.DMACHTxDescTailPointer.Store(b.ch, uint32(b.txList.Addr())+64)
		b.step()
		same(t, b.wire.take(), [][]byte{f})
		ks := kinds(b.dev)
		if bad := len(ks) == 1 && ks[0] == sim.FirstOnlyBits; bad != c.bad || !bad && len(ks) != 0 {
			t.Errorf("%08x %08x repeated: audit %v", c.d2, c.d3, ks)
		}
	}
}
