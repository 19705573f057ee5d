package qemu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running QEMU with its log. Its methods may be called by several goroutines.
type Process struct {
	*Child
	log  tail
	file string // that has the log, or ""
}

// Start starts QEMU: command is the program and the arguments that go before args, such as
// a dynamic loader; env is added to the environment of this process. files are inherited as
// the descriptors from 3 on, and stay the caller's. log is the file that gets what QEMU
// writes, truncated before; "" keeps nothing but the end of it, for errors.
func Start(command, env, args []string, files []*os.File, log string) (*Process, error) {
	p := &Process{file: log}
	if log != "" {
		f, err := os.Create(log)
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		p.log.file = f
	}
	c := exec.Command(command[0], append(append([]string{}, command[1:]...), args...)...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &p.log, &p.log
	c.ExtraFiles = files
	var err error
	if p.Child, err = StartChild(c); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: does the program %s exist, for this machine's architecture?", err, command[0]), p.log.close())
	}
	return p, nil
}

// Close ends the process and waits for it.
func (p *Process) Close() error {
	_ = p.Kill() // it was ended, and that is how it ended
	return p.log.close()
}

// endTime is how long QEMU gets from closing its socket to its end.
const endTime = 5 * time.Second

// Gone explains err, with which a call on QEMU's socket failed: if the socket has ended, the
// process is ended too, and the reason is how it did. The reason is ErrGone; remedy is what
// QEMU wrote.
func (p *Process) Gone(err error) (remedy string, reason error) {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		// The socket ends with the process; how it ended is known in a moment.
		select {
		case <-p.ended:
		case <-time.After(endTime):
		}
		if err = p.Kill(); err == nil {
			err = errors.New("it ended")
		}
	}
	return p.log.remedy(p.file), fmt.Errorf("%w: %w", ErrGone, err)
}

// Wrote is what QEMU wrote last, for an error, or "".
func (p *Process) Wrote() string { return p.log.remedy("") }

// tail keeps the end of what is written to it, and writes all of it to a file.
type tail struct {
	mu   sync.Mutex
	file *os.File
	last []byte
}

const tailBytes = 1024

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if n := len(t.last) - tailBytes; n > 0 {
		t.last = append(t.last[:0], t.last[n:]...)
	}
	if t.file != nil {
		return t.file.Write(b)
	}
	return len(b), nil
}

// close closes the file.
func (t *tail) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	f := t.file
	t.file = nil
	return f.Close()
}

// remedy is the part of an error that shows what QEMU wrote.
func (t *tail) remedy(file string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.last))
	if s != "" {
		s = "QEMU wrote: " + s
	}
	if file != "" {
		s = strings.TrimPrefix(s+"; its log is "+file, "; ")
	}
	return s
}
