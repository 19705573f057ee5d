package channel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// message is a line, in either direction.
type message struct {
	Hello  bool            `json:"hello,omitempty"`
	ID     uint64          `json:"id,omitempty"`
	Job    string          `json:"job,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Cancel bool            `json:"cancel,omitempty"`
	Log    *string         `json:"log,omitempty"`
	Done   bool            `json:"done,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

// failure is an error as it goes over the line.
type failure struct {
	Text  string `json:"text"`
	Errno int    `json:"errno,omitempty"` // of the guest's Linux; 0 for none
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	var n syscall.Errno
	if errors.As(err, &n) {
		f.Errno = int(n)
	}
	return f
}

// maxLine is the longest line in bytes: results with the content of files are long.
const maxLine = 16 << 20

var errTooLong = fmt.Errorf("channel: a message of %d bytes or more", maxLine)

// stream writes messages from several goroutines and reads them in one.
type stream struct {
	mu    sync.Mutex
	w     io.Writer
	lines *bufio.Scanner
}

func newStream(rw io.ReadWriter) *stream {
	lines := bufio.NewScanner(rw)
	lines.Buffer(nil, maxLine)
	return &stream{w: rw, lines: lines}
}

func (s *stream) write(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) >= maxLine {
		return fmt.Errorf("%w: it has %d bytes", errTooLong, len(b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A newline first ends what noise may have left on the line.
	_, err = s.w.Write(append(append([]byte{'\n'}, b...), '\n'))
	return err
}

// read returns the next message.
func (s *stream) read() (message, error) {
	for s.lines.Scan() {
		b := bytes.TrimSpace(s.lines.Bytes())
		var m message
		if len(b) > 0 && b[0] == '{' && json.Unmarshal(b, &m) == nil && (m.ID != 0 || m.Hello) {
			return m, nil
		}
	}
	if err := s.lines.Err(); err != nil {
		return message{}, fmt.Errorf("channel: %w", err)
	}
	return message{}, io.EOF
}
