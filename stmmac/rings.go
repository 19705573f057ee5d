package stmmac

import (
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// makeQueues makes the queues, with rings that are held and have no memory yet.
func (m *MAC) makeQueues(p Program) {
	pool := m.mapping.Pool()
	m.program = p
	for i := range m.cfg.RxQueues {
		owner := pool.Owner(fmt.Sprintf("%s rx%d", m.name(), i))
		q := &RxQueue{waiter: newWaiter(m, i, core.EventRx), program: p}
		q.ring = core.NewRxRing(m.mapping, owner, !m.cfg.StripFCS)
		m.rx = append(m.rx, q)
	}
	for i := range m.cfg.TxQueues {
		owner := pool.Owner(fmt.Sprintf("%s tx%d", m.name(), i))
		q := &TxQueue{waiter: newWaiter(m, i, core.EventTx)}
		q.ring = core.NewTxRing(m.mapping, owner, m.cfg.KeepTx, q.fail, q.away)
		q.shared = SharedTx{q: q, turn: make(chan struct{}, 1)}
		m.tx = append(m.tx, q)
	}
}

// attachProgram lets the program see the frames that are received from now on.
func (m *MAC) attachProgram() {
	if m.program == nil {
		return
	}
	m.halt()
	defer m.unhalt()
	for _, q := range m.rx {
		q.ring.SetFilter(q.filter)
	}
	m.resume()
}

// bringUp programs a MAC that was reset and whose rings are held and empty, and
// starts it and them, all by the configuration as it is now.
func (m *MAC) bringUp() error {
	m.coalesceRings(m.cfg.Coalesce)
	s := core.Setup{Addr: m.addr, VectorEach: m.cfg.MSI != nil && m.dev.NumInterrupts() > 0}
	if err := m.fillRings(&s); err != nil {
		return err
	}
	if err := m.hw.Setup(s); err != nil {
		return err
	}
	one := m.needsOneTx(m.link)
	m.oneTx.Store(one)
	if one {
		m.hw.DivideTxFIFO(1)
	}
	m.running = true
	m.hw.Start()
	use, err := m.hw.SetFilter(m.filter)
	if err != nil {
		return err
	}
	m.noteFilter(use)
	m.hw.SetLoopback(m.looped)
	if err := m.setLink(); err != nil {
		return err
	}
	m.resume()
	return nil
}

// resume lets calls into the rings again: of those to send in half duplex, only
// into that of queue 0.
func (m *MAC) resume() {
	for _, q := range m.rx {
		q.ring.Resume()
	}
	for _, q := range m.tx {
		if q == q.outlet() {
			q.ring.Resume()
		}
	}
}

// needsOneTx says whether the MAC has to send everything from one queue: in half
// duplex it completes no frame of another.
func (m *MAC) needsOneTx(l Link) bool { return len(m.tx) > 1 && l.Up && !l.FullDuplex }

// fillRings gives the rings memory and the receive rings buffers.
func (m *MAC) fillRings(s *core.Setup) error {
	l := m.hw.Limits()
	lay, err := m.rxLayout()
	if err != nil {
		return err
	}
	s.RxSize = lay.Size
	for i, q := range m.rx {
		if err := m.ringMemory(&q.mem, m.cfg.RxRing, l); err != nil {
			return err
		}
		q.ring.Restart(m.hw.RxDescs(i, q.mem, lay.Size), q.mem.N, lay)
		q.ring.Fill()
		s.Rx = append(s.Rx, q.mem)
		s.RxTails = append(s.RxTails, q.ring.Tail())
	}
	limits := m.hw.TxOffloads()
	if m.csumTried > 0 {
		limits.MaxCsum = min(limits.MaxCsum, m.csumTried)
	}
	limits.MaxFrame, limits.MaxBuf = core.MaxFrameLen(m.cfg.MTU)-core.FCSLen, l.MaxTxBuf
	for i, q := range m.tx {
		if err := m.ringMemory(&q.mem, m.cfg.TxRing, l); err != nil {
			return err
		}
		q.ring.Restart(m.hw.TxDescs(i, q.mem), q.mem.N, limits)
		s.Tx = append(s.Tx, q.mem)
	}
	return nil
}

// rxLayout is where frames lie in their buffers.
func (m *MAC) rxLayout() (RxLayout, error) {
	headroom := pagepool.NetSKBPad
	if m.program != nil {
		headroom = pagepool.XDPHeadroom
	}
	return core.ChooseRxLayout(m.cfg.MTU, m.mapping.Pool().BufSize(), headroom, m.cfg.NetIPAlign, m.hw.Limits().MaxRxBuf)
}

// ringMemory makes mem hold a ring of n descriptors, unless it does.
func (m *MAC) ringMemory(mem *core.RingMemory, n int, l core.Limits) error {
	if mem.Mem != nil && mem.N == n {
		return nil
	}
	if mem.Mem != nil {
		old := mem.Mem
		*mem = core.RingMemory{}
		if err := old.Close(); err != nil {
			return err
		}
	}
	fresh, err := pagepool.NewMemory(m.dev, n*l.DescSize, l.RingAlign)
	if err != nil {
		return err
	}
	*mem = core.RingMemory{Mem: fresh, N: n}
	first, end := fresh.Addr(), fresh.Addr()+uint64(len(fresh.Bytes()))
	if first>>32 != (end-1)>>32 {
		// A tail register has the low half only.
		return fmt.Errorf("a ring at %#x crosses a boundary of 4 GiB: %w", first, os.ErrInvalid)
	}
	return m.reaches("a ring", end)
}

// freeRings gives the memory of the rings back.
func (m *MAC) freeRings() (errs []error) {
	free := func(mem *core.RingMemory) {
		if mem.Mem != nil {
			errs = append(errs, mem.Mem.Close())
			*mem = core.RingMemory{}
		}
	}
	for _, q := range m.rx {
		free(&q.mem)
	}
	for _, q := range m.tx {
		free(&q.mem)
	}
	return errs
}
