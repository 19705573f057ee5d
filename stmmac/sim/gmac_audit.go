package sim

import "sync"

// gmacAudit is what the audit knows of a descriptor list: the words of descriptors that
// the device owns. There is no tail that hands descriptors over, so it learns of them when
// the channel starts, with each poll demand and when the engine fetches one. The owner of
// the queue and the engine reach it, each under mu.
type gmacAudit struct {
	mu   sync.Mutex
	live bool             // the channel runs
	at   gmacListState    // where the next walk begins
	snap map[uint32]words // by address
}

// maxWalk bounds a walk over a list that a driver made without an end.
const maxWalk = 4096

func (a *gmacAudit) start(l *gmacList) {
	a.mu.Lock()
	a.live, a.at = true, l.gmacListState
	a.snap = map[uint32]words{}
	a.mu.Unlock()
	a.walk(l)
}

func (a *gmacAudit) stop() {
	a.mu.Lock()
	a.live = false
	a.mu.Unlock()
}

// walk remembers the descriptors that were handed over since the last walk.
func (a *gmacAudit) walk(l *gmacList) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range maxWalk {
		if !a.live {
			return
		}
		if _, ok := a.snap[a.at.addr]; ok {
			return // all the way round
		}
		w, ok := a.peek(l.m, a.at.addr)
		if !ok || w[0]&gmacOwn == 0 {
			return
		}
		a.snap[a.at.addr] = w
		a.at.addr = a.at.behind(&w, l.m.cfg.BusBytes)
	}
}

// peek reads a descriptor for the audit, on any goroutine.
func (a *gmacAudit) peek(m *Model, addr uint32) (w words, ok bool) {
	p := m.window(uint64(addr), len(w)*4)
	if p == nil {
		return w, false
	}
	for k := range w {
		w[k] = uint32(p[4*k]) | uint32(p[4*k+1])<<8 | uint32(p[4*k+2])<<16 | uint32(p[4*k+3])<<24
	}
	return w, true
}

// fetch compares the fetched descriptor with what was handed over.
func (a *gmacAudit) fetch(l *gmacList) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.live {
		return
	}
	was, ok := a.snap[l.addr]
	if ok && was != l.r.fetched {
		l.r.report(OwnedWrite, int(l.r.cur), "handed over as %08x, fetched as %08x", was, l.r.fetched)
	}
	a.snap[l.addr] = l.r.fetched
	if a.at.addr == l.addr {
		a.at.addr = l.following()
	}
}

// release compares the descriptor as it is now with what was fetched; with the write-back
// that follows under the same lock the device's ownership ends.
func (a *gmacAudit) release(l *gmacList) {
	was, ok := a.snap[l.addr]
	if !a.live || !ok {
		return
	}
	delete(a.snap, l.addr)
	if w, ok := a.peek(l.m, l.addr); ok && w != was {
		l.r.report(OwnedWrite, int(l.r.cur), "fetched as %08x, written back over %08x", was, w)
	}
}
