package netns

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mustTAP makes a TAP that is there until the end of the test.
func mustTAP(t *testing.T, n *NS, name string) int {
	t.Helper()
	var fd int
	err := n.Do(func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

// state describes an interface of a namespace.
func state(t *testing.T, n *NS, name string) (s string) {
	t.Helper()
	err := n.Do(func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		addrs, err := i.Addrs()
		s = fmt.Sprintf("up %v, MTU %d", i.Flags&net.FlagUp != 0, i.MTU)
		for _, a := range addrs {
			if !strings.HasPrefix(a.String(), "fe80") { // the kernel's own
				s += ", " + a.String()
			}
		}
		return err
	})
	if err != nil {
		s = err.Error()
	}
	return s
}

func TestTAPLinks(t *testing.T) {
	CheckLeaks(t)
	n := ForTest(t)
	mustTAP(t, n, "here")
	check := func(name, want string) {
		t.Helper()
		if got := state(t, n, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err error, texts ...string) {
		t.Helper()
		for _, s := range texts {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%v, want %q", err, s)
			}
		}
	}
	routed := func(to string) error {
		c, err := n.Dial(testContext(t), "udp", to)
		if err != nil {
			return err
		}
		return c.Close()
	}
	v4, v6 := netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")
	check("lo", "up true")
	check("here", "up false, MTU 1500")
	must(n.Up("here", 9000, v4, v6))
	check("here", "up true, MTU 9000, 10.0.0.1/24, fd00::1/64")
	must(n.Up("here", 0))
	check("here", "up true, MTU 9000")
	must(n.Down("here"))
	check("here", "up false, MTU 9000, 10.0.0.1/24")
	must(n.Up("here", 1500, v6))
	check("here", "up true, MTU 1500, 10.0.0.1/24, fd00::1/64")

	refused(routed("10.9.0.1:9"), "unreachable")
	must(n.Route(netip.MustParsePrefix("10.9.0.0/16"), netip.MustParseAddr("10.0.0.2")))
	must(n.Route(netip.MustParsePrefix("::/0"), netip.MustParseAddr("fd00::2")))
	refused(routed("10.8.0.1:9"), "unreachable")
	if err := routed("10.9.0.1:9"); err != nil {
		t.Error(err)
	}
	if err := routed("[2001:db8::1]:9"); err != nil {
		t.Error(err)
	}

	refused(n.Up("none", 0), "none", "no such")
	refused(n.Up("here", -1), "here", "MTU")
	refused(n.Up("here", 1), "here", "invalid")
	refused(n.Up("here", 0, v4), "here", "exists")
	refused(n.Up("here", 0, netip.Prefix{}), "here", "no address")
	refused(n.Down("none"), "none")
	refused(n.Delete("none"), "none")
	refused(n.Delete("lo"), "lo", "not supported")
	refused(n.Route(netip.MustParsePrefix("10.9.0.0/16"), netip.MustParseAddr("10.0.0.2")), "exists")
	refused(n.Route(netip.MustParsePrefix("10.9.0.0/16"), netip.MustParseAddr("fd00::2")), "kind of address")
	must(n.Delete("here"))
	check("here", "no such")
}

// TestTAPEther sends frames of all kinds of lengths each way through an interface.
func TestTAPEther(t *testing.T) {
	CheckLeaks(t)
	n := ForTest(t)
	fd := mustTAP(t, n, "here")
	if err := n.Up("here", 9000); err != nil {
		t.Fatal(err)
	}
	e, err := n.OpenEther("here")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<14)
	for _, size := range []int{60, 1514, 9014} {
		for _, tag := range [][]byte{nil, {0x81, 0x00, 6 << 5, 5}, {0x88, 0xa8, 0, 7, 0x81, 0x00, 6 << 5, 5}} {
			frame := bytes.Repeat([]byte{byte(size)}, size)
			copy(frame, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2})
			copy(frame[12:], append(tag, 0x88, 0xb5)) // local experimental, IEEE 802
			if _, err := unix.Write(fd, frame); err != nil {
				t.Fatal(err)
			}
			if got, err := e.Recv(buf); err != nil || !bytes.Equal(got, frame) {
				t.Fatalf("received %x, %v; want %x", got, err, frame)
			}
			if err := e.Send(frame); err != nil {
				t.Fatal(err)
			}
			for { // the kernel has something to say too
				k, err := unix.Read(fd, buf)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(buf[:k], frame) {
					break
				}
			}
		}
	}
	// None of these frames is of use to the kernel, which drops those with a tag.
	if c, err := n.Counters("here"); err != nil || c.RxPackets != 9 || c.RxDropped > 9 || c.TxPackets < 9 || c.RxErrors+c.TxErrors+c.TxDropped != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := n.Counters("her"); err == nil || !strings.Contains(err.Error(), "no such") {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := e.Recv(buf)
		ended <- err
	}()
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a frame after Close")
	}
	if _, err := n.OpenEther("none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}
