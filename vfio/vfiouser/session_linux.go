package vfiouser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// session is a client that is served. Two goroutines do it: one reads messages, hands
// answers to who waits for them and puts commands into a queue; the other, which calls the
// device, serves the queue.
type session struct {
	f     *Function
	dev   Device
	in    *receiver
	out   *sender
	queue *queue
	mem   memory
	reply []byte        // the message that is being written
	gone  chan struct{} // closed when nothing is read any more

	negotiated bool
	transfer   int // bytes of data that the client takes in one message

	mu      sync.Mutex // guards what follows
	waits   map[uint16]*wait
	id      uint16
	serving bool // a command whose answer the client waits for
	stalled bool // it did not answer meanwhile
}

// wait is a message to the client that has not been answered.
type wait struct {
	addr uint64
	read []byte // where data goes, of a DMA_READ
	n    int
	done chan error // has room for one; nil when nobody waits any more
}

// ServeConn serves one client until it hangs up (the result is nil), ctx ends (ctx.Err())
// or the client breaks the protocol, and closes c. Every call of dev has returned then, and
// nothing of the client's is held any more. It is an ErrBusy when another client is served.
func (f *Function) ServeConn(ctx context.Context, c *net.UnixConn, dev Device) error {
	defer c.Close()
	if !f.busy.CompareAndSwap(false, true) {
		return &Error{"serve", f.cfg.Name, ErrBusy, "a function has one client at a time"}
	}
	defer f.busy.Store(false)
	s := &session{
		f: f, dev: dev, in: newReceiver(c), out: newSender(c), queue: newQueue(), gone: make(chan struct{}),
		mem: memory{files: map[inode]*file{}}, transfer: maxTransfer, waits: map[uint16]*wait{},
	}
	stop := context.AfterFunc(ctx, func() {
		s.queue.drop()
		c.Close()
	})
	defer stop()
	read := make(chan error)
	go func() { read <- s.read() }()
	f.dma.setClient(s)
	err := s.serve()
	c.Close()
	s.queue.drop()
	if e := <-read; err == nil {
		err = e
	}
	if e := s.out.failure(); errors.Is(err, net.ErrClosed) && e != nil {
		err = e // it was closed here, for this reason
	}
	s.end()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
		return nil
	}
	return f.fail("serve", err)
}

// read reads until the connection ends.
func (s *session) read() error {
	defer close(s.gone)
	defer s.queue.end()
	for {
		m, err := s.in.next()
		if err != nil {
			return err
		}
		if m.flags&flagTypeMask == flagReply && !m.fatal {
			err := s.answered(m)
			m.free()
			if err != nil {
				s.out.end(err)
				return err
			}
			continue
		}
		fatal := m.fatal
		s.queue.put(m)
		if fatal {
			return nil
		}
	}
}

// serve serves commands until there are no more.
func (s *session) serve() error {
	for m := s.queue.get(); m != nil; m = s.queue.get() {
		err := s.command(m)
		m.free()
		if err != nil {
			return err
		}
	}
	return nil
}

// command serves one command. An error ends the connection.
func (s *session) command(m *message) error {
	awaited := m.flags&flagNoReply == 0
	s.setServing(awaited)
	s.reply = append(s.reply[:0], make([]byte, headerSize)...)
	err := m.bad
	if err == nil {
		err = s.dispatch(m)
	}
	m.closeFDs() // before the answer: then the client knows
	fatal := m.fatal || err != nil && !s.negotiated
	h := header{id: m.id, cmd: m.cmd, flags: flagReply}
	if err != nil {
		err = s.f.fail(commandName(m.cmd), err)
		if !fatal { // else it is the result of ServeConn
			s.f.report(err)
		}
		h.flags |= flagError
		h.errno = uint32(errnoOf(err))
		s.reply = s.reply[:headerSize]
	}
	s.setServing(false)
	if awaited || fatal {
		h.size = uint32(len(s.reply))
		h.append(s.reply[:0])
		if err := s.out.send(s.reply); err != nil {
			return err
		}
	}
	if fatal {
		return err
	}
	return nil
}

func (s *session) setServing(awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving, s.stalled = awaited, false
}

// end gives back what the client gave.
func (s *session) end() {
	f := s.f
	f.dma.setClient(nil)
	// All bus addresses: this is not refused.
	gone, _ := f.dma.remove(0, ^uint64(0))
	s.letGo(gone)
	f.mu.Lock()
	old := f.irqs.releaseAll()
	f.mu.Unlock()
	if err := closeAll(old); err != nil {
		f.report(f.fail("close eventfds", err))
	}
}

// letGo makes the device forget windows that were removed, and unmaps files that none
// shows any more.
func (s *session) letGo(gone []*window) {
	for _, w := range gone {
		if w.lent.Load() {
			s.dev.DropWindows()
			break
		}
	}
	for _, w := range gone {
		if f := w.file; f != nil && f.windows == 0 && f.unmap != nil {
			f.unmap()
			f.unmap = nil
		}
	}
}

// limit implements messages.
func (s *session) limit() int { return s.transfer }

// access implements messages: it asks the client for memory.
func (s *session) access(addr uint64, p []byte, write bool) error {
	w := &wait{addr: addr, n: len(p), done: make(chan error, 1)}
	h := header{cmd: cmdDMARead, size: headerSize + dmaMessageSize}
	if write {
		h.cmd, h.size = cmdDMAWrite, h.size+uint32(len(p))
	} else {
		w.read = p
	}
	var err error
	if h.id, err = s.register(w); err != nil {
		return err
	}
	b := h.append(make([]byte, 0, h.size))
	b = order.AppendUint64(b, addr)
	b = order.AppendUint64(b, uint64(len(p)))
	if write {
		b = append(b, p...)
	}
	timer := time.NewTimer(s.f.cfg.MessageTimeout)
	defer timer.Stop()
	select {
	case s.out.lock <- struct{}{}:
	case <-timer.C:
		return s.abandon(h.id, w, true)
	case <-s.gone:
		return s.abandon(h.id, w, true)
	}
	// Who waits for the lock has no limit, so who has it needs one; a message that is out
	// in part ends the connection.
	s.out.conn.SetWriteDeadline(time.Now().Add(s.f.cfg.MessageTimeout))
	err = s.out.write(b)
	s.out.conn.SetWriteDeadline(time.Time{})
	<-s.out.lock
	if err != nil {
		return errors.Join(err, s.abandon(h.id, w, true))
	}
	select {
	case err := <-w.done:
		return err
	case <-timer.C:
		return s.abandon(h.id, w, false)
	case <-s.gone:
		return s.abandon(h.id, w, true)
	}
}

// register gives a message a number that no other has.
func (s *session) register(w *wait) (uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving && s.stalled {
		return 0, fmt.Errorf("the client answers nothing while it waits for an answer: %w", os.ErrDeadlineExceeded)
	}
	for range 1 << 16 {
		s.id++
		if s.waits[s.id] == nil {
			s.waits[s.id] = w
			return s.id, nil
		}
	}
	return 0, fmt.Errorf("too many messages have no answer: %w", os.ErrDeadlineExceeded)
}

// abandon ends the wait for a message that has not been answered. Its number is free again
// if no answer to it can come.
func (s *session) abandon(id uint16, w *wait, free bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-w.done: // it was, just now
		return err
	default:
	}
	w.done, w.read = nil, nil
	if free {
		delete(s.waits, id)
	}
	select {
	case <-s.gone:
		return fmt.Errorf("%w any more", ErrNoClient)
	default:
	}
	s.stalled = s.serving
	return fmt.Errorf("no answer in %v: %w", s.f.cfg.MessageTimeout, os.ErrDeadlineExceeded)
}

// answered takes the client's answer to a message. An error ends the connection.
func (s *session) answered(m *message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waits[m.id]
	if w == nil {
		return fmt.Errorf("%w: an answer to message %d of %s, which was not sent", ErrMessage, m.id, commandName(m.cmd))
	}
	delete(s.waits, m.id)
	if w.done == nil {
		return nil // nobody waits any more
	}
	if m.flags&flagError != 0 {
		errno := unix.Errno(m.errno)
		if m.errno == 0 || m.errno > maxErrno {
			errno = unix.EIO
		}
		w.done <- fmt.Errorf("the client answered: %w", errno)
		return nil
	}
	err := w.check(m)
	if err == nil && w.read != nil {
		copy(w.read, m.body[dmaMessageSize:])
	}
	w.done <- err
	return err
}

// maxErrno is the largest errno that Linux knows (MAX_ERRNO).
const maxErrno = 4095

// check says what is wrong with an answer without error. That to a write has the count, in
// 4 bytes or in 8.
func (w *wait) check(m *message) error {
	cmd, need := uint16(cmdDMAWrite), dmaMessageSize-4
	if w.read != nil {
		cmd, need = cmdDMARead, dmaMessageSize+w.n
	}
	if m.cmd != cmd || len(m.body) < need || w.read != nil && len(m.body) > need {
		return fmt.Errorf("%w: %s with %d bytes answers a %s of %d", ErrMessage, commandName(m.cmd), len(m.body), commandName(cmd), w.n)
	}
	if addr, n := order.Uint64(m.body), order.Uint32(m.body[8:]); addr != w.addr || int(n) != w.n {
		return fmt.Errorf("%w: %d bytes at %#x answer %d at %#x", ErrMessage, n, addr, w.n, w.addr)
	}
	return nil
}
