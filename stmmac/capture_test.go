package stmmac_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/internal/pcapngtest"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// epoch is when the captures of the tests start.
var epoch = time.Unix(1_700_000_000, 500)

// Directions of epb_flags.
const (
	inbound  = 1
	outbound = 2
)

// capture starts a capture into a buffer; its end is the returned function, which
// gives the file.
func (r *rig) capture(o stmmac.CaptureOptions) (c *stmmac.Capture, end func() *pcapngtest.File) {
	r.Helper()
	if o.Start.IsZero() {
		o.Start = epoch
	}
	var file bytes.Buffer
	c, err := r.mac.Capture(&file, o)
	r.must(err)
	return c, func() *pcapngtest.File {
		r.Helper()
		r.must(c.Close())
		r.must(c.Close())
		r.must(c.Err())
		<-c.Done()
		f, err := pcapngtest.Read(file.Bytes())
		r.must(err)
		return f
	}
}

// seen are the frames of an interface.
func seen(f *pcapngtest.File, name string) (l [][]byte) {
	for _, p := range f.Packets {
		if f.Interfaces[p.Interface].Name == name {
			l = append(l, p.Data)
		}
	}
	return l
}

// TestCapture captures both directions of two queues.
func TestCapture(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 2}, opts: []stmmac.Option{stmmac.WithQueues(2, 2)}})
	r.clock.Advance(time.Second)
	r.flows(1) // before
	c, end := r.capture(stmmac.CaptureOptions{})
	tagged := frame(100, 2)
	copy(tagged[12:], []byte{0x81, 0, 7 << 5, 5}) // the highest priority: queue 1
	r.clock.Advance(time.Millisecond)
	r.wire.deliver(frame(60, 1), tagged)
	r.same(r.recv(1), frames(1, 60, 1))
	r.clock.Advance(time.Microsecond)
	r.same(r.recvQ(1, 1), [][]byte{tagged})
	r.clock.Advance(time.Nanosecond)
	r.send(frame(61, 3))
	r.clock.Advance(time.Nanosecond)
	n, err := r.mac.Tx(1).Send([]*pagepool.Buf{r.buf(frame(1514, 4), 500), r.buf(frame(14, 5), 14), r.buf(frame(62, 6), 62)})
	if n != 3 || err != nil {
		t.Fatal(n, err)
	}
	r.step()
	r.clock.Advance(time.Second)
	if s := c.Stats(); s != (stmmac.CaptureStats{Frames: 6}) {
		t.Errorf("%+v", s)
	}
	f := end()
	r.flows(7) // behind
	r.onlyRx()

	start := uint64(epoch.UnixNano())
	last := start + 1_001_001_002
	if len(f.Interfaces) != 4 || f.App != "gostmmac" {
		t.Fatalf("%+v", f)
	}
	for i, name := range []string{"sim rx0", "sim rx1", "sim tx0", "sim tx1"} {
		x := f.Interfaces[i]
		frames := []uint64{1, 1, 1, 3}[i]
		if x.Name != name || !bytes.Equal(x.Addr, ownMAC) || x.Speed != 1e9 || x.SnapLen != 9022 || !x.Nanoseconds ||
			*x.Stats != (pcapngtest.Stats{Time: last, Start: start, End: last, Received: frames}) {
			t.Errorf("%+v %+v", x, x.Stats)
		}
	}
	at := start + 1_000_000
	want := []pcapngtest.Packet{
		{Interface: 0, Time: at, Data: frame(60, 1), Flags: inbound},
		{Interface: 1, Time: at + 1000, Data: tagged, Flags: inbound},
		{Interface: 2, Time: at + 1001, Data: frame(61, 3), Flags: outbound},
		{Interface: 3, Time: at + 1002, Data: frame(1514, 4), Flags: outbound},
		{Interface: 3, Time: at + 1002, Data: frame(14, 5), Flags: outbound},
		{Interface: 3, Time: at + 1002, Data: frame(62, 6), Flags: outbound},
	}
	for i := range want {
		want[i].Len = len(want[i].Data)
	}
	if fmt.Sprint(f.Packets) != fmt.Sprint(want) {
		t.Errorf("\n%v\n%v", f.Packets, want)
	}
}

// TestCaptureSome captures the start of the frames of one queue, several captures
// at once, and each of them ends for itself.
func TestCaptureSome(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 2}, opts: []stmmac.Option{stmmac.WithQueues(2, 2)}})
	_, endRx := r.capture(stmmac.CaptureOptions{Rx: []int{0}, SnapLen: 20})
	_, endTx := r.capture(stmmac.CaptureOptions{Tx: []int{1, 0}})
	r.flows(1)
	all, endAll := r.capture(stmmac.CaptureOptions{})
	r.flows(2)
	rx := endRx()
	r.flows(3)
	tx := endTx()
	r.flows(4)
	if s := all.Stats(); s.Frames != 6 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
	last := endAll()
	r.flows(5)
	if len(rx.Interfaces) != 1 || len(rx.Packets) != 2 || rx.Packets[1].Len != 100 || !bytes.Equal(rx.Packets[1].Data, frame(100, 2)[:20]) {
		t.Errorf("%+v", rx)
	}
	if len(tx.Interfaces) != 2 || tx.Interfaces[0].Name != "sim tx1" {
		t.Errorf("%+v", tx.Interfaces)
	}
	r.same(seen(tx, "sim tx0"), [][]byte{frame(200, 1), frame(200, 2), frame(200, 3)})
	r.same(seen(last, "sim rx0"), [][]byte{frame(100, 2), frame(100, 3), frame(100, 4)})
	r.same(seen(last, "sim tx0"), [][]byte{frame(200, 2), frame(200, 3), frame(200, 4)})
}

// TestCaptureTags: tags beside a frame are captured where the other end has them,
// whatever is kept of it.
func TestCaptureTags(t *testing.T) {
	for _, snap := range []int{0, 1, 11, 12, 13, 15, 16, 19, 20, 21, 99} {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithConfig(func(c *stmmac.Config) { c.VLANStrip, c.VLANDouble = true, true })}})
		_, end := r.capture(stmmac.CaptureOptions{SnapLen: snap})
		var want [][]byte
		for i, tags := range []string{"", "\x81\x00\x60\x05", "\x81\x00\x20\x07\x81\x00\x40\x09"} {
			f := frame(100, uint64(i))
			want = append(want, slices.Concat(f[:12], []byte(tags), f[12:]))
		}
		r.wire.deliver(want...)
		r.step()
		bufs := make([]*pagepool.Buf, 8)
		n := r.mac.Rx(0).Recv(bufs)
		if n != 3 || bufs[2].FrameLen() != 100 || bufs[2].Flags&pagepool.InnerVLANTag == 0 {
			t.Fatalf("%d frames", n)
		}
		// The driver inserts 0x88a8, the device 0x8100.
		bufs[2].Flags |= pagepool.VLANService
		sent := slices.Clone(want)
		sent[2] = bytes.Clone(want[2])
		copy(sent[2][12:], []byte{0x88, 0xa8})
		if n, err := r.mac.Tx(0).Send(bufs[:n]); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		r.step()
		r.same(r.wire.take(), sent)
		f := end()
		if len(f.Packets) != 6 {
			t.Fatalf("%d packets", len(f.Packets))
		}
		for i, p := range f.Packets {
			w := slices.Concat(want, sent)[i]
			kept := w
			if snap > 0 {
				kept = w[:min(snap, len(w))]
			}
			if p.Len != len(w) || !bytes.Equal(p.Data, kept) {
				t.Errorf("snap %d, packet %d: %d bytes % x, want %d bytes % x", snap, i, p.Len, p.Data, len(w), kept)
			}
		}
		r.onlyRx()
	}
}

// TestCaptureChecksum: what the device found wrong is said.
func TestCaptureChecksum(t *testing.T) {
	r := newRig(t, rigConfig{})
	_, end := r.capture(stmmac.CaptureOptions{})
	f := frame(60, 0)
	copy(f[12:], []byte{8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0}) // no header has the checksum 0 here
	r.wire.deliver(f, frame(60, 1))
	r.recv(2)
	got := end()
	if len(got.Packets) != 2 || got.Packets[0].Comment == "" || got.Packets[1].Comment != "" {
		t.Errorf("%+v", got.Packets)
	}
}

// TestCaptureProgram: a capture sees frames as they arrived, also those that the
// program drops.
func TestCaptureProgram(t *testing.T) {
	odd := programFunc(func(b *pagepool.Buf) stmmac.Verdict {
		if binary.BigEndian.Uint64(b.Bytes()[14:])%2 == 0 {
			return stmmac.VerdictDrop
		}
		b.TrimFront(20)
		return stmmac.VerdictPass
	})
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithProgram(odd)}})
	pass := func(seq uint64) {
		t.Helper()
		r.wire.deliver(frames(4, 80, seq)...)
		if got := r.recv(4); len(got) != 2 || !bytes.Equal(got[0], frame(80, seq+1)[20:]) {
			t.Errorf("%d frames", len(got))
		}
	}
	pass(0)
	_, end := r.capture(stmmac.CaptureOptions{})
	pass(10)
	f := end()
	pass(20)
	r.same(seen(f, "sim rx0"), frames(4, 80, 10))
	r.onlyRx()
}

// gatedWriter is a writer that blocks: each call says that it has begun and waits
// for its end.
type gatedWriter struct {
	mu    sync.Mutex
	b     bytes.Buffer
	begin chan struct{}
	end   chan error
}

func newGatedWriter() *gatedWriter {
	return &gatedWriter{begin: make(chan struct{}), end: make(chan error)}
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	w.begin <- struct{}{}
	if err := <-w.end; err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// pass lets n calls through.
func (w *gatedWriter) pass(n int) {
	for range n {
		<-w.begin
		w.end <- nil
	}
}

// TestCaptureBlocked: a writer that blocks stops no queue; what there is no room
// for is dropped, and the file says how much.
func TestCaptureBlocked(t *testing.T) {
	r := newRig(t, rigConfig{})
	w := newGatedWriter()
	go w.pass(1) // the head
	c, err := r.mac.Capture(w, stmmac.CaptureOptions{Frames: 4, Start: epoch})
	r.must(err)
	r.send(frame(60, 0))
	<-w.begin // the writer has taken the frame, and sits on it
	for i := range uint64(10) {
		r.wire.deliver(frame(60, 10+i))
		r.same(r.recv(1), frames(1, 60, 10+i))
		if i == 1 {
			r.send(frame(60, 1))
		}
	}
	r.step()
	r.same(r.wire.take(), frames(2, 60, 0))
	if s := c.Stats(); s != (stmmac.CaptureStats{Frames: 12, Dropped: 7}) {
		t.Errorf("%+v", s)
	}
	w.end <- nil
	w.pass(1) // the four
	r.wire.deliver(frame(60, 30))
	r.recv(1)
	w.pass(1)
	go w.pass(1) // the end
	r.must(c.Close())
	f, err := pcapngtest.Read(w.b.Bytes())
	r.must(err)
	r.same(seen(f, "sim rx0"), append(frames(3, 60, 10), frame(60, 30)))
	r.same(seen(f, "sim tx0"), frames(2, 60, 0))
	for i, p := range f.Packets {
		if want := []uint64{0, 0, 0, 0, 0, 7}[i]; p.Dropped != want {
			t.Errorf("%d frames were lost before packet %d, want %d", p.Dropped, i, want)
		}
	}
	if rx := f.Interfaces[0].Stats; rx.Received != 11 || rx.Dropped != 7 {
		t.Errorf("%+v", rx)
	}
	r.onlyRx()
}

// TestCaptureWriteError: the error of a writer ends its capture alone.
func TestCaptureWriteError(t *testing.T) {
	r := newRig(t, rigConfig{})
	if _, err := r.mac.Capture(failWriter{}, stmmac.CaptureOptions{}); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	_, end := r.capture(stmmac.CaptureOptions{})
	w := newGatedWriter()
	go w.pass(1)
	c, err := r.mac.Capture(w, stmmac.CaptureOptions{})
	r.must(err)
	r.must(c.Err())
	r.flows(1)
	<-w.begin
	w.end <- io.ErrShortWrite
	<-c.Done()
	mustFail(t, c.Err(), io.ErrShortWrite, "capture")
	r.flows(2)
	mustFail(t, c.Close(), io.ErrShortWrite, "capture")
	if s := c.Stats(); s.Frames < 1 || s.Frames > 2 {
		t.Errorf("%+v", s)
	}
	f := end()
	r.same(seen(f, "sim rx0"), [][]byte{frame(100, 1), frame(100, 2)})
}

type failWriter struct{}

func (failWriter) Write([]byte) (int, error) { return 0, os.ErrPermission }

// TestCaptureRebuild: a capture goes on over a change of the MTU, rings of another
// size and a recovery, and has every frame once.
func TestCaptureRebuild(t *testing.T) { onEach(t, testCaptureRebuild) }

func testCaptureRebuild(t *testing.T) {
	r := newRig(t, rigConfig{wrap: polled})
	_, end := r.capture(stmmac.CaptureOptions{})
	var rx, tx [][]byte
	seq := uint64(0)
	traffic := func() {
		seq += 10
		r.wire.deliver(frames(3, 60, seq)...)
		r.step() // received, and taken by nobody yet
		r.send(frame(70, seq))
		rx, tx = append(rx, frames(3, 60, seq)...), append(tx, frame(70, seq))
	}
	traffic()
	r.must(r.mac.SetMTU(t.Context(), 3000))
	if got := r.recv(3); len(got) != 3 {
		t.Fatalf("%d frames", len(got))
	}
	traffic()
	r.must(r.mac.SetRings(t.Context(), 64, 128))
	r.recv(3)
	r.wire.deliver(frame(3014, 1000))
	r.recv(1)
	rx = append(rx, frame(3014, 1000))
	r.failOnce(func(_ int, write bool) bool { return write })
	r.wire.deliver(frame(60, 2000)) // lost in the bus error
	r.step()
	r.pass(time.Second)
	if recoveries(r.mac) != 1 {
		t.Fatalf("%d recoveries", recoveries(r.mac))
	}
	r.recv(1)
	traffic()
	r.recv(3)
	f := end()
	got := seen(f, "sim rx0")
	got = slices.DeleteFunc(got, func(b []byte) bool { return bytes.Equal(b, frame(60, 2000)) })
	r.same(got, rx)
	r.same(seen(f, "sim tx0"), tx)
}

// TestCaptureEnds: a MAC that is closed ends its captures, with what they have, and
// a MAC that is closed or down takes none.
func TestCaptureEnds(t *testing.T) {
	r := newRig(t, rigConfig{})
	c, end := r.capture(stmmac.CaptureOptions{})
	r.flows(1)
	r.must(r.mac.Close())
	<-c.Done()
	f := end()
	r.same(seen(f, "sim rx0"), frames(1, 100, 1))
	if f.Interfaces[0].Stats == nil {
		t.Error("no counts")
	}
	var file bytes.Buffer
	_, err := r.mac.Capture(&file, stmmac.CaptureOptions{})
	mustFail(t, err, stmmac.ErrClosed, "capture")

	r.open()
	c, end = r.capture(stmmac.CaptureOptions{})
	r.dev.SetClockGated(true)
	mustFail(t, r.mac.SetMTU(t.Context(), 2000), stmmac.ErrNoClock) // and it stays down
	r.dev.SetClockGated(false)
	_, err = r.mac.Capture(&file, stmmac.CaptureOptions{})
	mustFail(t, err, stmmac.ErrNoClock)
	end()
	if n := r.mac.Rx(0).Recv(make([]*pagepool.Buf, 1)); n != 0 || file.Len() != 0 {
		t.Errorf("a MAC that is down gave %d frames; %d bytes were written", n, file.Len())
	}
	if s := c.Stats(); s != (stmmac.CaptureStats{}) {
		t.Errorf("%+v", s)
	}
}

func TestCaptureBadOptions(t *testing.T) {
	r := newRig(t, rigConfig{})
	for _, o := range []stmmac.CaptureOptions{
		{Rx: []int{1}}, {Rx: []int{-1}}, {Tx: []int{1}}, {Tx: []int{0, 0}}, {SnapLen: -1}, {SnapLen: 9023},
		{Frames: -1}, {Frames: 1<<16 + 1}, {Start: time.Unix(-1, 0)},
	} {
		var file bytes.Buffer
		_, err := r.mac.Capture(&file, o)
		mustFail(t, err, os.ErrInvalid, "capture")
		if file.Len() != 0 {
			t.Errorf("%+v: %d bytes were written", o, file.Len())
		}
	}
	_, err := r.mac.Capture(nil, stmmac.CaptureOptions{})
	mustFail(t, err, os.ErrInvalid)
	_, end := r.capture(stmmac.CaptureOptions{Rx: []int{}}) // of nothing
	if f := end(); len(f.Interfaces) != 0 {
		t.Errorf("%+v", f)
	}
}

// TestCaptureAllocations: a capture costs the queues no memory.
func TestCaptureAllocations(t *testing.T) {
	r := newRig(t, rigConfig{})
	c, err := r.mac.Capture(io.Discard, stmmac.CaptureOptions{Frames: 16})
	r.must(err)
	defer c.Close()
	f := frame(60, 1)
	bufs := make([]*pagepool.Buf, 1)
	for _, op := range []struct {
		name string
		do   func()
	}{
		{"Recv", func() {
			if r.mac.Rx(0).Recv(bufs) == 1 {
				r.pool.Free(bufs[0])
			}
		}},
		{"Send", func() {
			bufs[0], _ = r.pool.Alloc()
			bufs[0].SetData(f)
			if n, _ := r.mac.Tx(0).Send(bufs); n != 1 {
				r.pool.Free(bufs[0])
			}
		}},
	} {
		r.wire.deliver(frames(200, 60, 1)...)
		r.step()
		before := c.Stats()
		if n := testing.AllocsPerRun(100, op.do); n != 0 {
			t.Errorf("%s: %v allocations", op.name, n)
		}
		if s := c.Stats(); s.Frames-before.Frames != 101 {
			t.Errorf("%s: %+v", op.name, s)
		}
	}
}

// TestCaptureUnderTraffic lets captures come and go while frames pass: none is lost
// and nobody who waits is forgotten.
func TestCaptureUnderTraffic(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors)
			ctx := patience(t)
			const ahead = 64
			rounds := scale(t, 1000)
			failed := make(chan error, 2)
			credit := make(chan struct{}, ahead)
			stop := make(chan struct{})
			sent, received := make(chan uint64, 1), make(chan struct{}, ahead)
			go func() {
				for n := uint64(0); ; n++ {
					select {
					case credit <- struct{}{}:
					case <-stop:
						sent <- n
						return
					}
					b, err := c.pool.Alloc()
					if err == nil {
						b.SetData(frame(60, n))
						err = sendOne(ctx, c.mac[0].Tx(0).Shared(), b)
					}
					if err != nil {
						failed <- err
						return
					}
				}
			}()
			go func() {
				n := uint64(0)
				for b, err := range c.mac[1].Rx(0).Frames(ctx) {
					if err != nil {
						return // the MAC was closed
					}
					if !bytes.Equal(b.Bytes(), frame(60, n)) {
						failed <- fmt.Errorf("frame %d is another", n)
						return
					}
					c.pool.Free(b)
					n++
					received <- struct{}{}
				}
			}()
			got := uint64(0)
			next := func() {
				select {
				case <-received:
					got++
					<-credit
				case err := <-failed:
					t.Fatal(err)
				case <-ctx.Done():
					t.Fatalf("no frame comes behind %d", got)
				}
			}
			for range rounds {
				var files [2]bytes.Buffer
				var caps [2]*stmmac.Capture
				for i := range caps {
					var err error
					if caps[i], err = c.mac[i].Capture(&files[i], stmmac.CaptureOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					next()
				}
				for i := range caps {
					if err := caps[i].Close(); err != nil {
						t.Fatal(err)
					}
					f, err := pcapngtest.Read(files[i].Bytes())
					if err != nil {
						t.Fatal(err)
					}
					for k, p := range f.Packets {
						if k > 0 && binary.BigEndian.Uint64(p.Data[14:]) != binary.BigEndian.Uint64(f.Packets[k-1].Data[14:])+1 {
							t.Fatal("a frame is missing")
						}
					}
				}
			}
			close(stop)
			for total := <-sent; got < total; {
				next()
			}
		})
	}
}
