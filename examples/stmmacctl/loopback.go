package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

const (
	// window is how many frames are under way at most: the receive FIFO holds them
	// while the rings are served.
	window = 8
	// shortest is the shortest frame without FCS (IEEE 802.3, minFrameSize).
	shortest = 60
	etherLen = 14
)

// errLoopback says that frames did not come back as they should.
var errLoopback = errors.New("loopback failed")

// loopResult is what came back.
type loopResult struct {
	Device    string  `json:"device"`
	OK        bool    `json:"ok"`
	Queues    int     `json:"queues"` // that frames were sent on
	Frames    uint64  `json:"frames"` // sent
	Bytes     uint64  `json:"bytes"`  // of them, without FCS
	Lost      uint64  `json:"lost"`
	Changed   uint64  `json:"changed"`   // other bytes, or a wrong checksum
	Misjudged uint64  `json:"misjudged"` // right, and the device calls a checksum wrong
	Foreign   uint64  `json:"foreign"`   // received and not sent
	ByDevice  uint64  `json:"checksums_by_device"`
	ByDriver  uint64  `json:"checksums_by_driver"`
	Seconds   float64 `json:"duration_s"`
	PPS       float64 `json:"pps"`
	Mbps      float64 `json:"mbps"`
}

// loopback sends frames of every size, on each queue, whose checksums are to be
// inserted, and compares what comes back.
func loopback(ctx context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	return with(ctx, o, c, func(d *device) error {
		// A link that comes up meanwhile would turn the MAC off for a moment.
		d.awaitLink(ctx, c.wait)
		if err := d.mac.SetLoopback(true); err != nil {
			return err
		}
		t := &loopTest{d: d, res: loopResult{Device: c.addr, Queues: c.queues}, frame: make([]byte, c.mtu+etherLen), wait: c.wait}
		err := t.run(ctx, c.queues, c.mtu+etherLen)
		if err := errors.Join(err, d.mac.SetLoopback(false)); err != nil {
			return err
		}
		if c.json {
			err = printJSON(stdout, t.res)
		} else {
			err = t.res.print(stdout)
		}
		if err == nil && !t.res.OK {
			err = fmt.Errorf("%s: %w", c.addr, errLoopback)
		}
		return err
	})
}

func (r *loopResult) print(w io.Writer) error {
	verdict := "every frame came back unchanged"
	if !r.OK {
		verdict = "FAILED"
	}
	_, err := fmt.Fprintf(w, "%s: %d frames of all sizes, %d bytes, in %.3f s: %.0f frames/s, %.1f Mbit/s\n"+
		"lost %d, changed %d, misjudged %d, foreign %d; checksums by the device %d, by the driver %d\n%s\n",
		r.Device, r.Frames, r.Bytes, r.Seconds, r.PPS, r.Mbps,
		r.Lost, r.Changed, r.Misjudged, r.Foreign, r.ByDevice, r.ByDriver, verdict)
	return printed(err)
}

// loopTest is a test that runs.
type loopTest struct {
	d     *device
	res   loopResult
	frame []byte        // as it is to come back
	wait  time.Duration // how long a frame may take
	each  uint64        // frames of a queue: one of each size
	next  uint64        // the frame that is to come next
	bufs  [window]*pagepool.Buf

	silent bool // nothing comes back any more
}

// run sends the frames of all sizes up to the longest.
func (t *loopTest) run(ctx context.Context, queues, longest int) error {
	start := time.Now()
	t.each = uint64(longest - shortest + 1)
	for q := 0; q < queues && !t.silent; q++ {
		for end := uint64(q+1) * t.each; t.next < end && !t.silent; {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("loopback was ended behind %d frames: %w", t.res.Frames, err)
			}
			var err error
			if t.res.Frames < end && t.res.Frames-t.next < window {
				err = t.send(q)
			} else {
				err = t.await(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	r := &t.res
	for q := range queues {
		s := t.d.mac.Tx(q).Stats()
		r.ByDevice += s.CsumDevice
		r.ByDriver += s.CsumDriver
	}
	r.Seconds = time.Since(start).Seconds()
	r.PPS, r.Mbps = float64(r.Frames)/r.Seconds, float64(r.Bytes)*8/1e6/r.Seconds
	r.OK = r.Lost+r.Changed+r.Misjudged+r.Foreign == 0
	return nil
}

// size is the size of a frame by its number.
func (t *loopTest) size(number uint64) int { return shortest + int(number%t.each) }

// Where the parts of a frame are, IPv4 and UDP behind the Ethernet header.
const (
	ipAt, udpAt, dataAt = etherLen, etherLen + 20, etherLen + 28
	protoUDP            = 17
)

// make makes a frame by its number, as it is to come back.
func (t *loopTest) make(number uint64) []byte {
	n := t.size(number)
	f := t.frame[:n]
	addr := t.d.mac.HardwareAddr()
	copy(f, addr)
	copy(f[6:], addr)
	copy(f[12:], []byte{0x08, 0x00, 0x45, 0, byte((n - ipAt) >> 8), byte(n - ipAt), byte(number >> 8), byte(number), 0, 0, 64, protoUDP,
		0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 9, 0, 9, byte((n - udpAt) >> 8), byte(n - udpAt), 0, 0})
	binary.BigEndian.PutUint64(f[dataAt:], number)
	x := number*0x9e3779b97f4a7c15 + uint64(n)
	for i := dataAt + 8; i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		f[i] = byte(x)
	}
	binary.BigEndian.PutUint16(f[ipAt+10:], ^sum(0, f[ipAt:udpAt]))
	pseudo := sum(protoUDP+uint32(n-udpAt), f[ipAt+12:udpAt]) // RFC 768
	if binary.BigEndian.PutUint16(f[udpAt+6:], ^sum(uint32(pseudo), f[udpAt:])); f[udpAt+6]|f[udpAt+7] == 0 {
		f[udpAt+6], f[udpAt+7] = 0xff, 0xff // 0 is none
	}
	return f
}

// sum is the sum of RFC 1071.
func sum(s uint32, b []byte) uint16 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// send sends the next frame, without its checksums.
func (t *loopTest) send(q int) error {
	f := t.make(t.res.Frames)
	// What stands there does not count.
	copy(f[ipAt+10:], []byte{0xde, 0xad})
	copy(f[udpAt+6:], []byte{0xbe, 0xef})
	b, err := t.d.mac.Pool().AllocFrame(f, 0)
	if err != nil {
		return err
	}
	b.Flags |= pagepool.TxCsum
	k, err := t.d.mac.Tx(q).Send([]*pagepool.Buf{b})
	if k == 1 {
		t.res.Frames++
		t.res.Bytes += uint64(len(f))
		return nil
	}
	t.d.mac.Pool().FreeBatch([]*pagepool.Buf{b})
	if err == nil {
		err = fmt.Errorf("the ring has no room for %d frames", window)
	}
	return err
}

// await waits for what comes back, and compares it. When nothing comes any more the
// frames under way are lost, and the test is over.
func (t *loopTest) await(ctx context.Context) error {
	rx := t.d.mac.Rx(0) // of frames without a tag
	n := rx.Recv(t.bufs[:])
	if n == 0 {
		limit, cancel := context.WithTimeout(ctx, t.wait)
		defer cancel()
		err := rx.Wait(limit)
		if limit.Err() != nil && ctx.Err() == nil {
			t.res.Lost += t.res.Frames - t.next
			t.next, t.silent = t.res.Frames, true
			return nil
		}
		return err
	}
	for _, b := range t.bufs[:n] {
		t.compare(b)
	}
	t.d.mac.Pool().FreeBatch(t.bufs[:n])
	return nil
}

// compare looks at a frame that came back. The queues keep the order, so that one
// with a later number says that those before it are lost.
func (t *loopTest) compare(b *pagepool.Buf) {
	got := make([]byte, b.FrameLen())
	b.CopyTo(got)
	if len(got) < shortest || !bytes.Equal(got[:6], t.d.mac.HardwareAddr()) || !bytes.Equal(got[6:12], got[:6]) {
		t.res.Foreign++
		return
	}
	number := binary.BigEndian.Uint64(got[dataAt:])
	if number < t.next || number >= t.res.Frames {
		t.res.Foreign++
		return
	}
	t.res.Lost += number - t.next
	t.next = number + 1
	switch want := t.make(number); {
	case !bytes.Equal(got, want):
		t.res.Changed++
	case b.Flags&pagepool.RxCsumBad != 0:
		t.res.Misjudged++
	}
}
