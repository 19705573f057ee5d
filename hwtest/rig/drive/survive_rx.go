package drive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
)

// smallest is an MTU at which all frames of the tests have 60 bytes.
const smallest = 46

// bytesOf is a copy of a frame.
func bytesOf(f *pagepool.Buf) []byte {
	p := make([]byte, f.FrameLen())
	f.CopyTo(p)
	return p
}

// sender puts numbered frames on the wire. Its methods may be called by several goroutines.
type sender struct {
	b   *board
	mtu int // of the frames' sizes

	mu sync.Mutex
	n  int // frames sent
}

// send sends the next k frames.
func (s *sender) send(ctx context.Context, k int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; k > 0; k-- {
		if err := s.b.wire.Send(ctx, frame(s.mtu, s.n)); err != nil {
			return fmt.Errorf("put frame %d on the wire: %w", s.n, err)
		}
		s.n++
	}
	return nil
}

// sent is how many frames were sent.
func (s *sender) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// sequence is what a receiver of numbered frames has seen.
type sequence struct {
	mtu  int // of the frames' sizes
	next int // the number that comes next
	gaps []gap
}

// gap is what is missing in a sequence.
type gap struct {
	first, n int
}

// lost is how many frames are missing.
func (q *sequence) lost() (n int) {
	for _, g := range q.gaps {
		n += g.n
	}
	return n
}

// add takes a frame, which is whole and behind all others.
func (q *sequence) add(f []byte) error {
	n := number(f)
	if n < q.next {
		return fmt.Errorf("frame %d came behind frame %d", n, q.next-1)
	}
	if n > q.next {
		q.gaps = append(q.gaps, gap{q.next, n - q.next})
	}
	q.next = n + 1
	return same("received", n, f, frame(q.mtu, n))
}

// fill receives frames until the one before end has come, waiting for each.
func (q *sequence) fill(ctx context.Context, b *board, end int) error {
	for q.next < end {
		if _, err := take(ctx, b.mac, func(f *pagepool.Buf) error { return q.add(bytesOf(f)) }); err != nil {
			return fmt.Errorf("before frame %d, after %d gaps: %w; %+v", q.next, len(q.gaps), err, b.mac.Rx(0).Stats())
		}
	}
	return nil
}

// look is fill without Wait, and so without interrupts.
func (q *sequence) look(ctx context.Context, b *board, end int) error {
	for one := make([]*pagepool.Buf, 1); q.next < end; {
		if b.mac.Rx(0).Recv(one) == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("before frame %d, after %d gaps: %w; %+v", q.next, len(q.gaps), err, b.mac.Rx(0).Stats())
			}
			runtime.Gosched()
			continue
		}
		err := q.add(bytesOf(one[0]))
		if b.mac.Pool().Free(one[0]); err != nil {
			return err
		}
	}
	return nil
}

// received checks the driver's counts of received frames: how many it gave out, and how
// many it dropped.
func (b *board) received(packets, drops int) error {
	if s := b.mac.Rx(0).Stats(); s.Packets != uint64(packets) || s.Drops() != uint64(drops) {
		return fmt.Errorf("the driver counts %+v, want %d frames and %d drops", s, packets, drops)
	}
	return nil
}

// twoSteps receives without interrupts, by looking at the ring again and again, so that the
// driver looks between the two steps too. It counts the frames of which it did: Recv found
// nothing while the descriptor that is next was given back without LS before and after. How
// many these are is chance, and none on a machine with one processor.
func twoSteps(total int) func(context.Context, *board) error {
	return func(ctx context.Context, b *board) error { return poll(ctx, b, total) }
}

// poll receives frames, one at a time.
func poll(ctx context.Context, b *board, total int) error {
	list, err := b.list(regRxList)
	if err != nil {
		return err
	}
	s, q := &sender{b: b, mtu: smallest}, &sequence{mtu: smallest}
	between := func(i int) bool { return barrier.LoadOwn(list.word(i, 0))&(descOwn|rxFS|rxLS) == rxFS }
	met, looks := 0, 0
	one := make([]*pagepool.Buf, 1)
	for q.next < total {
		// The driver fills the ring while there is nothing, so that the looks below touch
		// no register, behind which the model would be done.
		if n := b.mac.Rx(0).Recv(one); n != 0 {
			return errors.New("a frame came that was not sent")
		}
		if err := s.send(ctx, 1); err != nil {
			return err
		}
		seen := false
		for n := 0; n == 0; looks++ {
			was := between(q.next)
			n = b.mac.Rx(0).Recv(one)
			seen = seen || n == 0 && was && between(q.next)
			if looks%1024 == 0 {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("before frame %d: %w; %+v", q.next, err, b.mac.Rx(0).Stats())
				}
				runtime.Gosched()
			}
		}
		if seen {
			met++
		}
		err := q.add(bytesOf(one[0]))
		if b.mac.Pool().Free(one[0]); err != nil {
			return err
		}
	}
	if q.gaps != nil {
		return fmt.Errorf("frames are missing: %v", q.gaps)
	}
	note.Printf(ctx, "%d frames, of which the driver met %d between the steps, in %d looks", total, met, looks)
	return b.received(total, 0)
}

// dropped lets frames come while nobody receives, until one finds no descriptor, and receives
// again. It does so without interrupts, with which the driver would clear RU, and once more
// with them.
func dropped(ctx context.Context, b *board) error {
	const rounds, more, behind = 50, 6, 3
	regs, err := b.regs()
	if err != nil {
		return err
	}
	s, q := &sender{b: b, mtu: smallest}, &sequence{mtu: smallest}
	for round := range rounds {
		end := s.n + b.slots - 1 // of the frames that find a descriptor
		before := len(q.gaps)
		regs.Store32(regStatus, statusRU)
		if err := s.send(ctx, b.slots-1+more); err != nil {
			return err
		}
		for regs.Load32(regStatus)&statusRU == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("no frame has found no descriptor: %w", err)
			}
		}
		// One frame at least is gone; those behind it that still lie in the cable are not.
		receive := q.look
		if round == rounds-1 {
			receive = q.fill
		}
		err := receive(ctx, b, end)
		if err == nil {
			err = s.send(ctx, behind)
		}
		if err == nil {
			err = receive(ctx, b, s.n)
		}
		if err != nil {
			return err
		}
		// The driver gives descriptors back one by one, so one in the cable may find one and
		// the next one none. Those sent after that find one.
		gaps := q.gaps[before:]
		if len(gaps) == 0 || gaps[0].first != end {
			return fmt.Errorf("round %d: frames are missing in %v, and the first is to be %d", round, gaps, end)
		}
		if last := gaps[len(gaps)-1]; last.first+last.n > s.n-behind {
			return fmt.Errorf("round %d: frames are missing in %v, of %d", round, gaps, s.n)
		}
		// The driver fills the ring when it finds nothing more.
		if n := b.mac.Rx(0).Recv(make([]*pagepool.Buf, 1)); n != 0 {
			return errors.New("a frame came that was not sent")
		}
	}
	if n := b.mac.Rx(0).Stats().Missed; n != 0 {
		return fmt.Errorf("the device counts %d missed frames, and the model has changed", n)
	}
	note.Printf(ctx, "%d frames received, %d dropped by the model, whose counter of missed frames stays 0", s.n-q.lost(), q.lost())
	return b.received(s.n-q.lost(), 0)
}

// together runs all of fs at the same time, with a context that ends with the first error,
// which it returns.
func together(ctx context.Context, fs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, f := range fs {
		all.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err) // only the first counts
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// held changes the MTU under traffic: frames come all the time, and some just when the
// receiver and the DMA are off, before the reset. Of those that it holds the model drops the
// first when the DMA is started and the receiver is still off; no other one is lost.
func held(ctx context.Context, b *board) error {
	const changes, whileOff = 30, 8
	s, q := &sender{b: b, mtu: 600}, &sequence{mtu: 600}
	var total, off atomic.Int64
	total.Store(math.MaxInt64)
	room := make(chan struct{}, window) // one for each frame on its way
	enough := make(chan struct{})       // the MTU was changed for the last time
	ended := make(chan struct{})        // no frame follows
	err := together(ctx, func(ctx context.Context) error {
		defer close(ended)
		for {
			select {
			case <-enough:
				return nil
			case <-ctx.Done():
				return nil
			case room <- struct{}{}:
			}
			if err := s.send(ctx, 1); err != nil {
				return err
			}
		}
	}, func(ctx context.Context) error {
		for int64(q.next) < total.Load() {
			if _, err := take(ctx, b.mac, func(f *pagepool.Buf) error {
				select {
				case <-room:
				default: // there are more on their way, those of the time without a receiver
				}
				return q.add(bytesOf(f))
			}); err != nil {
				return fmt.Errorf("before frame %d, after %d gaps: %w; %+v", q.next, len(q.gaps), err, b.mac.Rx(0).Stats())
			}
		}
		return nil
	}, func(ctx context.Context) error {
		var failed error // in the calls of see, which are those of SetMTU
		stop := b.dev.see(func(a mmio.Access) {
			if a.Store && a.Off == regBusMode && a.Val&busSWR != 0 {
				off.Add(whileOff)
				failed = errors.Join(failed, s.send(ctx, whileOff))
			}
		})
		defer stop()
		for i := range changes {
			if err := errors.Join(b.mac.SetMTU(ctx, []int{9000, s.mtu, 1500}[i%3]), failed); err != nil {
				return err
			}
		}
		close(enough)
		select {
		case <-ended:
		case <-ctx.Done():
			return nil
		}
		// The last one wakes a receiver that has all others.
		total.Store(int64(s.sent()) + 1)
		return s.send(ctx, 1)
	})
	if err != nil {
		return err
	}
	if off.Load() < changes*whileOff {
		return fmt.Errorf("%d frames came while the receiver was off, want %d: SetMTU has reset no MAC", off.Load(), changes*whileOff)
	}
	if q.lost() != len(q.gaps) || len(q.gaps) > changes {
		return fmt.Errorf("frames are missing in %v, and the model drops one in each of %d changes", q.gaps, changes)
	}
	note.Printf(ctx, "%d frames, %d of them sent while the receiver was off, in %d changes of the MTU; %d dropped by the model", s.sent(), off.Load(), changes, q.lost())
	return b.received(s.sent()-q.lost(), 0)
}

// cut lets frames of five descriptors come where two are left: the model stores a part, marks
// the descriptor of the driver, and goes on behind it.
func cut(ctx context.Context, b *board) error {
	const rounds = 20
	regs, err := b.regs()
	if err != nil {
		return err
	}
	list, err := b.list(regRxList)
	if err != nil {
		return err
	}
	at, good := 0, 0 // the descriptor that the next frame begins in, and frames received
	put := func(n int) ([]byte, error) {
		f := sized(n, good+at)
		return f, b.wire.Send(ctx, f)
	}
	for round := range rounds {
		whole, err := put(8500)
		if err != nil {
			return err
		}
		if _, err = put(8400); err != nil {
			return err
		}
		mark := list.word(at+b.slots-1, 0)
		for barrier.LoadOwn(mark) != rxLS {
			regs.Load32(regStatus) // lets the model run
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("round %d: the descriptor of the driver is not marked: %w", round, err)
			}
		}
		if err := b.takeOne(ctx, whole); err != nil {
			return fmt.Errorf("round %d: the whole frame: %w", round, err)
		}
		// The next one lies behind the mark.
		at += b.slots
		for k := range 1 + round%3 {
			small, err := put(60 + k)
			if err == nil {
				err = b.takeOne(ctx, small)
			}
			if err != nil {
				return fmt.Errorf("round %d: behind the cut frame: %w", round, err)
			}
			at++
			good++
		}
		good++
		if err := b.received(good, round+1); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	note.Printf(ctx, "%d frames cut and counted, %d whole", rounds, good)
	return nil
}

// noRxBuffer takes the buffers of some descriptors away while the device owns them: the model
// tells of frames of no bytes there.
func noRxBuffer(ctx context.Context, b *board) error {
	const rounds = 50
	list, err := b.list(regRxList)
	if err != nil {
		return err
	}
	at, good := 0, 0
	for round := range rounds {
		// The descriptors from at on, but the last, belong to the device, which looks at
		// none before a frame comes.
		barrier.StoreOwn(list.word(at+1, 2), unmapped)
		for k := range 3 {
			f := sized(60+round, at+k)
			if err := b.wire.Send(ctx, f); err != nil {
				return err
			}
			if k == 1 {
				continue // goes nowhere
			}
			if err := b.takeOne(ctx, f); err != nil {
				return fmt.Errorf("round %d, frame %d: %w", round, k, err)
			}
			good++
		}
		at += 3
		if err := b.received(good, round+1); err != nil {
			return err
		}
	}
	if n := b.mac.Rx(0).Stats().Length; n != rounds {
		return fmt.Errorf("%d frames are counted for their length, want %d", n, rounds)
	}
	note.Printf(ctx, "%d frames without a buffer counted by their length, %d others received", rounds, good)
	return nil
}

// takeOne receives one frame, which is want.
func (b *board) takeOne(ctx context.Context, want []byte) error {
	for one := make([]*pagepool.Buf, 1); ; {
		if b.mac.Rx(0).Recv(one) == 1 {
			got := bytesOf(one[0])
			b.mac.Pool().Free(one[0])
			if err := same("received", number(want), got, want); err != nil {
				return err
			}
			// What was taken is given back now, not with a later frame.
			if n := b.mac.Rx(0).Recv(one); n != 0 {
				return errors.New("a frame came that was not sent")
			}
			return nil
		}
		if err := b.mac.Rx(0).Wait(ctx); err != nil {
			return fmt.Errorf("%w; %+v", err, b.mac.Rx(0).Stats())
		}
	}
}

// noCheckSequence sends long frames of one byte and short ones behind them: what the model
// puts behind a short one is the rest of the long one.
func noCheckSequence(ctx context.Context, b *board) error {
	const rounds = 50
	long := bytes.Repeat([]byte{0xaa}, 1514)
	copy(long, frame(smallest, 0)[:14])
	wrong := 0
	for i := range rounds {
		short := sized(64+i, i)
		for _, f := range [][]byte{long, short} {
			if err := b.wire.Send(ctx, f); err != nil {
				return err
			}
			one := make([]*pagepool.Buf, 1)
			for b.mac.Rx(0).Recv(one) == 0 {
				if err := b.mac.Rx(0).Wait(ctx); err != nil {
					return err
				}
			}
			got := bytesOf(one[0])
			const fcs = 4
			if one[0].SetLen(len(f) + fcs) {
				// IEEE 802.3 sends the check sequence with its first byte first.
				if binary.LittleEndian.Uint32(one[0].Bytes()[len(f):]) != crc32.ChecksumIEEE(f) {
					wrong++
				}
			}
			b.mac.Pool().Free(one[0])
			if err := same("received", i, got, f); err != nil {
				return err
			}
		}
	}
	if wrong == 0 {
		return errors.New("every check sequence was right: the model has changed")
	}
	note.Printf(ctx, "%d of %d frames had a wrong check sequence, and all came whole", wrong, 2*rounds)
	return b.received(2*rounds, 0)
}
