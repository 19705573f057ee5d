package sim

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// PcapOptions are the options of a [PcapWire].
type PcapOptions struct {
	// Clock gives the time of written frames, its start being the Unix epoch;
	// nil is the clock of the machine, starting now.
	Clock core.Clock
	// Format is the format of the written file.
	Format PcapFormat
}

// PcapWire is a wire that plays a capture file to a MAC and records what the
// MAC transmits. It is elastic. Notify does nothing: a frame is there whenever
// it is asked for until there are no more, and there is always room.
type PcapWire struct {
	clock  core.Clock
	rd     *PcapReader // nil: nothing to play
	closed atomic.Bool
	done   chan struct{}
	once   sync.Once

	wmu sync.Mutex  // guards wr: Close may come from another goroutine
	wr  *PcapWriter // nil: nothing is recorded

	emu        sync.Mutex
	rerr, werr error
}

// NewPcapWire plays in and records to out; either may be nil. It reads the
// header of in and returns a [*PcapError] if that is wrong. The wire reads in
// from Receive, so in should not block, and closes neither.
//
// Frames are given as they are in the file: a frame that was captured before
// its sender padded it, or that the capture cut, is short here too. An FCS that
// the file has is checked and taken off. What the MAC transmits is written
// without FCS, whether that was good or not.
func NewPcapWire(in io.Reader, out io.Writer, opts PcapOptions) (*PcapWire, error) {
	w := &PcapWire{clock: opts.Clock, done: make(chan struct{})}
	if w.clock == nil {
		w.clock = core.NewWallClock()
	}
	if in != nil {
		rd, err := NewPcapReader(in)
		if err != nil {
			return nil, err
		}
		w.rd = rd
	} else {
		w.drained()
	}
	if out != nil {
		w.wr = NewPcapWriter(out, opts.Format)
	}
	return w, nil
}

// Transmit implements [Wire]. A frame that cannot be written is dropped, see
// [PcapWire.Err].
func (w *PcapWire) Transmit(f Frame) bool {
	w.wmu.Lock()
	defer w.wmu.Unlock()
	if w.wr != nil && !w.closed.Load() {
		w.keep(&w.werr, w.wr.WriteFrame(w.clock.Now(), f.Data))
	}
	return true
}

// Receive implements [Wire].
func (w *PcapWire) Receive() (Frame, bool) {
	if w.rd == nil || w.closed.Load() {
		return Frame{}, false
	}
	rec, err := w.rd.Next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			w.keep(&w.rerr, err)
		}
		w.drained()
		return Frame{}, false
	}
	if w.rd.FCSLen() == 0 {
		return Frame{Data: rec.Data}, true
	}
	return pcapCheckFCS(rec), true
}

// pcapCheckFCS takes the FCS off. A capture that cut the frame may have cut the
// FCS or a part of it; nothing is known about it then.
func pcapCheckFCS(rec PcapRecord) Frame {
	n := uint64(len(rec.Data))
	orig := max(uint64(rec.OrigLen), n, crc32.Size) // some writers leave OrigLen at 0
	payload := min(n, orig-crc32.Size)
	f := Frame{Data: rec.Data[:payload]}
	if n == payload+crc32.Size {
		// IEEE 802.3, 3.2.9: in a capture the FCS stands least significant byte first.
		f.BadFCS = binary.LittleEndian.Uint32(rec.Data[payload:]) != crc32.ChecksumIEEE(f.Data)
	}
	return f
}

// Elastic implements [Wire].
func (w *PcapWire) Elastic() bool { return true }

// Notify implements [Wire].
func (w *PcapWire) Notify(func()) {}

// Close implements [Wire]: it writes what is buffered and returns the error of
// the recording, if there is one.
func (w *PcapWire) Close() error {
	w.wmu.Lock()
	defer w.wmu.Unlock()
	if !w.closed.Swap(true) && w.wr != nil {
		w.keep(&w.werr, w.wr.Flush())
	}
	w.drained()
	w.emu.Lock()
	defer w.emu.Unlock()
	return w.werr
}

// Done is closed when Receive found the end of the played file, whole or cut,
// and when the wire is closed.
func (w *PcapWire) Done() <-chan struct{} { return w.done }

// Drained reports whether [PcapWire.Done] is closed.
func (w *PcapWire) Drained() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Err returns what ended the played file before its end and what ended the
// recording, joined; nil while there is no error. It may be called from any
// goroutine.
func (w *PcapWire) Err() error {
	w.emu.Lock()
	defer w.emu.Unlock()
	return errors.Join(w.rerr, w.werr)
}

func (w *PcapWire) keep(at *error, err error) {
	if err == nil {
		return
	}
	w.emu.Lock()
	*at = err // reader and writer return their first error for ever
	w.emu.Unlock()
}

func (w *PcapWire) drained() { w.once.Do(func() { close(w.done) }) }
