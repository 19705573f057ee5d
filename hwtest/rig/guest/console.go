package guest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// console takes what the guest's kernel says: it writes it to a file, keeps the end, and
// looks for words that are bad news. It may be used by several goroutines.
type console struct {
	mu       sync.Mutex
	file     io.Writer
	failed   error // of the file
	partial  []byte
	last     []string
	fatal    string // the first line that says that the kernel is at its end
	warnings []string
}

const (
	keptLines = 100
	longLine  = 4096 // bytes of a line that are looked at
)

// Lines of Linux that mean the end of the guest: with oops=panic an oops is one.
var fatalWords = []string{"Kernel panic - not syncing", "Oops: ", "Oops - ", "Internal error: Oops", "BUG: unable to handle", "general protection fault", "kernel BUG at ", "qemu: hardware error"}

// Lines of Linux that mean a bug, after which it goes on.
var warningWords = []string{"WARNING: ", "BUG: ", "INFO: task ", "UBSAN: ", "Unhandled fault", "DMAR: DRHD: handling fault status", "DMAR: [DMA "}

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.file.Write(b); err != nil && c.failed == nil {
		c.failed = err
	}
	for rest := b; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		if room := longLine - len(c.partial); room > 0 {
			c.partial = append(c.partial, line[:min(room, len(line))]...)
		}
		if whole {
			c.line(strings.TrimRight(string(c.partial), "\r"))
			c.partial = c.partial[:0]
		}
		rest = after
	}
	return len(b), nil
}

// line looks at a line.
func (c *console) line(l string) {
	if len(c.last) == keptLines {
		c.last = append(c.last[:0], c.last[1:]...)
	}
	c.last = append(c.last, l)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(l, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(fatalWords):
		if c.fatal == "" {
			c.fatal = strings.TrimSpace(l)
		}
	case has(warningWords):
		c.warnings = append(c.warnings, strings.TrimSpace(l))
	}
}

// tail is the end of what it said.
func (c *console) tail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(strings.Join(append(c.last[:len(c.last):len(c.last)], string(c.partial)), "\n"))
}

// end is the line by which the kernel is at its end, or "".
func (c *console) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fatal
}

// bugs are the lines that tell of a bug.
func (c *console) bugs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.warnings...)
}

// take removes the lines with a text from bugs and returns them.
func (c *console) take(text string) (taken []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = slices.DeleteFunc(c.warnings, func(l string) bool {
		has := strings.Contains(l, text)
		if has {
			taken = append(taken, l)
		}
		return has
	})
	return taken
}

// err is why the file did not take all.
func (c *console) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
