package qemu

import (
	"bytes"
	"fmt"
	"strconv"
)

// kind is what a line from QEMU is.
type kind int

const (
	answer kind = iota // OK, with a value where one was asked for
	failed             // FAIL or ERR: the request was understood and not done
	raised             // an interrupt line went up
	lowered
)

// line is a parsed line.
type line struct {
	kind  kind
	value uint64 // of an answer, or the number of an interrupt line
	valid bool   // value is there
	text  string // of a failure
}

// maxLine is longer than every line of the protocol that is asked for here.
const maxLine = 512

// parse parses a line without its newline. It returns an error that is ErrProtocol
// for what is none.
func parse(b []byte) (line, error) {
	b = bytes.TrimSuffix(b, []byte{'\r'})
	word, rest, _ := bytes.Cut(b, []byte{' '})
	switch string(word) {
	case "OK":
		if len(rest) == 0 {
			return line{kind: answer}, nil
		}
		if v, err := strconv.ParseUint(string(rest), 0, 64); err == nil {
			return line{kind: answer, value: v, valid: true}, nil
		}
	case "FAIL", "ERR":
		return line{kind: failed, text: string(rest)}, nil
	case "IRQ":
		dir, number, _ := bytes.Cut(rest, []byte{' '})
		v, err := strconv.ParseUint(string(number), 10, 32)
		switch {
		case err != nil:
		case string(dir) == "raise":
			return line{kind: raised, value: v, valid: true}, nil
		case string(dir) == "lower":
			return line{kind: lowered, value: v, valid: true}, nil
		}
	}
	return line{}, fmt.Errorf("%w: %q", ErrProtocol, b)
}

// lines cuts a stream into lines.
type lines struct {
	buf  [2 * maxLine]byte
	r, w int // what is buffered: buf[r:w]
}

// next returns the next whole line, which is valid until the next call, or nil.
func (l *lines) next() []byte {
	i := bytes.IndexByte(l.buf[l.r:l.w], '\n')
	if i < 0 {
		return nil
	}
	b := l.buf[l.r : l.r+i]
	l.r += i + 1
	return b
}

// room returns where to read more into, or nil when a line is longer than any of
// the protocol.
func (l *lines) room() []byte {
	if l.r > 0 {
		l.w = copy(l.buf[:], l.buf[l.r:l.w])
		l.r = 0
	}
	if l.w >= maxLine && bytes.IndexByte(l.buf[:l.w], '\n') < 0 {
		return nil
	}
	return l.buf[l.w:]
}

// grow says that n bytes were read.
func (l *lines) grow(n int) { l.w += n }
