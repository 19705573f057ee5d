package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Monitor is QEMU's control socket, which speaks QMP: a greeting, then an answer to each
// command, with events in between, all of them JSON objects. Its methods may be called by several
// goroutines.
type Monitor struct {
	timeout time.Duration

	mu   sync.Mutex // guards what follows
	conn net.Conn
	in   *json.Decoder
	err  error // why there are no answers any more
}

// message is what QEMU says.
type message struct {
	QMP    json.RawMessage `json:"QMP"`    // the greeting
	Return json.RawMessage `json:"return"` // a command was carried out
	Event  string          `json:"event"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

// NewMonitor takes the socket fd, which it closes. timeout is how long an answer may take.
func NewMonitor(fd int, timeout time.Duration) (*Monitor, error) {
	f := os.NewFile(uintptr(fd), "monitor")
	defer f.Close()
	c, err := net.FileConn(f) // has a file of its own
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	return &Monitor{timeout: timeout, conn: c, in: json.NewDecoder(c)}, nil
}

// Meet takes the greeting, after which commands are obeyed.
func (m *Monitor) Meet() error {
	m.mu.Lock()
	err := m.conn.SetDeadline(time.Now().Add(m.timeout))
	var greeting message
	if err == nil {
		greeting, err = m.next()
	}
	m.mu.Unlock()
	if err == nil && greeting.QMP == nil {
		err = fmt.Errorf("%w: no greeting on the monitor", ErrProtocol)
	}
	if err != nil {
		return err
	}
	return m.Run("qmp_capabilities", nil, "")
}

// next reads a message. mu is held.
func (m *Monitor) next() (message, error) {
	var x message
	if m.err != nil {
		return x, m.err
	}
	if err := m.in.Decode(&x); err != nil {
		// What comes next may be the rest of this one.
		m.err = fmt.Errorf("monitor: %w", err)
	}
	return x, m.err
}

// Run has a command carried out and, unless event is "", waits for that event, which
// says that what the command started is done.
func (m *Monitor) Run(command string, args map[string]any, event string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	request := map[string]any{"execute": command}
	if args != nil {
		request["arguments"] = args
	}
	b, err := json.Marshal(request)
	if err == nil {
		err = m.conn.SetDeadline(time.Now().Add(m.timeout))
	}
	if err == nil {
		_, err = m.conn.Write(b)
	}
	if err != nil {
		m.err = fmt.Errorf("monitor: %w", err)
		return m.err
	}
	for returned, happened := false, event == ""; !returned || !happened; {
		x, err := m.next()
		switch {
		case err != nil:
			return err
		case x.Error != nil:
			return fmt.Errorf("%s: %s (%s): %w", command, x.Error.Desc, x.Error.Class, errors.ErrUnsupported)
		case x.Return != nil:
			returned = true
		case x.Event == event:
			happened = true
		}
	}
	return nil
}

// Close may be called more than once.
func (m *Monitor) Close() error {
	if err := m.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
