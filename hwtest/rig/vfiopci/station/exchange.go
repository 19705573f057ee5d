package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

const (
	// window is how many frames are under way.
	window = 16
	// patience is for a frame, far above what one takes.
	patience = time.Minute

	shortest, longest = 60, 1514 // bytes of a frame without FCS
	experiment        = 0x88b5   // EtherType for local use (IEEE 802)
)

// pair is a device with its MAC and what is at the other end of its cable.
type pair struct {
	handle *bus.Handle
	mac    *stmmac.MAC
	other  peer.Peer
	bufs   [window]*pagepool.Buf
}

// openPair opens both ends and waits for the link. around makes the device that the MAC is
// opened on from the one that was opened.
func openPair(ctx context.Context, addr, addr2 string, around func(stmmac.Device) stmmac.Device) (*pair, error) {
	p := new(pair)
	var err error
	if p.handle, p.other, err = peer.Open(ctx, bus.NewOpener(), addr, "cable:"+addr2); err != nil {
		return nil, err
	}
	opts := append(p.handle.Options, stmmac.WithHardwareAddr(peer.DeviceAddr()), stmmac.WithChecksums(false, false))
	if p.mac, err = stmmac.Open(ctx, around(p.handle.Device), opts...); err != nil {
		return nil, errors.Join(err, p.close())
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for l := range p.mac.Links(limit) {
		if l.Up {
			break
		}
	}
	if !p.mac.Link().Up {
		return nil, errors.Join(fmt.Errorf("the link does not come up: %s", p.mac.LinkReason()), p.close())
	}
	if l, ok := p.other.(peer.Linked); ok {
		if err := l.AwaitLink(limit, p.mac.Link().Mode()); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *pair) close() error {
	var errs []error
	if p.mac != nil {
		errs = append(errs, p.mac.Close())
	}
	return errors.Join(append(errs, p.other.Close(), p.handle.Close())...)
}

// frame is a test frame by its number: all sizes come by.
func frame(dst, src []byte, number int) []byte {
	f := make([]byte, shortest+number*37%(longest-shortest+1))
	copy(f, dst)
	copy(f[6:], src)
	binary.BigEndian.PutUint16(f[12:], experiment)
	binary.BigEndian.PutUint32(f[14:], uint32(number))
	x := uint32(number)*2654435761 + 1
	for i := 18; i < len(f); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		f[i] = byte(x)
	}
	return f
}

// batch are the frames from a number on, at most a window of those up to end.
func batch(dst, src []byte, number, end int) (all [][]byte) {
	for n := number; n < min(number+window, end); n++ {
		all = append(all, frame(dst, src, n))
	}
	return all
}

// plain is a device as it is.
func plain(d stmmac.Device) stmmac.Device { return d }

// exchange sends frames both ways, a window at a time, and compares them.
func exchange(ctx context.Context, addr, addr2 string, frames int) (_ *said.Exchange, err error) {
	p, err := openPair(ctx, addr, addr2, plain)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	e := new(said.Exchange)
	for n := 0; n < frames; n += window {
		if err := p.both(ctx, n, frames, e); err != nil {
			return nil, fmt.Errorf("behind %d frames: %w", e.Frames, err)
		}
	}
	if d, ok := behind(p.handle.Device); ok {
		b, because := d.Domain().Backend()
		e.Backend, e.Because = b.String(), because
	}
	e.Interrupts, err = interrupts()
	return e, err
}

// settle is how long whoever receives gets to fall asleep before frames are sent: then an
// interrupt has to wake it.
const settle = 3 * time.Millisecond

// both sends a window of frames from the device, and one to it. Each time the other side
// waits for them already.
func (p *pair) both(ctx context.Context, number, end int, e *said.Exchange) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, way := range []struct {
		dst, src []byte
		recv     func(ctx context.Context, want [][]byte) error
		send     func(ctx context.Context, frames ...[]byte) error
	}{
		{peer.PeerAddr(), peer.DeviceAddr(), p.recvOther, p.send},
		{peer.DeviceAddr(), peer.PeerAddr(), p.recv, p.other.Send},
	} {
		frames := batch(way.dst, way.src, number, end)
		received := make(chan error, 1)
		go func() { received <- way.recv(ctx, frames) }()
		time.Sleep(settle)
		err := way.send(ctx, frames...)
		if err != nil {
			cancel()
		}
		if err := errors.Join(err, <-received); err != nil {
			return err
		}
		for _, f := range frames {
			e.Count(f)
		}
	}
	return nil
}

// recvOther receives frames at the other end and compares them.
func (p *pair) recvOther(ctx context.Context, want [][]byte) error {
	for _, w := range want {
		got, err := p.other.Recv(ctx)
		if err != nil {
			return err
		}
		if err := compare(got, w); err != nil {
			return fmt.Errorf("from the device: %w", err)
		}
	}
	return nil
}

func compare(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes came and are not the %d that were sent", len(got), len(want))
	}
	return nil
}

// recv receives frames at the device and compares them.
func (p *pair) recv(ctx context.Context, want [][]byte) error {
	for len(want) > 0 {
		k := p.mac.Rx(0).Recv(p.bufs[:min(len(want), window)])
		var err error
		for i, b := range p.bufs[:k] {
			got := make([]byte, b.FrameLen())
			b.CopyTo(got)
			err = errors.Join(err, compare(got, want[i]))
		}
		p.mac.Pool().FreeBatch(p.bufs[:k])
		want = want[k:]
		if k == 0 {
			err = p.mac.Rx(0).Wait(ctx)
		}
		if err != nil {
			return fmt.Errorf("to the device: %w", err)
		}
	}
	return nil
}

// send sends frames from the device, fewer than its ring has room for.
func (p *pair) send(ctx context.Context, frames ...[]byte) error {
	tx := p.mac.Tx(0)
	for _, f := range frames {
		b, err := p.mac.Pool().AllocFrame(f, 0)
		if err != nil {
			return err
		}
		if n, err := tx.Send([]*pagepool.Buf{b}); n == 0 {
			p.mac.Pool().Free(b)
			return errors.Join(errors.New("the ring takes no frame"), err)
		}
	}
	for tx.Inflight() > 0 {
		if err := tx.Wait(ctx); err != nil {
			return err
		}
		tx.Reap(nil)
	}
	return nil
}

// behind is the device of VFIO that another one may be around.
func behind(d stmmac.Device) (*vfio.Device, bool) {
	for {
		if v, ok := d.(*vfio.Device); ok {
			return v, true
		}
		w, ok := d.(interface{ Unwrap() stmmac.Device })
		if !ok {
			return nil, false
		}
		d = w.Unwrap()
	}
}
