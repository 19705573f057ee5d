package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// DMA is how a model reaches the memory of its host. Window may be called by
// several goroutines, the others by one at a time.
type DMA interface {
	// Window returns the n bytes at bus address addr if they lie in one mapping
	// and the process can reach them, else nil. The model keeps a window until
	// [Model.DropWindows] returns.
	Window(addr uint64, n int) []byte
	// Read and Write copy where Window returned nil. An error is a bus error.
	Read(addr uint64, p []byte) error
	Write(addr uint64, p []byte) error
}

// Model is the behaviour of a MAC: registers and engines. It reaches
// memory through a DMA, its host's interrupt controller through a function and
// other MACs through a Wire; a [Device] is one that runs in the process of its
// driver. All methods may be called by several goroutines.
//
// Tail and status registers take no lock of the engines, so a doorbell never
// waits for them; each tail register has one writer at a time, as each queue of
// a driver has one owner.
type Model struct {
	cfg   Config
	gen   generation
	at    places
	dma   DMA
	irq   func(vector int)
	wire  Wire
	clock core.Clock

	regs      regFile
	resetting atomic.Bool

	mu         sync.Mutex // engines, the registers that steer them, counters
	faults     Faults
	refused    bool // the last access failed by the BusError fault
	mac        macState
	tx         []txChan
	rx         []rxChan
	rxq        []rxQueue
	bufs       [][]byte // buffers that the receive FIFO is not using
	held       Frame    // a frame that waits on an elastic wire
	hasHeld    bool
	direct     rxFrame // the frame that passes through without waiting
	scratch    []byte
	sched      scheduler
	flow       flowState
	ptp        ptpState
	lpi        lpiState
	eame       bool
	stats      Stats
	rxSeen     uint64 // frames that reached a channel, what faults count
	checksums  uint64 // frames that the transmit checksum engine changed, likewise
	halfSent   uint64 // frames sent in half duplex, the same
	mii        miiState
	mdioDone   time.Duration // end of the management transaction; 0 is none
	now        time.Duration // when the step began
	nowValid   bool
	timerAt    time.Duration // when the timer is due; 0 is none
	stopTime   func() bool
	onTimer    func()
	pending    vectors // to fire when mu is free
	stopRst    func() bool
	closed     bool
	quick      bool // the burst paths may run
	mmcSpecial bool // counters are frozen or stop at their end

	irqMu sync.Mutex
	lines lineState

	onDemand     func(tx bool) // a store of the kind storeDemand
	onStatusLoad atomic.Pointer[func(int)]
	ignoreSame   atomic.Bool

	audit auditor

	// The engine goroutine.
	parked atomic.Bool
	wakeup chan struct{}
	quit   chan struct{}
	gone   sync.WaitGroup
}

// NewModel returns a model after reset. irq is called, without locks that Load
// and Store need, each time the line of an interrupt vector fires. A model that is
// not inline runs on a goroutine of its own until Close.
func NewModel(cfg Config, dma DMA, irq func(vector int), w Wire) (*Model, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	switch {
	case dma == nil:
		return nil, &ConfigError{"DMA", nil, "is needed"}
	case w == nil:
		return nil, &ConfigError{"Wire", nil, "is needed"}
	}
	if irq == nil {
		irq = func(int) {}
	}
	m := &Model{cfg: cfg, dma: dma, irq: irq, wire: w, clock: cfg.Clock, faults: cfg.Faults}
	if m.clock == nil {
		if cfg.Inline {
			m.clock = NewManualClock()
		} else {
			m.clock = core.NewWallClock()
		}
	}
	phys, err := m.cfg.completePHYs()
	if err != nil {
		return nil, err
	}
	m.gen = m
	if cfg.Generation == GMAC {
		m.gen = newGMAC(m)
	}
	m.at = m.gen.places()
	if err := m.gen.buildRegs(); err != nil {
		return nil, err
	}
	if !cfg.NoAudit {
		m.regs.touched = make([]touches, len(m.regs.word))
	}
	m.onTimer = m.timerFired
	m.tx = make([]txChan, cfg.TxQueues)
	m.rx = make([]rxChan, cfg.RxQueues)
	m.rxq = make([]rxQueue, cfg.RxQueues)
	for c := range m.tx {
		m.tx[c].init(m, true, c)
	}
	for c := range m.rx {
		m.rx[c].init(m, false, c)
	}
	if cfg.VLANFilters > 1 {
		m.mac.tags.filters = make([]r4.VLANTagData, cfg.VLANFilters)
	}
	m.lines.init(&m.cfg)
	m.audit.off = cfg.NoAudit
	if !cfg.Inline {
		m.wakeup = make(chan struct{}, 1)
		m.quit = make(chan struct{})
	}
	m.mu.Lock() // the timers of the PHYs
	m.initPHYs(phys)
	m.publishFaults()
	m.applyReset()
	m.mu.Unlock()
	w.Notify(m.kick)
	if !cfg.Inline {
		m.gone.Add(1)
		go m.engine()
	}
	return m, nil
}

// Clock is the clock that the model's timers run on.
func (m *Model) Clock() core.Clock { return m.clock }

// Close stops the engines and the timers. Registers keep their values. It does not
// close the wire and is safe to call twice.
func (m *Model) Close() {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	for _, stop := range []*func() bool{&m.stopTime, &m.stopRst, &m.mii.timer} {
		if *stop != nil {
			(*stop)()
			*stop = nil
		}
	}
	m.mu.Unlock()
	if first && m.quit != nil {
		close(m.quit)
	}
	m.gone.Wait()
	if first {
		m.wire.Notify(nil)
	}
}

// DropWindows makes the model forget the windows that it holds; when it returns
// the memory behind them may go away.
func (m *Model) DropWindows() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.tx {
		m.tx[i].own()
	}
	m.gen.dropWindows()
}

// SetFaults changes the fault switches while the engines stand still.
func (m *Model) SetFaults(f func(*Faults)) {
	m.mu.Lock()
	f(&m.faults)
	m.publishFaults()
	m.clockBack()
	m.unlock()
}

// clockBack goes on with what waited for the clocks of the PHY, if they run.
func (m *Model) clockBack() {
	if m.clockGated() {
		return
	}
	if m.resetting.Load() {
		m.scheduleReset()
	}
	m.gen.finishFlushes()
}

// publishFaults copies the switches that are read without the lock.
func (m *Model) publishFaults() {
	m.ignoreSame.Store(m.faults.IgnoreSameTail)
	m.setQuick()
	m.phyFaults()
	if f := m.faults.OnStatusLoad; f != nil {
		m.onStatusLoad.Store(&f)
	} else {
		m.onStatusLoad.Store(nil)
	}
	m.applyStalls()
}

// setQuick says whether the burst paths may run.
func (m *Model) setQuick() {
	m.quick = m.cfg.Generation == GMAC4 && m.audit.off && m.faults.plain() && !m.mii.shut() // a PHY without clock has no link
}

// SetClockGated stops or starts the clocks that the PHY gives the MAC.
func (m *Model) SetClockGated(gated bool) {
	m.SetFaults(func(f *Faults) { f.ClockGated = gated })
}

// slice bounds the descriptors that one channel handles before the others get
// their turn, and the time that a store to a control register waits.
const slice = 32

// Step lets the engines do up to budget units of work, a descriptor or a frame
// that goes nowhere each, and returns how many they did; less than budget means
// that there is nothing left to do. The same calls on the same input have the
// same result.
func (m *Model) Step(budget int) int {
	m.mu.Lock()
	m.nowValid = false
	done := 0
	for done < budget && !m.closed && !m.resetting.Load() {
		n := m.stepFlow() + m.stepARP()
		n += m.gen.stepTx(min(slice, budget-done-n))
		n += m.gen.stepRx(min(slice, budget-done-n))
		if n == 0 {
			break
		}
		done += n
	}
	if m.lpi.armed {
		m.lookLPI()
	}
	m.leave()
	return done
}

// leave ends a critical section of the engines: what happened in it shows in
// the status registers, and the interrupts fire once the lock is free.
func (m *Model) leave() {
	fire := m.gen.flushEvents()
	m.mu.Unlock()
	m.fire(fire)
}

// unlock is leave for a section that may have given the engines work.
func (m *Model) unlock() {
	m.leave()
	m.kick()
}

// time is the time at which the step began.
func (m *Model) time() time.Duration {
	if !m.nowValid {
		m.now = m.clock.Now()
		m.nowValid = true
	}
	return m.now
}

// engine is the goroutine of a model that is not inline. It sleeps while there
// is nothing to do; kick wakes it.
func (m *Model) engine() {
	defer m.gone.Done()
	for {
		if m.Step(8*slice) > 0 {
			select {
			case <-m.quit:
				return
			default:
				continue
			}
		}
		// Whoever rings after this store sees it and wakes the engine, and what
		// was rung before it is found by the step behind it.
		m.parked.Store(true)
		if m.Step(8*slice) > 0 {
			m.parked.Store(false)
			continue
		}
		select {
		case <-m.wakeup:
		case <-m.quit:
			return
		}
	}
}

// kick wakes the engine goroutine if it sleeps.
func (m *Model) kick() {
	if m.wakeup == nil || !m.parked.Load() {
		return
	}
	if m.parked.CompareAndSwap(true, false) {
		select {
		case m.wakeup <- struct{}{}:
		default:
		}
	}
}

// armTimer makes timerFired run at time at or before.
func (m *Model) armTimer(at time.Duration) {
	if m.closed || m.timerAt != 0 && m.timerAt <= at {
		return
	}
	if m.stopTime != nil {
		m.stopTime()
	}
	m.timerAt = max(at, 1)
	m.stopTime = m.clock.AfterFunc(at-m.clock.Now(), m.onTimer)
}

// timerFired raises the receive interrupts whose watchdog has run out and lets
// the engines look at what waits for the time.
func (m *Model) timerFired() {
	m.mu.Lock()
	m.timerAt, m.stopTime = 0, nil
	m.nowValid = false
	if !m.closed && !m.resetting.Load() {
		for c := range m.rx {
			m.rx[c].watchdog(m)
		}
		m.lookLPI()
	}
	m.unlock()
}
