package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// EtherTypes: that of frames of ours is for local experiments (IEEE 802, clause 9.2.4).
const (
	experiment = 0x88b5
	vlanTag    = 0x8100
)

const (
	headerLen = 14
	shortest  = 60 // bytes of a frame on the wire, without its FCS
)

// Wire is what whole frames without FCS go to and come from: an interface of the kernel, or
// a MAC that a program drives. One goroutine uses it, but for Close.
type Wire interface {
	Send(frame []byte) error
	// Recv waits for a frame and returns it in buf.
	Recv(buf []byte) (frame []byte, err error)
	// SetReadDeadline makes Recv end at a time; the zero time is none.
	SetReadDeadline(t time.Time) error
	// Close ends Recv. It is called twice.
	Close() error
}

var _ Wire = (*netns.Ether)(nil)

// Frames sends frames of every length and compares what a [Reflect] at the other end sends
// back, byte by byte.
type Frames struct {
	returns[FramesResult]
	Space     string
	Interface string
	To        string // the MAC address of the other end
	// Min and Max are lengths in bytes without FCS, 14 and more. Frames that are longer than
	// the MTU and its header get a VLAN tag, which Linux sends beyond that.
	Min, Max int
	Step     int `json:",omitempty"` // 0 is 1
	Seed     uint64
	// Window is how many frames are under way at most, 0 is 1: with one none is lost for want
	// of room, wherever it passes. Those that are under way may come back in any order.
	Window int `json:",omitempty"`
	// Patience is how long a frame may take to come back, in milliseconds; 0 is 30 seconds.
	Patience int `json:",omitempty"`
}

// FramesResult is the result of Frames.
type FramesResult struct {
	Frames int
	Padded int // came back longer, filled with zeros up to 60 bytes
}

// Name implements Job.
func (Frames) Name() string { return "frames" }

func (j Frames) run(r run) (any, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	e, i, err := openEther(r, j.Space, j.Interface)
	if err != nil {
		return nil, err
	}
	return j.On(r.ctx, e, i.HardwareAddr, i.MTU)
}

// check looks at the arguments.
func (j Frames) check() error {
	if to, err := net.ParseMAC(j.To); err != nil || len(to) != 6 {
		return fmt.Errorf("the MAC address %q: %w", j.To, os.ErrInvalid)
	}
	if j.Min < headerLen || j.Max < j.Min || j.Step < 0 || j.Window < 0 {
		return fmt.Errorf("lengths of %d to %d by %d, %d at a time: %w", j.Min, j.Max, j.Step, j.Window, os.ErrInvalid)
	}
	return nil
}

// On does the job on a wire, which it closes, of a station with an address and an MTU in
// bytes: Space and Interface do not count.
func (j Frames) On(ctx context.Context, on Wire, from net.HardwareAddr, mtu int) (FramesResult, error) {
	if err := j.check(); err != nil {
		return FramesResult{}, errors.Join(err, on.Close())
	}
	to, _ := net.ParseMAC(j.To)
	stop := context.AfterFunc(ctx, func() { _ = on.Close() }) // Recv tells
	defer stop()
	w := &window{Frames: j, wire: on, mtu: mtu, from: from, to: to, patience: time.Duration(j.Patience) * time.Millisecond, buf: make([]byte, j.Max+shortest+64)}
	if j.Patience <= 0 {
		w.patience = 30 * time.Second
	}
	err := errors.Join(w.run(), on.Close())
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return w.result, err
}

// window sends frames and keeps what it expects of those that are under way.
type window struct {
	Frames
	wire     Wire
	mtu      int
	from, to net.HardwareAddr
	patience time.Duration

	wants  [][]byte // the oldest first
	result FramesResult
	buf    []byte
}

func (w *window) run() error {
	next := w.Min
	most := max(w.Window, 1)
	for next <= w.Max || len(w.wants) > 0 {
		// Half of them at once: a driver and a stack then have less to do for each.
		for fill := len(w.wants) <= most/2; fill && next <= w.Max && len(w.wants) < most; next += max(w.Step, 1) {
			f := testFrame(w.to, w.from, next, next > w.mtu+headerLen, w.Seed)
			if err := w.wire.Send(f); err != nil {
				return fmt.Errorf("send %d bytes: %w", next, err)
			}
			w.wants = append(w.wants, mirrored(f))
		}
		if err := w.wire.SetReadDeadline(time.Now().Add(w.patience)); err != nil {
			return err
		}
		if err := w.back(); err != nil {
			return err
		}
	}
	return nil
}

// back waits for a frame that was sent and compares it.
func (w *window) back() error {
	for {
		got, err := w.wire.Recv(w.buf)
		if err != nil {
			return w.at(0, err)
		}
		if !ours(got) {
			continue // what else the stack says
		}
		i, padded := w.find(got)
		if err := differ(w.wants[i], got, padded); err != nil {
			return w.at(i, err)
		}
		w.wants = slices.Delete(w.wants, i, i+1)
		w.result.Frames++
		if padded {
			w.result.Padded++
		}
		return nil
	}
}

// at tells which of the frames under way an error is about.
func (w *window) at(i int, err error) error {
	return fmt.Errorf("the frame of %d bytes, behind %d others: %w", len(w.wants[i]), w.result.Frames+i, err)
}

// find returns which frame under way came back, and whether it was padded: one that is alike,
// or else one as long, or else the oldest.
func (w *window) find(got []byte) (i int, padded bool) {
	for i, want := range w.wants {
		if bytes.Equal(got, want) {
			return i, false
		}
		if n := len(want); len(got) > n && len(got) == shortest && bytes.HasPrefix(got, want) && len(bytes.Trim(got[n:], "\x00")) == 0 {
			return i, true
		}
	}
	return max(slices.IndexFunc(w.wants, func(want []byte) bool { return len(want) == len(got) }), 0), false
}

// differ is the error of a frame that did not come back as it should.
func differ(want, got []byte, padded bool) error {
	if len(got) != len(want) && !padded {
		return fmt.Errorf("%d bytes came back", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("byte %d came back as %#02x instead of %#02x", i, got[i], want[i])
		}
	}
	return nil
}

// openEther opens an interface for whole frames.
func openEther(r run, space, name string) (*netns.Ether, *net.Interface, error) {
	n, err := r.w.space(space)
	if err != nil {
		return nil, nil, err
	}
	var i *net.Interface
	err = n.Do(func() (err error) {
		i, err = net.InterfaceByName(name)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	e, err := n.OpenEther(name)
	return e, i, err
}

// testFrame is a frame of n bytes whose payload its length and the seed determine.
func testFrame(to, from net.HardwareAddr, n int, tagged bool, seed uint64) []byte {
	f := make([]byte, n)
	copy(f, to)
	copy(f[6:], from)
	at := 12
	if tagged {
		const id = 5
		binary.BigEndian.PutUint16(f[at:], vlanTag)
		binary.BigEndian.PutUint16(f[at+2:], id)
		at += 4
	}
	binary.BigEndian.PutUint16(f[at:], experiment)
	_, _ = newPattern(seed, uint64(n)).Read(f[at+2:]) // never fails
	return f
}

// ours says whether a frame is one of a test, with a VLAN tag or without.
func ours(f []byte) bool {
	at := 12
	if len(f) >= at+2 && binary.BigEndian.Uint16(f[at:]) == vlanTag {
		at += 4
	}
	return len(f) >= at+2 && binary.BigEndian.Uint16(f[at:]) == experiment
}

// mirrored is a frame with its addresses exchanged.
func mirrored(f []byte) []byte {
	m := bytes.Clone(f)
	copy(m, f[6:12])
	copy(m[6:], f[:6])
	return m
}

// Reflect sends the frames of tests back to where they come from, until it is cancelled,
// which is how it ends, or has sent Count of them.
type Reflect struct {
	returns[ReflectResult]
	Space     string
	Interface string
	Count     int // 0 is without end
}

// ReflectResult is the result of Reflect.
type ReflectResult struct{ Frames int }

// Name implements Job.
func (Reflect) Name() string { return "reflect" }

// Ready is the line that Reflect logs when no frame is missed any more.
const Ready = "ready"

func (j Reflect) run(r run) (any, error) {
	e, _, err := openEther(r, j.Space, j.Interface)
	if err != nil {
		return nil, err
	}
	result, err := j.On(r.ctx, e, func() { r.log(Ready) })
	if err != nil {
		return nil, err
	}
	return result, nil
}

// On does the job on a wire, which it closes: Space and Interface do not count. It calls
// ready when no frame is missed any more. The result counts those before an error too.
func (j Reflect) On(ctx context.Context, w Wire, ready func()) (result ReflectResult, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.Close() }) // Recv tells
	defer stop()
	ready()
	buf := make([]byte, 1<<16)
	for j.Count == 0 || result.Frames < j.Count {
		f, err := w.Recv(buf)
		if err == nil && ours(f) {
			if err = w.Send(mirrored(f)); err == nil {
				result.Frames++
			}
		}
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return result, errors.Join(err, w.Close())
		}
	}
	return result, w.Close()
}
