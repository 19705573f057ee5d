package stmmac

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/pcapng"
)

// CaptureOptions say what [MAC.Capture] captures. The zero value is all frames of
// all queues.
type CaptureOptions struct {
	// Rx and Tx are the queues by number. If both are nil all are captured.
	Rx, Tx []int
	// SnapLen is how many bytes of each frame are kept, up to 9022; 0: all.
	SnapLen int
	// Frames is how many frames wait for the writer at most, up to 65536; 0: 1024.
	// They take SnapLen bytes each.
	Frames int
	// Start is what the MAC's clock shows now, in the time of the file; zero is
	// time.Now().
	Start time.Time
}

// Limits of CaptureOptions.
const (
	captureFrames    = 1024
	maxCaptureFrames = 1 << 16
	maxMTU           = 9000
)

// maxSnapLen is the longest frame without FCS.
var maxSnapLen = core.MaxFrameLen(maxMTU) - core.FCSLen

// CaptureStats count the frames of a capture.
type CaptureStats struct {
	Frames  uint64 // that the queues had
	Dropped uint64 // those of them for which there was no room, and which are not in the file
}

// Capture starts to write the frames that pass queues to w, in the pcapng format
// (draft-ietf-opsawg-pcapng): an interface for each queue, named as in "NAME rx0",
// times in nanoseconds, the direction of each frame, and how many were lost before
// it and in all. Several captures may run at once, and come and go while there is
// traffic.
//
// Received frames are captured before the program sees them, but not those that
// the device or the driver has dropped as damaged; a comment tells a checksum that
// the device found wrong. Frames to send are captured when Send takes them: the
// checksums of a frame with [pagepool.TxCsum] are not in it yet. Tags that are
// beside a frame are captured where they belong.
//
// A queue never waits for w: frames are copied, and counted as dropped when there
// is no room for them. They are written from a goroutine of the capture, which ends
// with Close, with the MAC, or with the first error of w. A change of the MAC and a
// recovery do not end it. An error is os.ErrInvalid for options that are out of
// range.
func (m *MAC) Capture(w io.Writer, o CaptureOptions) (*Capture, error) {
	const op = "capture"
	c, err := m.newCapture(w, &o)
	if err != nil {
		return nil, m.wrap(op, err)
	}
	m.mu.Lock()
	err = m.alive(op)
	m.mu.Unlock()
	if err != nil {
		return nil, err // and nothing was written
	}
	if err := c.writeHead(w); err != nil {
		return nil, m.wrap(op, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return nil, err
	}
	m.captures = append(m.captures, c)
	m.retap()
	go pprof.Do(context.Background(), pprof.Labels("dev", m.name(), "task", op), func(context.Context) { c.run() })
	return c, nil
}

// newCapture makes what has to be checked and allocated.
func (m *MAC) newCapture(w io.Writer, o *CaptureOptions) (*Capture, error) {
	if w == nil {
		return nil, fmt.Errorf("no writer: %w", os.ErrInvalid)
	}
	for _, l := range []struct {
		what   string
		v, max int
	}{{"SnapLen", o.SnapLen, maxSnapLen}, {"Frames", o.Frames, maxCaptureFrames}} {
		if l.v < 0 || l.v > l.max {
			return nil, fmt.Errorf("%s %d is not in 0..%d: %w", l.what, l.v, l.max, os.ErrInvalid)
		}
	}
	rx, tx := o.Rx, o.Tx
	if rx == nil && tx == nil {
		rx, tx = numbers(len(m.rx)), numbers(len(m.tx))
	}
	for _, l := range []struct {
		what string
		list []int
		have int
	}{{"receive", rx, len(m.rx)}, {"transmit", tx, len(m.tx)}} {
		for i, q := range l.list {
			if q < 0 || q >= l.have || slices.Contains(l.list[:i], q) {
				return nil, fmt.Errorf("%s queue %d is not one of %d, or there twice: %w", l.what, q, l.have, os.ErrInvalid)
			}
		}
	}
	start := o.Start
	if start.IsZero() {
		start = time.Now()
	}
	if start.Before(time.Unix(0, 0)) {
		return nil, fmt.Errorf("start %v is before 1970: %w", start, os.ErrInvalid)
	}
	c := &Capture{m: m, snap: o.SnapLen, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if c.snap == 0 {
		c.snap = maxSnapLen
	}
	n := o.Frames
	if n == 0 {
		n = captureFrames
	}
	now := m.cfg.Clock.Now()
	c.base = uint64(start.UnixNano()) - uint64(now)
	c.start = c.stamp(now)
	c.slots = make([]captured, n)
	c.data = make([]byte, n*c.room())
	for _, q := range rx {
		c.taps = append(c.taps, &tap{c: c, number: len(c.taps), name: fmt.Sprintf("%s rx%d", m.name(), q), rx: true, ch: q})
	}
	for _, q := range tx {
		c.taps = append(c.taps, &tap{c: c, number: len(c.taps), name: fmt.Sprintf("%s tx%d", m.name(), q), ch: q})
	}
	return c, nil
}

func numbers(n int) (l []int) {
	for i := range n {
		l = append(l, i)
	}
	return l
}

// writeHead writes what stands before the frames.
func (c *Capture) writeHead(w io.Writer) (err error) {
	c.out = bufio.NewWriterSize(w, 1<<16)
	if c.file, err = pcapng.NewWriter(c.out, "gostmmac"); err != nil {
		return err
	}
	addr, link := c.m.HardwareAddr(), c.m.Link()
	for _, t := range c.taps {
		i := pcapng.Interface{Name: t.name, Addr: addr, SnapLen: uint32(c.snap)}
		if link.Up {
			i.Speed = uint64(link.Speed) * 1_000_000
		}
		if _, err := c.file.Interface(i); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// Stats returns the counts. Any goroutine may call it.
func (c *Capture) Stats() (s CaptureStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.taps {
		s.Frames += t.frames
		s.Dropped += t.dropped
	}
	return s
}

// Done is closed when the capture has ended and nothing more is written: after
// Close, the end of the MAC, or an error of the writer.
func (c *Capture) Done() <-chan struct{} { return c.done }

// Err says why a capture that is done ended early, or is nil.
func (c *Capture) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the capture: no frame is captured any more, and those that wait are
// written with the counts at the end. It returns when the writer has taken them:
// close the writer first if it may block for ever. It does not close the writer.
// The error is that of the writer. It is safe to call twice and returns the same
// then.
func (c *Capture) Close() error {
	c.m.detach(c)
	c.end()
	<-c.done
	return c.err
}

// detach takes a capture away from the queues.
func (m *MAC) detach(c *Capture) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.captures, c)
	if i < 0 {
		return
	}
	m.captures = slices.Delete(m.captures, i, i+1)
	if !m.closed() {
		m.retap()
	}
}

// endCaptures ends all captures of a MAC whose rings have ended. It does not wait
// for their writers.
func (m *MAC) endCaptures() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.captures {
		c.end()
	}
}
