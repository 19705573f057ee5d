package qemu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// peer is the other end of a connection.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// dial returns a connection and its other end. Lines about interrupts go to irq.
func dial(t *testing.T, timeout time.Duration, irq func(uint64, bool)) (*Conn, peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "qemu")
	defer f.Close()
	other, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConn(fds[0], timeout, irq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), other.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return c, peer{other, bufio.NewReader(other)}
}

// exchange is a request and what is answered, in parts that are written one by one. The
// answer "" hangs up.
type exchange struct {
	want   string
	answer []string
}

// serve answers requests as the script says.
func (p peer) serve(script ...exchange) <-chan error {
	done := make(chan error, 1)
	go func() {
		for _, e := range script {
			got, err := p.in.ReadString('\n')
			if err != nil || got != e.want+"\n" {
				done <- fmt.Errorf("request %q instead of %q: %v", got, e.want, err)
				p.Close()
				return
			}
			for _, a := range e.answer {
				if a == "" {
					p.Close()
				} else if _, err := p.Write([]byte(a)); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	return done
}

func TestRequests(t *testing.T) {
	var irqs []string
	c, p := dial(t, time.Minute, func(n uint64, high bool) { irqs = append(irqs, fmt.Sprint(n, high)) })
	done := p.serve(
		exchange{"readl 0xf0802020", []string{"OK 0x0000000000001032\n"}},
		exchange{"writel 0xf0803000 0x1", []string{"OK\n"}},
		exchange{"writel 0xf0803000 0xffffffff", []string{"IRQ raise 0\nIRQ lower 0\n", "IRQ raise 3\nO", "K\n"}},
		exchange{"readl 0x0", []string{"IRQ lo", "wer 3\nOK 0xff", "ffffff", "\n"}},
		exchange{"irq_intercept_out /machine x", []string{"FAIL Unknown device\n"}},
		exchange{"irq_intercept_out /machine y", []string{"OK\n"}},
		exchange{"inl 0xcfc", []string{"OK 0x1234\n"}},
		exchange{"readq 0x0", []string{"OK 0xfedcba9876543210\n"}},
		exchange{"inl 0", []string{"OK\n"}},
		exchange{"inl 1", []string{"FAIL no\n"}},
	)
	v, err := c.Load32(0xf080_2020)
	if v != 0x1032 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if err := errors.Join(c.Store32(0xf080_3000, 1), c.Store32(0xf080_3000, 1<<32-1)); err != nil {
		t.Error(err)
	}
	if v, err = c.Load32(0); v != 1<<32-1 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if err := c.Command("irq_intercept_out /machine x"); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "Unknown device") {
		t.Error(err)
	}
	if err := c.Command("irq_intercept_out /machine y"); err != nil {
		t.Error(err)
	}
	if v, err := c.Value("inl 0xcfc"); v != 0x1234 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if v, err := c.Value("readq 0x0"); v != 0xfedcba9876543210 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if _, err := c.Value("inl 0"); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
	if _, err := c.Value("inl 1"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// All were handled before the answer of the request that they came with.
	if d := cmp.Diff([]string{"0 true", "0 false", "3 true", "3 false"}, irqs); d != "" {
		t.Errorf("interrupts (-want +got):\n%s", d)
	}
}

// TestIdle: lines come while nobody asks, also between requests.
func TestIdle(t *testing.T) {
	seen := make(chan bool, 10)
	c, p := dial(t, time.Minute, func(_ uint64, high bool) { seen <- high })
	for i := range 100 {
		if _, err := p.Write([]byte("IRQ raise 0\nIRQ lower")); err != nil {
			t.Fatal(err)
		}
		if !<-seen {
			t.Fatal("low")
		}
		if i%2 == 0 {
			done := p.serve(exchange{"readl 0x4", []string{" 0\nOK 0x7\n"}})
			if v, err := c.Load32(4); v != 7 || err != nil {
				t.Fatalf("%#x, %v", v, err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		} else if _, err := p.Write([]byte(" 0\n")); err != nil {
			t.Fatal(err)
		}
		if <-seen {
			t.Fatal("high")
		}
	}
}

// TestManyAsk: requests of several goroutines get each its own answer.
func TestManyAsk(t *testing.T) {
	const each, users = 500, 4
	var raised int
	c, p := dial(t, time.Minute, func(uint64, bool) { raised++ })
	go func() {
		for {
			text, err := p.in.ReadString('\n')
			if err != nil {
				return
			}
			var addr uint64
			if _, err := fmt.Sscanf(text, "readl 0x%x\n", &addr); err != nil {
				p.Close()
				return
			}
			// one line before the answer and one behind it
			if _, err := fmt.Fprintf(p, "IRQ raise 0\nOK 0x%x\nIRQ lower 0\n", addr^0xff); err != nil {
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for i := range each {
				addr := uint64(u<<16 | i)
				if v, err := c.Load32(addr); uint64(v) != addr^0xff || err != nil {
					t.Errorf("%#x is %#x, %v", addr, v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := c.Load32(0); err != nil { // behind all lines but one
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if want := 2 * (each*users + 1); raised != want && raised != want-1 {
		t.Errorf("%d lines about interrupts instead of %d", raised, want)
	}
}

// TestEnds: what ends a connection ends all requests, once and for all.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer []string
		want   error
	}{
		"hangs up":                {[]string{""}, io.EOF},
		"in the middle":           {[]string{"IRQ raise 0\nOK 0x", ""}, io.EOF},
		"no word of it":           {[]string{"HELLO\n"}, ErrProtocol},
		"a line without an end":   {[]string{strings.Repeat("x", 3*maxLine)}, ErrProtocol},
		"a failure":               {[]string{"FAIL no\n"}, ErrProtocol},
		"no value":                {[]string{"OK\n"}, ErrProtocol},
		"a value that is none":    {[]string{"OK zero\n"}, ErrProtocol},
		"an interrupt that is no": {[]string{"IRQ fell 0\n"}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			conn, p := dial(t, time.Minute, func(uint64, bool) {})
			p.serve(exchange{"readl 0x0", c.answer})
			_, err := conn.Load32(0)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			<-conn.dead
			for _, again := range []error{conn.Store32(0, 0), conn.Command("x"), conn.Reason()} {
				if !errors.Is(again, c.want) {
					t.Errorf("afterwards: %v, want %v", again, c.want)
				}
			}
		})
	}
}

// TestIdleEnds: the end is noticed while nobody asks.
func TestIdleEnds(t *testing.T) {
	for name, f := range map[string]struct {
		do   func(c *Conn, p peer)
		want error
	}{
		"hangs up":    {func(_ *Conn, p peer) { p.Close() }, io.EOF},
		"hung up":     {func(c *Conn, _ peer) { c.HangUp() }, ErrClosed},
		"not asked":   {func(_ *Conn, p peer) { p.Write([]byte("OK 0x1\n")) }, ErrProtocol},
		"not a line":  {func(_ *Conn, p peer) { p.Write([]byte("\n")) }, ErrProtocol},
		"half a line": {func(_ *Conn, p peer) { p.Write([]byte("IRQ")); p.Close() }, io.EOF},
	} {
		c, p := dial(t, time.Minute, func(uint64, bool) {})
		f.do(c, p)
		<-c.dead
		if err := c.Reason(); !errors.Is(err, f.want) {
			t.Errorf("%s: %v, want %v", name, err, f.want)
		}
	}
}

// TestSilence: one that does not answer is dead after a time.
func TestSilence(t *testing.T) {
	c, _ := dial(t, time.Millisecond, func(uint64, bool) {})
	if _, err := c.Load32(0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	<-c.dead
}

// TestHangUp: a request that is under way ends.
func TestHangUp(t *testing.T) {
	c, p := dial(t, time.Minute, func(uint64, bool) {})
	done := make(chan error)
	go func() { done <- c.Store32(0, 1) }()
	if _, err := p.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := c.HangUp(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
