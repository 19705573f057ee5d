package vfiouser_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// FuzzMessages is a client that sends what it likes. The input is a list of messages: a
// byte of the command, one of flags (the low half) and of what descriptors come along (the
// high half), one of how many bytes follow, and these. The server answers every command
// that wants it, in order, or hangs up; afterwards it holds nothing.
func FuzzMessages(f *testing.F) {
	add := func(all ...[]byte) {
		var b []byte
		for _, m := range all {
			b = append(b, m...)
		}
		f.Add(b)
	}
	op := func(cmd uint16, how byte, b []byte) []byte { return append([]byte{byte(cmd), how, byte(len(b))}, b...) }
	for _, r := range refused {
		add(op(r.cmd, 0, r.body), op(getInfo, 0, body(16, 0, 0, 0)))
	}
	add(
		op(dmaMap, 1<<4, body(32, rw, uint64(0), uint64(0), uint64(page))), op(dmaMap, 2<<4, body(32, rw, uint64(0), uint64(page), uint64(page))),
		op(dmaMap, 0, body(32, rw, uint64(0), uint64(1<<30), uint64(page))), op(regionWrite, 0, body(uint64(4), configRegion, 2, uint16(6))),
		op(regionWrite, noReply>>4, body(uint64(0), 0, 8, uint64(0))), op(regionWrite, 0, body(uint64(0), 0, 8, uint64(page))), op(regionWrite, 0, body(uint64(0), 0, 8, uint64(1<<30))),
		op(dmaUnmap, 0, body(24, 0, uint64(0), uint64(page))), op(dmaUnmap, 0, body(24, 2, uint64(0), uint64(0))), op(deviceReset, 0, nil))
	add(
		op(setIRQs, 3<<4, body(20, dataEventfd|actionTrigger, msix, 0, 1)), op(setIRQs, 4<<4, body(20, dataEventfd|actionTrigger, msix, 0, 3)),
		op(setIRQs, 0, body(20, dataNone|actionMask, msix, 0, 70)), op(setIRQs, 0, body(22, dataBool|actionUnmask, msix, 1, 2, []byte{1, 0})),
		op(regionWrite, 0, body(uint64(0x1000), 2, 8, uint64(1))), op(regionRead, 0, body(uint64(0x2000), 2, 16)), op(regionRead, 0, body(uint64(0), configRegion, 256)),
		op(setIRQs, 0, body(20, dataNone|actionTrigger, msix, 0, 0)), op(setIRQs, 3<<4, body(20, dataEventfd|actionUnmask, intx, 0, 1)))
	add(op(writeMulti, 0, body(uint64(2), uint64(0), 0, 4, uint64(1), uint64(4), 0, 8, uint64(2))), op(version, 0, body(uint16(0), uint16(0), "{}")))
	add(op(dmaRead, isReply, body(uint64(1<<30), uint64(4), 0)))

	sealed, _ := memfd(f, memory, true)
	open, _ := memfd(f, memory, false)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		f.Fatal(err)
	}
	with := [][]int{nil, {sealed}, {open}, {event}, {event, event, event}, {sealed, event}, {0}, make([]int, 20)}
	for i := range with[7] {
		with[7][i] = event
	}

	f.Fuzz(func(t *testing.T, in []byte) {
		cfg := full()
		cfg.MessageTimeout = time.Millisecond
		fn, dev := newFunction(t, cfg)
		// A write to the first register makes the device access memory there and fire.
		dev.write = func(bar int, off uint64, p []byte) {
			if bar != 0 || off != 0 {
				return
			}
			var at [8]byte
			copy(at[:], p)
			addr := binary.LittleEndian.Uint64(at[:])
			_ = fn.Read(addr, make([]byte, 5000))
			_ = fn.Write(addr, p)
			if w := fn.Window(addr, 4); w != nil {
				w[0]++
			}
			fn.SetINTx(addr&1 != 0)
			fn.Signal(int(addr & 0xff))
		}
		c := start(t, fn, dev)
		// What the server sends is read to its end, which comes when this side hangs up.
		var replies []received
		read := make(chan error)
		go func() {
			for {
				r, err := c.read()
				if err != nil {
					read <- err
					return
				}
				if r.flags&isReply != 0 {
					replies = append(replies, r)
				}
			}
		}()
		type sent struct{ id, cmd uint16 }
		var awaited []sent
		for len(in) >= 3 {
			cmd, how, n := uint16(in[0]), in[1], min(int(in[2]), len(in)-3)
			b := in[3 : 3+n]
			in = in[3+n:]
			flags := uint32(how & 0xf)
			if flags&1 != 0 && cmd != dmaRead && cmd != dmaWrite {
				flags = noReply
			}
			if flags != noReply && flags&0xf != isReply { // what is of no type is answered too
				awaited = append(awaited, sent{c.id + 1, cmd})
			}
			c.id++
			m := body(c.id, cmd, 16+len(b), flags, 0, b)
			var oob []byte
			if fds := with[how>>4&7]; fds != nil {
				oob = unix.UnixRights(fds...)
			}
			if _, _, err := c.conn.WriteMsgUnix(m, oob, nil); err != nil {
				break // the server has hung up
			}
		}
		if err := c.conn.CloseWrite(); err != nil && !errors.Is(err, unix.ENOTCONN) {
			t.Fatal(err)
		}
		err := <-c.end
		if err := <-read; !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
		if err == nil && len(replies) != len(awaited) {
			t.Errorf("%d replies to %d commands", len(replies), len(awaited))
		}
		for i, r := range replies[:min(len(replies), len(awaited))] {
			if (sent{r.id, r.cmd}) != awaited[i] || r.flags&isError != 0 && (len(r.body) > 0 || r.errno == 0) || r.flags&isError == 0 && r.errno != 0 {
				t.Errorf("reply %d: %+v, and %+v was sent", i, r, awaited[i])
			}
		}
		if err := fn.Read(0, make([]byte, 1)); !errors.Is(err, vfiouser.ErrNoClient) {
			t.Error(err)
		}
		if fn.Window(0, 1) != nil {
			t.Error("a window is left")
		}
	})
}

// FuzzStream is a client that breaks the framing too: the input is what it writes, before
// or after it has negotiated.
func FuzzStream(f *testing.F) {
	for _, r := range refused {
		f.Add(true, body(uint16(1), r.cmd, 16+len(r.body), 0, 0, r.body))
	}
	f.Add(false, body(uint16(1), uint16(version), 20+len(qemuCaps)+1, 0, 0, uint16(0), uint16(0), qemuCaps))
	f.Add(false, body(uint16(1), uint16(version), 20, 0, 0, uint16(0), uint16(0)))
	f.Add(true, body(uint16(1), uint16(getInfo), -1, 0, 0))
	f.Fuzz(func(t *testing.T, negotiated bool, in []byte) {
		fn, dev := newFunction(t, full())
		c := connect(t, context.Background(), fn, dev)
		if negotiated {
			c.negotiate()
		}
		read := make(chan error)
		go func() {
			for {
				if _, err := c.read(); err != nil {
					read <- err
					return
				}
			}
		}()
		_, werr := c.conn.Write(in)
		if err := c.conn.CloseWrite(); werr == nil && err != nil && !errors.Is(err, unix.ENOTCONN) {
			t.Fatal(err)
		}
		err := <-c.end
		if rerr := <-read; !errors.Is(rerr, io.EOF) && !errors.Is(rerr, unix.ECONNRESET) {
			t.Fatal(rerr)
		}
		var e *vfiouser.Error
		if err != nil && !errors.As(err, &e) {
			t.Error(err)
		}
		if err := fn.Read(0, make([]byte, 1)); !errors.Is(err, vfiouser.ErrNoClient) {
			t.Error(err)
		}
	})
}
