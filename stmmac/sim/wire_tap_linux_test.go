package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// tapRig is a TAP wire and the kernel's side of it.
type tapRig struct {
	t    *testing.T
	ns   *netns.NS
	w    *TAPWire
	rung chan struct{} // notified
	ctx  context.Context
}

func newTAPRig(t *testing.T) *tapRig {
	t.Helper()
	netns.CheckLeaks(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	g := &tapRig{t: t, ns: netns.ForTest(t), rung: make(chan struct{}, 1), ctx: ctx}
	g.w = g.open("tap0")
	g.w.Notify(func() {
		select {
		case g.rung <- struct{}{}:
		default:
		}
	})
	return g
}

// open makes a wire that is closed at the end of the test.
func (g *tapRig) open(name string) *TAPWire {
	g.t.Helper()
	w, err := g.try(name)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { g.must(w.Close()) })
	return w
}

func (g *tapRig) try(name string) (w *TAPWire, err error) {
	err = g.ns.Do(func() error {
		w, err = NewTAP(name)
		return err
	})
	return w, err
}

func (g *tapRig) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// up sets the interface up without the IPv6 of the kernel, which sends frames by
// itself.
func (g *tapRig) up(mtu int, addrs ...netip.Prefix) {
	g.t.Helper()
	g.must(g.ns.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/tap0/disable_ipv6", []byte("1"), 0)
	}))
	g.must(g.ns.Up("tap0", mtu, addrs...))
}

func (g *tapRig) ether() *netns.Ether {
	g.t.Helper()
	e, err := g.ns.OpenEther("tap0")
	g.must(err)
	g.t.Cleanup(func() { g.must(e.Close()) })
	return e
}

// next is the next frame from the kernel, waited for as a MAC does.
func (g *tapRig) next() []byte {
	g.t.Helper()
	for {
		if f, ok := g.w.Receive(); ok {
			return f.Data
		}
		select {
		case <-g.rung:
		case <-g.ctx.Done():
			g.t.Fatalf("no frame; %+v", g.w.Stats())
		}
	}
}

// tapFrame is a frame of a kind that the kernel leaves alone.
func tapFrame(k, n int) []byte {
	b := wireFrame(uint64(k), n)
	copy(b, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}) // local experimental, IEEE 802
	return b
}

// TestTAPFrames carries frames of many lengths each way, several at a time.
func TestTAPFrames(t *testing.T) {
	g := newTAPRig(t)
	g.up(9000)
	e := g.ether()
	if !g.w.Elastic() {
		t.Error("not elastic")
	}
	sizes := []int{14, 15, 42, 59, 60, 61, 64, 590, 1513, 1514, 1518, 4096, 9013, 9014}
	buf := make([]byte, maxWireFrame)
	want := TAPStats{}
	for round := range 3 {
		for k, n := range sizes {
			g.must(e.Send(tapFrame(round*100+k, n)))
		}
		for k, n := range sizes {
			f := tapFrame(round*100+k, n)
			if n < minPadded {
				f = append(f, make([]byte, minPadded-n)...)
			}
			if got := g.next(); !bytes.Equal(got, f) {
				t.Fatalf("frame of %d bytes: got %d\n%x", n, len(got), got)
			}
			want.RxFrames++
			want.RxBytes += uint64(len(f))
		}
		mustNotReceive(t, g.w)
		for k, n := range sizes {
			if !g.w.Transmit(Frame{Data: tapFrame(round*200+k, n)}) {
				t.Fatal("no room")
			}
			want.TxFrames++
			want.TxBytes += uint64(n)
		}
		for k, n := range sizes {
			got, err := e.Recv(buf)
			if err != nil || !bytes.Equal(got, tapFrame(round*200+k, n)) {
				t.Fatalf("frame of %d bytes: got %d, %v", n, len(got), err)
			}
		}
	}
	g.w.Transmit(Frame{Data: tapFrame(1, 60), BadFCS: true})
	g.w.Transmit(Frame{Data: tapFrame(1, 60)[:13]}) // the kernel wants a header
	want.TxBadFCS, want.TxRefused = 1, 1
	if got := g.w.Stats(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	select {
	case <-g.w.Done():
		t.Error("ended")
	default:
	}
}

// TestTAPTooLong has an interface with an MTU that no MAC has.
func TestTAPTooLong(t *testing.T) {
	g := newTAPRig(t)
	g.up(65000)
	e := g.ether()
	for k, n := range []int{maxWireFrame, maxWireFrame + 1, 60000, maxWireFrame + 1, 100} {
		g.must(e.Send(tapFrame(k, n)))
	}
	if got := g.next(); !bytes.Equal(got, tapFrame(0, maxWireFrame)) {
		t.Errorf("got %d bytes", len(got))
	}
	if got := g.next(); !bytes.Equal(got, tapFrame(4, 100)) {
		t.Errorf("got %d bytes", len(got))
	}
	if s := g.w.Stats(); s.RxTooLong != 3 || s.RxFrames != 2 {
		t.Errorf("%+v", s)
	}
}

// TestTAPChecksums: the kernel leaves no checksum to the hardware, nor frames to be
// cut, whatever the user before asked for.
func TestTAPChecksums(t *testing.T) {
	g := newTAPRig(t)
	fd := g.persistent("tap1")
	g.must(unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4))
	g.must(unix.Close(fd))
	g.must(g.w.Close())
	g.w = g.open("tap1")
	g.w.Notify(func() {
		select {
		case g.rung <- struct{}{}:
		default:
		}
	})
	g.must(g.ns.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/tap1/disable_ipv6", []byte("1"), 0)
	}))
	g.must(g.ns.Up("tap1", 1500, netip.MustParsePrefix("10.0.0.1/24")))
	// An answer to ARP brings the packets out.
	pc, err := g.ns.ListenPacket("udp", "10.0.0.1:7")
	g.must(err)
	defer pc.Close()
	for range 2 {
		_, err = pc.WriteTo(bytes.Repeat([]byte{0xa5}, 1001), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9})
		g.must(err)
	}
	seen := 0
	for seen < 2 {
		switch f := g.next(); {
		case bytes.HasPrefix(f[12:], []byte{0x08, 0x06}):
			if len(f) != minPadded || !bytes.Equal(f[42:], make([]byte, 18)) {
				t.Errorf("ARP request %x", f)
			}
			a := bytes.Clone(f)
			copy(a, f[6:12])
			copy(a[6:], []byte{2, 0, 0, 0, 0, 2})
			a[21] = 2              // reply
			copy(a[22:], a[6:12])  // sender
			copy(a[28:], f[38:42]) // whose address was asked for
			copy(a[32:], f[22:32]) // target
			g.w.Transmit(Frame{Data: a})
		case bytes.HasPrefix(f[12:], []byte{0x08, 0x00}):
			seen++
			if len(f) != 14+20+8+1001 {
				t.Fatalf("packet of %d bytes", len(f))
			}
			if s := onesSum(f[14:34]); s != 0xffff {
				t.Errorf("IPv4 header adds up to %04x", s)
			}
			// RFC 768: addresses, protocol and length, then the packet.
			pseudo := append(bytes.Clone(f[26:34]), 0, 17, f[38], f[39])
			if s := onesSum(append(pseudo, f[34:]...)); s != 0xffff {
				t.Errorf("UDP adds up to %04x", s)
			}
		}
	}
}

// onesSum is the sum of RFC 1071, 0xffff over what contains a good checksum.
func onesSum(b []byte) (sum uint32) {
	for i, v := range b {
		sum += uint32(v) << (8 * (1 - i&1))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum
}

// TestTAPNotify: one call for what comes after a Receive that had nothing.
func TestTAPNotify(t *testing.T) {
	g := newTAPRig(t)
	g.up(1500)
	e := g.ether()
	for k := range 50 {
		mustNotReceive(t, g.w)
		select {
		case <-g.rung:
			t.Fatal("notified of nothing")
		default:
		}
		for i := range 3 {
			g.must(e.Send(tapFrame(k+i, 60)))
		}
		<-g.rung
		for i := range 3 {
			mustReceive(t, g.w, tapFrame(k+i, 60), false)
		}
	}
	// A function that comes late hears of what waits already.
	mustNotReceive(t, g.w)
	g.w.Notify(nil)
	g.must(e.Send(tapFrame(1, 60)))
	for !g.w.readable.Load() {
		time.Sleep(time.Millisecond)
		g.must(g.ctx.Err())
	}
	called := make(chan struct{}, 1)
	g.w.Notify(func() { called <- struct{}{} })
	<-called
	mustReceive(t, g.w, tapFrame(1, 60), false)
}

func TestTAPStop(t *testing.T) {
	g := newTAPRig(t)
	g.up(1500)
	e := g.ether()
	g.must(e.Send(tapFrame(1, 60)))
	<-g.rung
	g.w.Stop()
	mustNotReceive(t, g.w)
	g.w.Transmit(Frame{Data: tapFrame(2, 60)})
	if got, err := e.Recv(make([]byte, 100)); err != nil || !bytes.Equal(got, tapFrame(2, 60)) {
		t.Errorf("%x, %v", got, err)
	}
}

func TestTAPCarrier(t *testing.T) {
	g := newTAPRig(t)
	g.up(1500)
	e := g.ether()
	running := func() (up bool) {
		g.must(g.ns.Do(func() error {
			i, err := net.InterfaceByName("tap0")
			if err == nil {
				up = i.Flags&net.FlagRunning != 0
			}
			return err
		}))
		return up
	}
	until := func(up bool) { // the kernel tells it later than it does it
		for running() != up {
			time.Sleep(time.Millisecond)
			g.must(g.ctx.Err())
		}
	}
	until(true)
	g.must(e.Send(tapFrame(1, 60)))
	<-g.rung
	g.must(g.w.SetCarrier(false))
	mustNotReceive(t, g.w)
	g.w.Transmit(Frame{Data: tapFrame(2, 60)})
	until(false)
	g.must(g.w.SetCarrier(true))
	<-g.rung
	mustReceive(t, g.w, tapFrame(1, 60), false)
	until(true)
	if s := g.w.Stats(); s.TxRefused != 1 || s.TxFrames != 0 {
		t.Errorf("%+v", s)
	}
	g.must(g.w.Close())
	if err := g.w.SetCarrier(true); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestTAPDown: an interface that is down refuses frames, and takes them again.
func TestTAPDown(t *testing.T) {
	g := newTAPRig(t)
	g.w.Transmit(Frame{Data: tapFrame(0, 60)})
	for round := range uint64(3) {
		g.up(1500)
		e := g.ether()
		g.w.Transmit(Frame{Data: tapFrame(1, 60)})
		if got, err := e.Recv(make([]byte, 100)); err != nil || !bytes.Equal(got, tapFrame(1, 60)) {
			t.Errorf("%x, %v", got, err)
		}
		g.must(e.Send(tapFrame(2, 60)))
		if got := g.next(); !bytes.Equal(got, tapFrame(2, 60)) {
			t.Errorf("%x", got)
		}
		g.must(g.ns.Down("tap0"))
		g.w.Transmit(Frame{Data: tapFrame(3, 60)})
		mustNotReceive(t, g.w)
		if s := g.w.Stats(); s.TxRefused != 2+round || s.TxFrames != 1+round || s.RxFrames != 1+round {
			t.Errorf("round %d: %+v", round, s)
		}
	}
	if err := g.w.Err(); err != nil {
		t.Error(err)
	}
}

// TestTAPDeleted: the wire says so by itself, and by what it is asked for.
func TestTAPDeleted(t *testing.T) {
	for _, how := range []string{"asleep", "receive", "transmit"} {
		t.Run(how, func(t *testing.T) {
			g := newTAPRig(t)
			g.up(1500)
			if how != "asleep" {
				// A frame that nobody takes: the watcher does not look.
				g.must(g.ether().Send(tapFrame(1, 60)))
				<-g.rung
			}
			g.must(g.ns.Delete("tap0"))
			switch how {
			case "receive":
				for range 2 { // the frame may still come
					g.w.Receive()
				}
			case "transmit":
				g.w.Transmit(Frame{Data: tapFrame(1, 60)})
			}
			select {
			case <-g.w.Done():
			case <-g.ctx.Done():
				t.Fatal("nothing said")
			}
			err := g.w.Err()
			var e *TAPError
			if !errors.As(err, &e) || e.Name != "tap0" || !errors.Is(err, unix.EBADFD) || !strings.Contains(err.Error(), "gone") {
				t.Error(err)
			}
			mustNotReceive(t, g.w)
			before := g.w.Stats().TxRefused
			if !g.w.Transmit(Frame{Data: tapFrame(1, 60)}) || g.w.Stats().TxRefused != before+1 {
				t.Errorf("%+v", g.w.Stats())
			}
			g.must(g.w.Close())
			if g.w.Err() != err {
				t.Error("another error after Close: ", g.w.Err())
			}
			g.open("tap0") // the name is free
		})
	}
}

func TestTAPClose(t *testing.T) {
	g := newTAPRig(t)
	g.up(1500)
	e := g.ether()
	for _, waiting := range []bool{false, true} { // with the watcher asleep in either way
		if waiting {
			g.must(e.Send(tapFrame(1, 60)))
			<-g.rung
		}
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- g.w.Close() }()
		}
		g.must(errors.Join(<-ended, <-ended, g.w.Close()))
		<-g.w.Done()
		if err := g.w.Err(); err != nil {
			t.Error(err)
		}
		mustNotReceive(t, g.w)
		if !g.w.Transmit(Frame{Data: tapFrame(1, 60)}) {
			t.Error("no room after Close")
		}
		if err := g.ns.Up("tap0", 0); err == nil {
			t.Error("the interface is still there")
		}
		if waiting {
			break
		}
		g.w = g.open("tap0")
		g.w.Notify(func() { g.rung <- struct{}{} })
		g.up(1500)
		e = g.ether()
	}
}

// persistent makes an interface that stays, and is attached to what it returns.
func (g *tapRig) persistent(name string) (fd int) {
	g.t.Helper()
	g.must(g.ns.Do(func() (err error) {
		if fd, err = unix.Open(tapDevice, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		req, err := unix.NewIfreq(name)
		g.must(err)
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		return errors.Join(unix.IoctlIfreq(fd, unix.TUNSETIFF, req), unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1))
	}))
	return fd
}

func TestTAPPersistent(t *testing.T) {
	g := newTAPRig(t)
	fd := g.persistent("stays")
	_, err := g.try("stays")
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), `"stays"`) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("in use: %v", err)
	}
	g.must(unix.IoctlSetInt(fd, unix.TUNSETOWNER, os.Getuid()))
	g.must(unix.IoctlSetPointerInt(fd, unix.TUNSETSNDBUF, 1))
	g.must(unix.Close(fd))
	for range 2 {
		w := g.open("stays")
		g.must(g.ns.Up("stays", 0))
		for k := range 100 {
			w.Transmit(Frame{Data: tapFrame(k, 1514)})
		}
		if s := w.Stats(); s.TxRefused != 0 {
			t.Errorf("%+v", s)
		}
		g.must(w.Close())
	}
	g.must(g.ns.Up("stays", 0))
	g.must(g.ns.Delete("stays"))
	// The kernel chooses the number.
	if a, b := g.open("t%d"), g.open("t%d"); a.Name() != "t0" || b.Name() != "t1" {
		t.Errorf("%s and %s", a.Name(), b.Name())
	}
}

func TestTAPRights(t *testing.T) {
	g := newTAPRig(t)
	const nobody = 65534
	for name, owner := range map[string]int{"mine": os.Geteuid(), "theirs": nobody} {
		fd := g.persistent(name)
		g.must(unix.IoctlSetInt(fd, unix.TUNSETOWNER, owner))
		g.must(unix.Close(fd))
	}
	refused := func(name string, texts ...string) {
		w, err := NewTAP(name)
		if err == nil {
			err = w.Close()
		}
		for _, s := range append(texts, fmt.Sprintf("%q", name)) {
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), s) {
				t.Errorf("%v, want %s", err, s)
			}
		}
	}
	// Rights are those of a thread, and this ends with the function.
	g.must(g.ns.Do(func() error {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		if err := unix.Capset(&head, &data[0]); err != nil {
			return err
		}
		refused("new", "CAP_NET_ADMIN", "ip tuntap add new mode tap user")
		refused("theirs", "CAP_NET_ADMIN")
		w, err := NewTAP("mine")
		if err != nil {
			return err
		}
		return w.Close()
	}))
	info, err := os.Stat(tapDevice)
	g.must(err)
	if info.Mode()&0o006 == 0o006 {
		t.Logf("everybody may open %s", tapDevice)
		return
	}
	g.must(g.ns.Do(func() error {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			return errno
		}
		refused("new", "open "+tapDevice, "root")
		return nil
	}))
}

// TestTAPRefused needs no rights.
func TestTAPRefused(t *testing.T) {
	netns.CheckLeaks(t)
	none := filepath.Join(t.TempDir(), "tun")
	for _, tc := range []struct {
		device, name string
		is           error
		text         string
	}{
		{none, "x", fs.ErrNotExist, none},
		{none, "fifteen-bytes-x", fs.ErrNotExist, "module tun"},
		{none, "sixteen-bytes-xx", fs.ErrInvalid, "at most 15"},
		{none, "", fs.ErrInvalid, "empty"},
		{none, ".", fs.ErrInvalid, "slash"},
		{none, "..", fs.ErrInvalid, "slash"},
		{none, "a/b", fs.ErrInvalid, "slash"},
		{none, "a b", fs.ErrInvalid, "space"},
		{none, "a:1", fs.ErrInvalid, "colon"},
		{none, "a\x00b", fs.ErrInvalid, "slash"},
	} {
		w, err := newTAP(tc.device, tc.name)
		var e *TAPError
		if w != nil || !errors.As(err, &e) || e.Name != tc.name || !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%q: %v", tc.name, err)
		}
	}
}

func TestTAPOther(t *testing.T) {
	g := newTAPRig(t)
	for _, name := range []string{"lo", "t%s"} {
		if _, err := g.try(name); !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTAPNoAllocation(t *testing.T) {
	g := newTAPRig(t)
	g.up(1500)
	e := g.ether()
	frame := tapFrame(1, 1514)
	if n := testing.AllocsPerRun(100, func() { g.w.Transmit(Frame{Data: frame}) }); n != 0 {
		t.Errorf("%v allocations to transmit", n)
	}
	const frames = 100
	for range frames + 1 {
		g.must(e.Send(frame))
	}
	if n := testing.AllocsPerRun(frames, func() {
		if len(g.next()) != len(frame) {
			t.Error("another frame")
		}
	}); n != 0 {
		t.Errorf("%v allocations to receive", n)
	}
	g.must(g.ns.Down("tap0"))
	if n := testing.AllocsPerRun(100, func() { g.w.Transmit(Frame{Data: frame}) }); n != 0 {
		t.Errorf("%v allocations to be refused", n)
	}
}
