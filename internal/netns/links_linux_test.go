package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// pairs returns a namespace with the interface here and one with there, joined by a cable.
// A kernel without the driver veth skips the test.
func pairs(t *testing.T) (a, b *NS) {
	t.Helper()
	a, b = ForTest(t), ForTest(t)
	if err := a.Pair("here", "there"); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel has no veth: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := a.Move("there", b); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestPairMoved(t *testing.T) {
	CheckLeaks(t)
	a, b := pairs(t)
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	err := errors.Join(b.SetHardwareAddr("there", mac),
		a.Up("here", 1500, netip.MustParsePrefix("10.1.0.1/24")), b.Up("there", 1500, netip.MustParsePrefix("10.1.0.2/24")))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ping(testContext(t), netip.MustParseAddr("10.1.0.2"), 56); err != nil {
		t.Error(err)
	}
	err = b.Do(func() error {
		i, err := net.InterfaceByName("there")
		if err == nil && i.HardwareAddr.String() != mac.String() {
			t.Errorf("address %v", i.HardwareAddr)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if up, err := a.Operational("here"); !up || err != nil {
		t.Errorf("operational: %v, %v", up, err)
	}
	if up, err := b.Operational("lo"); up || err != nil {
		t.Errorf("the state of lo is not known: %v, %v", up, err)
	}
	if err := b.Down("there"); err != nil {
		t.Fatal(err)
	}
	for up := true; up; {
		if up, err = a.Operational("here"); err != nil { // the kernel tells of it in a while
			t.Fatal(err)
		}
	}
	_, none := a.Operational("there")
	for what, err := range map[string]error{
		"the state of none": none, "a pair that is there": a.Pair("here", "x"), "moving none": a.Move("there", b), "an address of none": a.SetHardwareAddr("there", mac),
		"a short address": a.SetHardwareAddr("here", mac[:3]),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "netns: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestVLANs(t *testing.T) {
	CheckLeaks(t)
	a, b := pairs(t)
	if err := a.VLAN("here.5", "here", 5, false); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel has no 8021q: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	err := errors.Join(b.VLAN("there.5", "there", 5, false), a.VLAN("s6", "here", 6, true), b.VLAN("s6", "there", 6, true),
		a.Up("here", 1500), b.Up("there", 1500),
		a.Up("here.5", 1500, netip.MustParsePrefix("10.5.0.1/24")), b.Up("there.5", 1500, netip.MustParsePrefix("10.5.0.2/24")),
		a.Up("s6", 1500, netip.MustParsePrefix("10.6.0.1/24")), b.Up("s6", 1500, netip.MustParsePrefix("10.6.0.2/24")))
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.OpenEther("there")
	if err != nil {
		t.Fatal(err)
	}
	for vlan, want := range map[string][4]byte{"10.5.0.2": {0x81, 0, 0, 5}, "10.6.0.2": {0x88, 0xa8, 0, 6}} {
		if err := a.Ping(testContext(t), netip.MustParseAddr(vlan), 56); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2048)
		for {
			f, err := e.Recv(buf)
			if err != nil {
				t.Fatal(err)
			}
			if len(f) > 18 && [4]byte(f[12:16]) == want {
				break
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{"no parent": a.VLAN("x", "none", 7, false), "the tag 4095": a.VLAN("x", "here", 4095, false)} {
		if err == nil {
			t.Errorf("%s: made", what)
		}
	}
}

// TestCurrent: the namespace that the process is in is that of its other threads.
func TestCurrent(t *testing.T) {
	CheckLeaks(t)
	n, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Do(func() error {
		got, err := os.Readlink("/proc/thread-self/ns/net")
		if got != want {
			t.Errorf("%q instead of %q", got, want)
		}
		return err
	}); err != nil && !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// TestJoin looks for the address among those that the driver was told of.
func TestJoin(t *testing.T) {
	CheckLeaks(t)
	a, _ := pairs(t)
	group := net.HardwareAddr{0x33, 0x33, 0xff, 1, 2, 3}
	listed := func() (there bool) {
		err := a.Do(func() error {
			b, err := os.ReadFile("/proc/thread-self/net/dev_mcast")
			there = strings.Contains(string(b), "3333ff010203")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	m, err := a.Join("here", group)
	if err != nil || !listed() {
		t.Fatalf("joined: %v", err)
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil || listed() {
		t.Errorf("left: %v", err)
	}
	if _, err := a.Join("here", make(net.HardwareAddr, 9)); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("a long address: %v", err)
	}
	if _, err := a.Join("here", group[:3]); !errors.Is(err, os.ErrInvalid) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("a short address: %v", err)
	}
	if _, err := a.Join("none", group); err == nil {
		t.Error("an interface that is not there")
	}
}

func TestAttribute(t *testing.T) {
	m := newRequest(0, 0, nil)
	m.attr(3, []byte("abc"))
	m.attr(4, nil)
	m.attr(5, []byte{1})
	for typ, want := range map[uint16]string{3: "abc", 4: "", 5: "\x01"} {
		if v, ok := attribute(m.b, unix.SizeofNlMsghdr, typ); !ok || string(v) != want {
			t.Errorf("%d: %q, %v", typ, v, ok)
		}
	}
	for n := range len(m.b) {
		if v, ok := attribute(m.b[:n], unix.SizeofNlMsghdr, 6); ok {
			t.Errorf("%d bytes have %q", n, v)
		}
	}
	if v, ok := attribute(make([]byte, 100), 0, 0); ok {
		t.Errorf("zeros have %q", v)
	}
}
