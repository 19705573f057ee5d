package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestOther(t *testing.T) {
	n, err := New()
	if runtime.GOOS == "linux" {
		if err == nil {
			err = n.Close()
		} else if errors.Is(err, os.ErrPermission) && strings.Contains(err.Error(), "root") {
			err = nil
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, errors.ErrUnsupported) || n != nil {
		t.Errorf("%v, %v", n, err)
	}
}

func TestTAPDo(t *testing.T) {
	CheckLeaks(t)
	a, b := ForTest(t), ForTest(t)
	interfaces := func() (names string) {
		list, err := net.Interfaces()
		if err != nil {
			t.Error(err)
		}
		for _, i := range list {
			names += i.Name + " "
		}
		return names
	}
	outside := interfaces()
	// Calls overlap and nest: each function has a thread of its own.
	meet := make(chan struct{})
	var wg sync.WaitGroup
	for _, n := range []*NS{a, a, b} {
		wg.Go(func() {
			err := n.Do(func() error {
				select { // two of the three are here at the same time
				case meet <- struct{}{}:
				case <-meet:
				case <-testContext(t).Done():
					t.Error("the functions do not overlap")
				}
				if got := interfaces(); got != "lo " {
					t.Errorf("inside there is %s", got)
				}
				return b.Do(func() error { return n.Do(func() error { return nil }) })
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	meet <- struct{}{} // and one with this
	wg.Wait()
	if got := interfaces(); got != outside {
		t.Errorf("outside there was %s and is %s", outside, got)
	}
	want := errors.New("mine")
	if err := a.Do(func() error { return want }); err != want {
		t.Error(err)
	}
	if err := a.Do(func() error { runtime.Goexit(); return nil }); err != errReturn {
		t.Error(err)
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if err := a.Do(func() error { t.Error("ran"); return nil }); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestTAPConnections checks that what was made in a namespace is in it and works
// outside, also after Close.
func TestTAPConnections(t *testing.T) {
	CheckLeaks(t)
	n := ForTest(t)
	ctx := testContext(t)
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		l, err := n.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			t.Error("reached from outside")
		}
		c, err := n.Dial(ctx, "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		udp, err := n.ListenPacket("udp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		u, err := n.Dial(ctx, "udp", udp.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		if host == "[::1]" {
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
		}
		buf := make([]byte, 16)
		if _, err := c.Write([]byte("stream")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(s, buf[:6]); err != nil || string(buf[:6]) != "stream" {
			t.Errorf("%q, %v", buf[:6], err)
		}
		if _, err := u.Write([]byte("packet")); err != nil {
			t.Error(err)
		}
		if k, _, err := udp.ReadFrom(buf); err != nil || string(buf[:k]) != "packet" {
			t.Errorf("%q, %v", buf[:k], err)
		}
		if err := errors.Join(u.Close(), udp.Close(), s.Close(), c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestTAPNames(t *testing.T) {
	n := ForTest(t)
	for _, address := range []string{"localhost:0", ":0", "127.0.0.1", ""} {
		_, err1 := n.Listen("tcp", address)
		_, err2 := n.ListenPacket("udp", address)
		_, err3 := n.Dial(testContext(t), "tcp", address)
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), "IP address") {
				t.Errorf("%q: %v", address, err)
			}
		}
	}
}

func TestTAPPing(t *testing.T) {
	CheckLeaks(t)
	n := ForTest(t)
	for _, to := range []string{"127.0.0.1", "::1"} {
		for _, size := range []int{0, 1, 56, 1473, 65000} {
			if err := n.Ping(testContext(t), netip.MustParseAddr(to), size); err != nil {
				t.Error(err)
			}
		}
	}
	for _, size := range []int{-1, 65508} {
		if err := n.Ping(testContext(t), netip.MustParseAddr("127.0.0.1"), size); err == nil {
			t.Errorf("%d bytes", size)
		}
	}
	if err := n.Ping(testContext(t), netip.MustParseAddr("10.1.2.3"), 56); err == nil {
		t.Error("answer from nowhere")
	}
	// Nobody answers to this.
	if err := n.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/icmp_echo_ignore_all", []byte("1"), 0) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := n.Ping(ctx, netip.MustParseAddr("127.0.0.1"), 56); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestInternetChecksum(t *testing.T) {
	for _, tc := range []struct {
		in   []byte
		want uint16
	}{
		{nil, 0xffff},
		{[]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, ^uint16(0xddf2)}, // RFC 1071, 3
		{[]byte{0xff}, 0x00ff},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x00, 0x01}, 0xfffe},
	} {
		if got := internetChecksum(tc.in); got != tc.want {
			t.Errorf("%x: %04x, want %04x", tc.in, got, tc.want)
		}
	}
}
