package stmmac

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/phy"
)

// MAC is an open MAC. Its methods may be called by several goroutines; those
// of its queues belong to one goroutine a queue.
type MAC struct {
	cfg  Config
	dev  Device
	hw   core.Hardware
	feat Features
	addr net.HardwareAddr

	mapping *pagepool.Mapping
	ownPool *pagepool.Pool // nil if the caller gave one
	rx      []*RxQueue
	tx      []*TxQueue
	program Program

	oneTx     atomic.Bool // all frames leave by transmit queue 0
	registers registers
	monitor   monitor
	running   bool // the DMA may access memory
	csumTried int  // bytes of the longest frame whose checksums the self-test saw inserted; 0: no test

	vectors    []mmio.Interrupt // one for each entry of serves
	serves     []vector
	dispatched sync.WaitGroup

	mu        sync.Mutex // guards what follows and the registers behind it
	phy       *phy.PHY   // nil with a fixed link
	phyErr    error      // of the last look at the PHY
	hung      bool       // a reset has not ended, as far as is known
	looped    bool       // what is sent comes back
	rxShared  bool       // receive buffers shared interrupts since the MAC was opened
	link      Link
	linkMoved chan struct{} // closed and replaced when the link changes
	captures  []*Capture    // those that are not closed
	filter    core.Filter
	filterUse core.FilterUse
	// filterFull counts how often the filter had no room for what it should do.
	filterFull uint64

	faults, recoveries, linkChanges, phyErrors atomic.Uint64

	life      context.Context // ends with the MAC
	endLife   context.CancelFunc
	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	closeErr  error
	failure   atomic.Pointer[Error] // why the device stopped working
	failed    chan struct{}         // closed when it has
}

func (m *MAC) log() *zerolog.Logger {
	l := m.cfg.Logger.With().Str("dev", m.cfg.Name).Logger()
	return &l
}

// name is how the holders of buffers call the device.
func (m *MAC) name() string {
	if m.cfg.Name == "" {
		return m.cfg.Generation.String()
	}
	return m.cfg.Name
}

// Features is what the feature registers tell.
func (m *MAC) Features() Features { return m.feat }

// MTU is the longest payload of a frame in bytes.
func (m *MAC) MTU() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cfg.MTU
}

// NumQueues is the number of receive and transmit queues.
func (m *MAC) NumQueues() (rx, tx int) { return len(m.rx), len(m.tx) }

// Rx returns receive queue i, from 0.
func (m *MAC) Rx(i int) *RxQueue { return m.rx[i] }

// Tx returns transmit queue i, from 0.
func (m *MAC) Tx(i int) *TxQueue { return m.tx[i] }

// Pool is where the MAC takes its buffers and where frames are freed to.
func (m *MAC) Pool() *pagepool.Pool { return m.mapping.Pool() }

// Err says why the device stopped working, or nil.
func (m *MAC) Err() error {
	if e := m.failure.Load(); e != nil {
		return e
	}
	return nil
}

func (m *MAC) closed() bool {
	select {
	case <-m.closing:
		return true
	default:
		return false
	}
}

// Close stops the MAC and its DMA, gives all buffers of its rings back and
// unmaps the pool from the device. Calls that block end with ErrClosed.
// Buffers that the application holds stay usable and are freed to the pool; if
// the pool is the MAC's own, Close reports them with a [*pagepool.LeakError]
// and their memory lives until the last is freed. It is safe to call twice and
// returns the same error then. The Device stays open.
func (m *MAC) Close() error {
	m.closeOnce.Do(func() {
		m.endLife() // whatever is under way ends soon
		m.mu.Lock()
		close(m.closing)
		m.mu.Unlock()
		m.closeErr = wrap("close", m.cfg.Name, m.release())
		m.log().Info().Err(m.closeErr).Msg("close")
	})
	return m.closeErr
}

// release undoes what start did, as far as it got.
func (m *MAC) release() error {
	var errs []error
	for _, v := range m.vectors {
		errs = append(errs, v.Close())
	}
	m.dispatched.Wait()
	// From here on no queue is inside a call, and none begins one.
	for _, q := range m.rx {
		q.ring.End()
	}
	for _, q := range m.tx {
		q.ring.End()
	}
	m.endCaptures()
	if m.running {
		if err := m.stop(context.Background()); err != nil {
			// The device may still write: its memory is not given back.
			return errors.Join(append(errs, err)...)
		}
	}
	for _, q := range m.rx {
		q.ring.Release()
	}
	for _, q := range m.tx {
		q.ring.Release()
	}
	errs = append(errs, m.freeRings()...)
	if m.mapping != nil {
		errs = append(errs, m.mapping.Close())
	}
	if m.ownPool != nil {
		errs = append(errs, m.ownPool.Close())
	}
	return errors.Join(errs...)
}

// stop brings the DMA to rest, by a reset of the whole device if the MAC does
// not obey. A device that is gone accesses nothing.
func (m *MAC) stop(ctx context.Context) error {
	m.hw.ReadCounters() // a reset clears them
	err := m.hw.Stop(ctx)
	m.hw.ReadCounters()
	if err == nil || errors.Is(err, ErrGone) {
		return nil
	}
	if e := m.dev.Reset(context.WithoutCancel(ctx)); e != nil {
		return fmt.Errorf("the DMA does not stop, so its memory stays mapped: %w; and resetting the device: %w", err, e)
	}
	return nil
}

// wrap makes an error of the call op.
func (m *MAC) wrap(op string, err error) *Error { return &Error{Op: op, Dev: m.cfg.Name, Err: err} }

// fail marks the device as failed, unless it is, and wakes everybody who waits. It
// returns why the device failed. What ends because Close does not wait for it is
// closed: whoever waits must not get the end of a context that is not theirs. A reset
// that finds no clock may give up before it hears of Close.
func (m *MAC) fail(err *Error) error {
	if m.life.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrNoClock)) {
		err = &Error{Op: err.Op, Dev: err.Dev, Err: ErrClosed}
	}
	if m.failure.CompareAndSwap(nil, err) {
		// What cannot be sent any more is refused with the reason, and not taken
		// for a ring that is full.
		for _, q := range m.tx {
			q.ring.Hold()
		}
		close(m.failed)
		m.log().Error().Err(err).Msg("device failed")
		m.wakeAll()
	}
	return m.Err()
}
