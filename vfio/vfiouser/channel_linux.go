package vfiouser

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// message is a message of the client. Descriptors that nobody took out of fds are closed
// with it.
type message struct {
	header
	body []byte
	fds  []int
	// bad says what is wrong with it, so that it is not to be served; framing is lost
	// too if fatal.
	bad   error
	fatal bool

	small [256]byte // body, of most
}

var spare = sync.Pool{New: func() any { return new(message) }}

// free closes what is left of a message and gives it back.
func (m *message) free() {
	m.closeFDs()
	m.body, m.bad, m.fatal = nil, nil, false
	spare.Put(m)
}

// closeFDs closes the descriptors that nobody took.
func (m *message) closeFDs() {
	for _, fd := range m.fds {
		_ = unix.Close(fd)
	}
	m.fds = m.fds[:0]
}

// takeFDs hands the descriptors over.
func (m *message) takeFDs() []int {
	fds := append([]int(nil), m.fds...)
	m.fds = m.fds[:0]
	return fds
}

// receiver reads messages from a connection.
type receiver struct {
	conn *net.UnixConn
	oob  []byte
}

// scmMax is how many descriptors the kernel lets a sender put into one part (SCM_MAX_FD).
const scmMax = 253

func newReceiver(c *net.UnixConn) *receiver {
	return &receiver{conn: c, oob: make([]byte, unix.CmsgSpace(scmMax*4))}
}

// next reads a message. An error is the end of the connection: io.EOF between messages.
func (r *receiver) next() (*message, error) {
	m := spare.Get().(*message)
	head := m.small[:headerSize]
	if err := r.fill(m, head); err != nil {
		m.free()
		return nil, err
	}
	m.header = parseHeader(head)
	switch kind := m.flags & flagTypeMask; {
	case m.size < headerSize || m.size > maxMessage:
		m.bad, m.fatal = broken(syscall.E2BIG, "a message of %d bytes; %d to %d are possible", m.size, headerSize, maxMessage), true
		return m, nil
	case kind != flagCommand && kind != flagReply:
		m.bad, m.fatal = broken(syscall.EINVAL, "a message of type %d", kind), true
		return m, nil
	}
	n := int(m.size) - headerSize
	if m.body = m.small[:min(n, len(m.small))]; n > len(m.small) {
		m.body = make([]byte, n)
	}
	if err := r.fill(m, m.body); err != nil {
		m.free()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return m, nil
}

// broken is a refusal of what is no message: the connection ends.
func broken(errno syscall.Errno, format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMessage, refuse(errno, format, args...))
}

// fill reads len(b) bytes, and the descriptors that come with them: those above the limit
// are closed at once.
func (r *receiver) fill(m *message, b []byte) error {
	for read := 0; read < len(b); {
		n, oobn, flags, _, err := r.conn.ReadMsgUnix(b[read:], r.oob)
		if oobn > 0 {
			r.fds(m, r.oob[:oobn])
		}
		if flags&unix.MSG_CTRUNC != 0 {
			m.bad = refuse(syscall.EMFILE, "the descriptors did not all arrive")
		}
		if err != nil {
			if errors.Is(err, io.EOF) && read > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		read += n
	}
	return nil
}

// fds takes descriptors from control messages.
func (r *receiver) fds(m *message, oob []byte) {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		m.bad = refuse(syscall.EINVAL, "control message: %v", err)
	}
	for i := range all {
		fds, err := unix.ParseUnixRights(&all[i])
		if err != nil { // of another kind, which the kernel adds only when asked to
			continue
		}
		for _, fd := range fds {
			if len(m.fds) < maxFDs {
				m.fds = append(m.fds, fd)
				continue
			}
			_ = unix.Close(fd)
			m.bad = refuse(syscall.EINVAL, "more than %d descriptors in one message", maxFDs)
		}
	}
}

// queue holds the commands that were received and not served yet. Bytes and descriptors in
// it are bounded: who puts in waits.
type queue struct {
	mu         sync.Mutex
	changed    sync.Cond
	list       []*message
	bytes, fds int
	closed     bool
}

const (
	queueBytes = 2 * maxMessage
	queueFDs   = 4 * maxFDs
)

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

func (m *message) cost() int { return len(m.body) + len(m.small) }

// put adds a message, or frees it when the queue is closed.
func (q *queue) put(m *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.list) > 0 && (q.bytes+m.cost() > queueBytes || q.fds+len(m.fds) > queueFDs) {
		q.changed.Wait()
	}
	if q.closed {
		m.free()
		return
	}
	q.list = append(q.list, m)
	q.bytes += m.cost()
	q.fds += len(m.fds)
	q.changed.Broadcast()
}

// get takes the oldest message out, or returns nil when the queue was closed and is empty.
func (q *queue) get() *message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 {
		if q.closed {
			return nil
		}
		q.changed.Wait()
	}
	m := q.list[0]
	n := copy(q.list, q.list[1:])
	q.list[n] = nil
	q.list = q.list[:n]
	q.bytes -= m.cost()
	q.fds -= len(m.fds)
	q.changed.Broadcast()
	return m
}

// end lets get return what is in the queue, and then nil; drop throws it away.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.list {
		m.free()
	}
	q.closed, q.list, q.bytes, q.fds = true, nil, 0, 0
	q.changed.Broadcast()
}

// sender writes messages to a connection, one at a time.
type sender struct {
	conn *net.UnixConn
	lock chan struct{} // has room for who writes
	err  error         // why nothing can be written any more; with the lock
}

func newSender(c *net.UnixConn) *sender { return &sender{conn: c, lock: make(chan struct{}, 1)} }

// send writes a whole message. After an error a part of it may be out, so nothing more
// can be written.
func (s *sender) send(b []byte) error {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	return s.write(b)
}

// write is send for who has the lock.
func (s *sender) write(b []byte) error {
	if s.err != nil {
		return s.err
	}
	if _, err := s.conn.Write(b); err != nil {
		s.err = fmt.Errorf("write: %w", err)
		s.conn.Close()
	}
	return s.err
}

// end ends the connection for the reason err.
func (s *sender) end(err error) {
	s.conn.Close() // who writes has the lock, and may wait
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.err = err
}

// failure is why nothing could be written, or nil.
func (s *sender) failure() error {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	return s.err
}
