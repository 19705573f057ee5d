package stmmac

import (
	"bufio"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/pcapng"
)

// Capture is a capture that [MAC.Capture] started. Its methods may be called by
// several goroutines.
type Capture struct {
	m    *MAC
	snap int    // bytes of a frame that are kept
	base uint64 // what is added to the MAC's clock, in nanoseconds
	out  *bufio.Writer
	file *pcapng.Writer
	taps []*tap // by the number of their interface

	start uint64
	wake  chan struct{} // holds one token: there is something to write
	done  chan struct{}
	err   error // valid when done

	mu    sync.Mutex // guards what follows and the counts of the taps; held for a copy at most
	slots []captured // a ring; the goroutine that writes reads those in use without the lock
	data  []byte     // room of each slot
	first int
	used  int
	over  bool // nothing is captured any more
	stop  uint64
}

// tap is what sees the frames of a queue.
type tap struct {
	c      *Capture
	number int // of the interface
	name   string
	rx     bool
	ch     int

	frames, dropped uint64
	lost            uint64 // dropped since the last that was not
}

// captured is a frame that waits for the writer.
type captured struct {
	tap       *tap
	time      uint64
	lost      uint64 // frames of the queue that were dropped before it
	kept, len int    // bytes
	bad       bool   // the device found a checksum wrong
}

// badChecksum is the comment of a frame with [pagepool.RxCsumBad].
const badChecksum = "the device found a wrong checksum"

// room is the size of a slot in bytes: the tags of a frame are put among its bytes
// in there.
func (c *Capture) room() int { return c.snap + core.MaxTags }

func (c *Capture) stamp(now time.Duration) uint64 { return c.base + uint64(now) }

// retap makes every queue show its frames to the captures that are there now. Who
// sleeps looks again: a queue that is held for a moment tells nobody that it is
// ready. The caller holds m.mu, and the MAC is not closed.
func (m *MAC) retap() {
	for i, q := range m.rx {
		if q.ring.Held() || !q.ring.Hold() {
			continue // the MAC is down for good
		}
		q.ring.SetFilter(q.seenBy(m.tapsOf(true, i)))
		q.ring.Resume()
		q.kick()
	}
	for i, q := range m.tx {
		if q.ring.Held() || !q.ring.Hold() {
			continue
		}
		q.ring.SetTap(m.sentTo(m.tapsOf(false, i)))
		q.ring.Resume()
		q.kick()
	}
}

// tapsOf are the taps of all captures on a queue.
func (m *MAC) tapsOf(rx bool, ch int) (l []*tap) {
	for _, c := range m.captures {
		for _, t := range c.taps {
			if t.rx == rx && t.ch == ch {
				l = append(l, t)
			}
		}
	}
	return l
}

// seenBy is what Recv calls for taps and the program, or nil if there is neither.
func (q *RxQueue) seenBy(taps []*tap) func([]*pagepool.Buf) int {
	pass := q.filter
	if q.program == nil {
		pass = nil
	}
	if len(taps) == 0 {
		return pass
	}
	clock := q.mac.cfg.Clock
	return func(bufs []*pagepool.Buf) int {
		now := clock.Now()
		for _, t := range taps {
			for _, b := range bufs {
				t.take(b, now)
			}
		}
		if pass == nil {
			return len(bufs)
		}
		return pass(bufs)
	}
}

// sentTo is what Send calls for taps, or nil if there are none.
func (m *MAC) sentTo(taps []*tap) func(*pagepool.Buf) {
	if len(taps) == 0 {
		return nil
	}
	clock := m.cfg.Clock
	return func(b *pagepool.Buf) {
		now := clock.Now()
		for _, t := range taps {
			t.take(b, now)
		}
	}
}

// take captures a frame, or drops it if there is no room. It runs on the goroutine
// of the queue. A call of Recv that began before the capture ended may come late.
func (t *tap) take(b *pagepool.Buf, now time.Duration) {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	t.frames++
	if c.used == len(c.slots) {
		t.dropped++
		t.lost++
		return
	}
	i := (c.first + c.used) % len(c.slots)
	s := &c.slots[i]
	*s = captured{tap: t, time: c.stamp(now), lost: t.lost, bad: b.Flags&pagepool.RxCsumBad != 0}
	t.lost = 0
	s.kept, s.len = c.copy(c.data[i*c.room():][:c.room()], b)
	c.used++
	c.signal()
}

// copy copies the start of a frame to p, with the tags that are beside it, and
// returns how many bytes that are and how many the frame has.
func (c *Capture) copy(p []byte, b *pagepool.Buf) (kept, size int) {
	const addrs = 12 // bytes before the tags
	var tags [core.MaxTags]byte
	n := core.PutTags(tags[:], &b.Meta)
	size = b.FrameLen() + n
	b.CopyTo(p[n:])
	if n > 0 {
		copy(p[:min(addrs, len(p))], p[n:])
		if len(p) > addrs {
			copy(p[addrs:], tags[:n])
		}
	}
	return min(size, c.snap), size
}

func (c *Capture) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end keeps further frames out and lets the goroutine finish.
func (c *Capture) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over, c.stop = true, c.stamp(c.m.cfg.Clock.Now())
	}
	c.signal()
}

// run writes what was captured until the capture is over.
func (c *Capture) run() {
	defer close(c.done)
	if err := c.write(); err != nil {
		c.err = c.m.wrap("capture", err)
		c.end()
		c.m.detach(c)
		c.m.log().Warn().Err(err).Msg("capture")
	}
}

func (c *Capture) write() error {
	for {
		c.mu.Lock()
		first, n, over := c.first, c.used, c.over
		c.mu.Unlock()
		switch {
		case n > 0:
			if err := c.writeFrame(first); err != nil {
				return err
			}
			c.mu.Lock()
			c.first = (first + 1) % len(c.slots)
			c.used--
			c.mu.Unlock()
		case over:
			return c.writeEnd()
		default:
			// Whoever reads the file while it grows sees all that there is.
			if err := c.out.Flush(); err != nil {
				return err
			}
			<-c.wake
		}
	}
}

// writeFrame writes the frame in a slot, which is the goroutine's until it is given
// back.
func (c *Capture) writeFrame(i int) error {
	s := &c.slots[i]
	p := pcapng.Packet{
		Interface: s.tap.number, Time: s.time, Data: c.data[i*c.room():][:s.kept], Len: s.len,
		Direction: pcapng.Outbound, Dropped: s.lost,
	}
	if s.tap.rx {
		p.Direction = pcapng.Inbound
	}
	if s.bad {
		p.Comment = badChecksum
	}
	return c.file.Packet(&p)
}

// writeEnd writes the counts.
func (c *Capture) writeEnd() error {
	for _, t := range c.taps {
		// Nobody counts any more.
		s := pcapng.Statistics{Time: c.stop, Start: c.start, End: c.stop, Received: t.frames, Dropped: t.dropped}
		if err := c.file.Statistics(t.number, s); err != nil {
			return err
		}
	}
	return c.out.Flush()
}
