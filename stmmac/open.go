package stmmac

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/gmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/gmac4"
)

// Open resets the MAC behind d, sets it up and starts it. It returns when the
// queues can be used. ctx bounds the opening only. On an error nothing of the
// MAC is left running or mapped.
func Open(ctx context.Context, d Device, opts ...Option) (*MAC, error) {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	if err := validate(&o); err != nil {
		return nil, &Error{Op: "open", Dev: o.Name, Err: err}
	}
	m := &MAC{cfg: o.Config, dev: d, closing: make(chan struct{}), failed: make(chan struct{}), link: o.Link}
	m.life, m.endLife = context.WithCancel(context.Background())
	m.monitor.init(m)
	m.filter = core.Filter{Promiscuous: o.Promiscuous, AllMulticast: o.AllMulticast}
	var err error
	if m.hw, err = hardware(&m.cfg, d); err != nil {
		return nil, &Error{Op: "open", Dev: o.Name, Err: err}
	}
	if err := m.start(ctx, o.program); err != nil {
		m.endLife()
		return nil, errors.Join(wrap("open", o.Name, err), m.release())
	}
	m.log().Info().Str("version", fmt.Sprintf("%x.%x0", m.feat.Version>>4, m.feat.Version&0xf)).
		Str("addr", m.addr.String()).Stringer("link", m.link).Int("rx", len(m.rx)).Int("tx", len(m.tx)).Msg("open")
	return m, nil
}

// wrap makes err an *Error if it is none yet; nil stays nil.
func wrap(op, dev string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Dev: dev, Err: err}
}

// within says that a call named op failed in a step of it that has a name of its
// own.
func (m *MAC) within(op string, err error) *Error {
	if e, ok := err.(*Error); ok {
		step := *e
		step.Op = op + ": " + e.Op
		return &step
	}
	return m.wrap(op, err)
}

// limits of the configuration.
const (
	minMTU  = 46
	minRing = 2
	maxQ    = 8
)

// validate checks what needs no device.
func validate(o *options) error {
	bad := func(what string, v, lo, hi int) error {
		return fmt.Errorf("%s %d is not in %d..%d: %w", what, v, lo, hi, os.ErrInvalid)
	}
	for _, c := range []struct {
		what      string
		v, lo, hi int
	}{
		{"receive queues", o.RxQueues, 1, maxQ},
		{"transmit queues", o.TxQueues, 1, maxQ},
		{"receive ring", o.RxRing, minRing, core.MaxRing},
		{"transmit ring", o.TxRing, minRing, core.MaxRing},
		{"NET_IP_ALIGN", o.NetIPAlign, 0, 15},
		{"address width", o.AddrWidth, 0, 64},
		{"outstanding reads", o.AXI.MaxReads, 0, 16},
		{"outstanding writes", o.AXI.MaxWrites, 0, 16},
		{"receive FIFO", o.RxFIFO, 0, 1 << 20},
		{"transmit FIFO", o.TxFIFO, 0, 1 << 20},
		{"perfect filters", o.PerfectFilters, 0, 31},
	} {
		if c.v < c.lo || c.v > c.hi {
			return bad(c.what, c.v, c.lo, c.hi)
		}
	}
	if n := o.AXI.BurstLens; n < 0 || n&3 != 0 || n > 508 {
		return fmt.Errorf("burst lengths %d are no sum of 4, 8, 16, 32, 64, 128 and 256: %w", n, os.ErrInvalid)
	}
	if n := o.HashBins; n != 0 && n != 64 && n != 128 && n != 256 {
		return fmt.Errorf("%d bins of the hash table are none of 64, 128, 256: %w", n, os.ErrInvalid)
	}
	if n := o.AXI.PBL; n < 0 || n > 32 || n&(n-1) != 0 {
		return fmt.Errorf("PBL %d is none of 1, 2, 4, 8, 16, 32: %w", n, os.ErrInvalid)
	}
	if hz := o.CSRClock; hz != 0 && (hz < 1_000_000 || hz > 4_096_000_000) {
		return fmt.Errorf("CSR clock of %d Hz is not in 1 to 4096 MHz: %w", hz, os.ErrInvalid)
	}
	if a := o.HardwareAddr; a != nil && !core.IsUnicast(a) {
		return fmt.Errorf("hardware address %v is no unicast address of six bytes: %w", a, os.ErrInvalid)
	}
	if err := checkCoalesce(&o.Coalesce); err != nil {
		return err
	}
	if r := &o.Recovery; r.Limit < 0 || r.Window < 0 || r.Stall < 0 {
		return fmt.Errorf("recovery %+v has a negative value: %w", *r, os.ErrInvalid)
	}
	o.Recovery.Window = cmp.Or(o.Recovery.Window, 10*time.Second)
	o.Recovery.Stall = cmp.Or(o.Recovery.Stall, 400*time.Millisecond)
	if o.Clock == nil || o.ResetTimeout <= 0 || o.StopTimeout <= 0 {
		return fmt.Errorf("no clock, or a timeout that is not positive: %w", os.ErrInvalid)
	}
	_, err := generation(o.Generation)
	return err
}

// driver is what drives a generation.
type driver struct {
	least uint32 // bytes of registers that every device has more than
	open  func(*Config, mmio.Region) core.Hardware
}

// generation returns what drives a generation.
func generation(g Generation) (driver, error) {
	switch g {
	case GMAC:
		// up to the feature register
		return driver{0x1058, func(c *Config, csr mmio.Region) core.Hardware { return gmac.New(c, csr) }}, nil
	case GMAC4:
		// up to the first DMA channel
		return driver{0x1100, func(c *Config, csr mmio.Region) core.Hardware { return gmac4.New(c, csr) }}, nil
	case core.GenerationUnknown:
		return driver{}, fmt.Errorf("the generation of the device was not given, and the device does not tell it: %w", os.ErrInvalid)
	}
	return driver{}, fmt.Errorf("generation %v: %w", g, errors.ErrUnsupported)
}

// hardware returns the register side of the device's generation.
func hardware(cfg *Config, d Device) (core.Hardware, error) {
	r, err := d.Region(cfg.RegionNo)
	if err != nil {
		return nil, fmt.Errorf("region %d: %w", cfg.RegionNo, err)
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("descriptors are little-endian and this machine is not: %w", errors.ErrUnsupported)
	}
	if !d.Coherent() {
		return nil, fmt.Errorf("the device does not see the caches of the CPU, and there is no cache maintenance: %w", errors.ErrUnsupported)
	}
	csr := mmio.Window(r, cfg.CSROffset, r.Len())
	drv, err := generation(cfg.Generation)
	if err != nil {
		return nil, err
	}
	if csr.Len() <= drv.least {
		return nil, fmt.Errorf("region %d has %d bytes behind offset %#x, too few for the registers: %w",
			cfg.RegionNo, csr.Len(), cfg.CSROffset, os.ErrInvalid)
	}
	return drv.open(cfg, csr), nil
}

// start brings the MAC from reset to running.
func (m *MAC) start(ctx context.Context, p Program) error {
	var err error
	if m.feat, err = m.hw.Identify(); errors.Is(err, ErrNoClock) && m.dev.Reset(ctx) == nil {
		// A reset hung for want of a clock, and the PHY could not be reached.
		m.feat, err = m.hw.Identify()
	}
	if err != nil {
		return err
	}
	if err = m.fits(); err != nil {
		return err
	}
	if m.addr = m.cfg.HardwareAddr; m.addr == nil {
		// before the reset, which forgets it
		if m.addr = m.hw.Addr(); !core.IsUnicast(m.addr) {
			if m.addr, err = randomAddr(); err != nil {
				return err
			}
		}
	}
	// A dead owner may have left the DMA running: it must be at rest before
	// anything is mapped for it or posted to it.
	m.hw.Halt()
	if err = m.findPHY(ctx); err != nil {
		return err
	}
	if err = m.reset(ctx, false); err != nil {
		return err
	}
	if err = m.makePool(); err != nil {
		return err
	}
	m.makeQueues(p)
	if err = m.plan(); err != nil {
		return err
	}
	if err = m.bringUp(); err != nil {
		return err
	}
	if m.cfg.Coalesce.RxTime > 0 {
		m.halt()
		_, err = m.coalesce(m.cfg.Coalesce)
		m.resume()
		m.unhalt()
		if err != nil {
			return err
		}
	}
	if err = m.selfTest(ctx); err != nil {
		return err
	}
	m.attachProgram()
	if m.phy != nil {
		m.unloopPHY()
		// A link that is there already is there when Open returns.
		if err = m.pollPHY(); err != nil {
			return err
		}
	}
	m.dispatch()
	m.monitor.start()
	return nil
}

// fits checks the configuration against what the device has.
func (m *MAC) fits() error {
	c, f := &m.cfg, &m.feat
	for _, q := range []struct {
		what      string
		want, has int
	}{
		{"receive queues", c.RxQueues, min(f.RxQueues, f.RxChannels)},
		{"transmit queues", c.TxQueues, min(f.TxQueues, f.TxChannels)},
	} {
		if q.want > q.has {
			return fmt.Errorf("%d %s, and the device has %d: %w", q.want, q.what, q.has, os.ErrInvalid)
		}
	}
	if err := c.Queues.Check(c.RxQueues, c.TxQueues, f); err != nil {
		return err
	}
	l := m.hw.Limits()
	if err := fitsVLAN(c, f, l.VLANStrip); err != nil {
		return err
	}
	for _, o := range []struct {
		what      string
		want, has bool
	}{
		{"a chain of descriptors", c.Chain, l.Chain},
		{"stripping of the FCS of all frames", c.StripFCS, l.StripFCS},
		{"interrupt vectors of its queues", c.MSI != nil, l.VectorEach},
	} {
		if o.want && !o.has {
			return fmt.Errorf("the device has no %s: %w", o.what, errors.ErrUnsupported)
		}
	}
	return m.fitsMTU(c.MTU)
}

// fitsMTU checks an MTU against what the device has.
func (m *MAC) fitsMTU(mtu int) error {
	if most := m.hw.Limits().MaxMTU; mtu < minMTU || mtu > most {
		return fmt.Errorf("MTU %d is not in %d..%d: %w", mtu, minMTU, most, os.ErrInvalid)
	}
	if n := core.MaxFrameLen(mtu); n > m.hw.MaxFrame() {
		return fmt.Errorf("MTU %d needs %d bytes of FIFO a queue, and with %d receive and %d transmit queues there are %d: use fewer queues: %w",
			mtu, n, m.cfg.RxQueues, m.cfg.TxQueues, m.hw.MaxFrame(), os.ErrInvalid)
	}
	return nil
}

// makePool attaches the device to the pool, which it makes if there is none.
func (m *MAC) makePool() error {
	pool := m.cfg.Pool
	if pool == nil {
		// every slot, and as much again for the application
		n := m.cfg.RxQueues*m.cfg.RxRing + m.cfg.TxQueues*m.cfg.TxRing
		var err error
		if pool, err = pagepool.New(m.dev, 2*n, pagepool.WithBufSize(m.cfg.BufSize)); err != nil {
			return err
		}
		m.ownPool = pool
	}
	var err error
	if m.mapping, err = pool.Attach(m.dev); err != nil {
		return err
	}
	return m.reaches("the pool", m.mapping.View().End())
}

// reaches checks that the device can address everything below end.
func (m *MAC) reaches(what string, end uint64) error {
	if w := m.hw.AddrWidth(); w < 64 && end > 1<<w {
		return fmt.Errorf("%s is mapped up to %#x, and the device has %d address bits: %w", what, end, w, os.ErrInvalid)
	}
	return nil
}

// randomAddr returns a random locally administered unicast address.
func randomAddr() (net.HardwareAddr, error) {
	a := make(net.HardwareAddr, 6)
	if _, err := rand.Read(a); err != nil {
		return nil, err
	}
	a[0] = a[0]&^1 | 2
	return a, nil
}
