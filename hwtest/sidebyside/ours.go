package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/sidebyside/fakemac"
	"github.com/gostmmac/gostmmac/hwtest/sidebyside/ixystyle"
	"github.com/gostmmac/gostmmac/hwtest/sidebyside/ours"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// oursPackages are the packages whose functions count as the driver: all that
// an importer of stmmac has on the way of a frame.
var oursPackages = []string{
	"github.com/gostmmac/gostmmac/hwtest/sidebyside/ours",
	"github.com/gostmmac/gostmmac/stmmac",
	"github.com/gostmmac/gostmmac/stmmac/internal/core",
	"github.com/gostmmac/gostmmac/stmmac/internal/gmac4",
	"github.com/gostmmac/gostmmac/pagepool",
	"github.com/gostmmac/gostmmac/mmio",
	"github.com/gostmmac/gostmmac/barrier",
}

// oursSpace holds the payload of the pool, whose chunks are a cache line or two
// apart, and the rings.
const oursSpace = poolSize*(bufferSize+2*pagepool.CacheLine) + ringSpace

// oursLoop is the driver of this module over fakemac.
type oursLoop struct {
	device *oursDevice
	mac    *stmmac.MAC
	pool   *pagepool.Pool
	bufs   []*pagepool.Buf
}

func openOurs() (_ loop, err error) {
	memory, err := ixystyle.NewMemory(oursSpace)
	if err != nil {
		return nil, err
	}
	d := &oursDevice{memory: memory, mac: fakemac.New(memory.Bytes(), memory.Bus())}
	l := &oursLoop{device: d, bufs: make([]*pagepool.Buf, burst)}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	// Registers that the fake does not have and the driver reads first: 5.20
	// with one queue, 16 KiB FIFOs, 48 address bits, checksum engines both ways and
	// the insertion of two VLAN tags. All of it is on.
	for off, v := range map[int]uint32{0x110: 0x52, 0x11c: 1<<14 | 1<<16 | 1<<27, 0x120: 7 | 7<<6 | 2<<14, 0x128: 1 << 5} {
		binary.LittleEndian.PutUint32(d.mac.BAR()[off:], v)
	}
	if l.pool, err = pagepool.New(d, poolSize, pagepool.WithBufSize(bufferSize)); err != nil {
		return nil, err
	}
	l.mac, err = stmmac.Open(context.Background(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}), stmmac.WithName("fakemac"),
		stmmac.WithRings(ringSize, ringSize), stmmac.WithPool(l.pool), stmmac.WithClock(d),
		stmmac.WithHardwareAddr([]byte{2, 0, 0, 0, 0, 1}), stmmac.WithConfig(func(c *stmmac.Config) {
			c.VLANStrip, c.VLANDouble = true, true
			c.SelfTest = false // the fake has no loopback
		}))
	return l, err
}

func (l *oursLoop) Arrive() error {
	n, err := l.device.mac.Receive(burst, frameSize, nil)
	if err == nil && n != burst {
		err = fmt.Errorf("ours: device took %d of %d frames", n, burst)
	}
	return err
}

func (l *oursLoop) Forward(batch int) int {
	n, err := ours.Forward(l.mac.Rx(0), l.mac.Tx(0), l.pool, l.bufs[:batch], burst)
	if err != nil {
		return -1
	}
	return n
}

func (l *oursLoop) Depart() (int, error) { return l.device.mac.Transmit(nil) }

func (l *oursLoop) Close() error {
	var errs []error
	if l.mac != nil {
		errs = append(errs, l.mac.Close())
	}
	if l.pool != nil {
		errs = append(errs, l.pool.Close())
	}
	return errors.Join(append(errs, l.device.memory.Close())...)
}

// oursDevice is a stmmac.Device over fakemac: its registers are plain memory,
// and its memory is handed out once, front to back.
type oursDevice struct {
	memory *ixystyle.Memory
	mac    *fakemac.Device
	used   int
	now    time.Duration
}

func (d *oursDevice) Region(i int) (stmmac.Region, error) {
	if i != 0 {
		return nil, os.ErrNotExist
	}
	return stmmac.MapRegion(d.mac.BAR()), nil
}

func (d *oursDevice) NumInterrupts() int { return 0 }

func (d *oursDevice) Interrupt(int) (stmmac.Interrupt, error) { return nil, errors.ErrUnsupported }

func (d *oursDevice) MapDMA([]byte) (uint64, error) { return 0, errors.ErrUnsupported }

func (d *oursDevice) UnmapDMA(uint64, int) error { return nil }

func (d *oursDevice) Coherent() bool { return true }

func (d *oursDevice) AllocDMA(n, align int) ([]byte, uint64, error) {
	start := (d.used + align - 1) / align * align
	if start+n > len(d.memory.Bytes()) {
		return nil, 0, fmt.Errorf("%d bytes behind %d of %d: %w", n, start, len(d.memory.Bytes()), os.ErrInvalid)
	}
	d.used = start + n
	return d.memory.Bytes()[start : start+n : start+n], d.memory.Bus() + uint64(start), nil
}

func (d *oursDevice) Reset(context.Context) error { return errors.ErrUnsupported }

func (d *oursDevice) Close() error { return nil }

// Now, Sleep and AfterFunc make the device the clock of the driver: while the
// driver sleeps the reset ends.
func (d *oursDevice) Now() time.Duration { return d.now }

func (d *oursDevice) Sleep(_ context.Context, t time.Duration) error {
	d.now += t
	mode := d.mac.BAR()[0x1000:]
	binary.LittleEndian.PutUint32(mode, binary.LittleEndian.Uint32(mode)&^1)
	return nil
}

func (d *oursDevice) AfterFunc(time.Duration, func()) func() bool {
	return func() bool { return true }
}
