package peer

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// TestTAPPeer sends frames between a device on a TAP interface and its Linux end, and
// reads the tags that the kernel has taken out of them.
func TestTAPPeer(t *testing.T) {
	netns.CheckLeaks(t)
	n := netns.ForTest(t)
	var h *bus.Handle
	var p Peer
	err := n.Do(func() (err error) {
		h, p, err = Open(t.Context(), bus.NewOpener(), "sim:gmac4,phy=none,wire=tap:peer0", "tap")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := stmmac.Open(t.Context(), h.Device, append(h.Options, stmmac.WithMTU(9000), stmmac.WithPromiscuous())...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(m.Close(), p.Close(), p.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	}()
	if p.MTU() != 9000 || !p.Can(Jumbo) || !p.Can(Tags) || !p.Can(Separate) || p.Can(Cable) {
		t.Errorf("MTU %d", p.MTU())
	}
	for _, size := range []int{60, 61, 1514, 9014} {
		for _, tag := range [][]byte{nil, {0x81, 0, 0x61, 0x23}, {0x88, 0xa8, 0x20, 7, 0x81, 0, 0, 1}} {
			want := sample(PeerAddr(), DeviceAddr(), size)
			want = append(append(bytes.Clone(want[:12]), tag...), want[12:size-len(tag)]...)
			if err := transmit(t.Context(), m, [][]byte{want}); err != nil {
				t.Fatal(err)
			}
			if got := from(t, p, DeviceAddr()); !bytes.Equal(got, want) {
				t.Errorf("from the device % .30x, want % .30x", got, want)
			}
			copy(want[6:], PeerAddr())
			if err := p.Send(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			for {
				got := take(t, m)
				if !bytes.Equal(got[6:12], PeerAddr()) {
					continue // the kernel has something to say too
				}
				if !bytes.Equal(got, want) {
					t.Errorf("to the device % .30x, want % .30x", got, want)
				}
				break
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := p.Recv(ctx); err != nil {
				ended <- err
				return
			}
		}
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The context that ended is not that of the next call.
	want := sample(PeerAddr(), DeviceAddr(), 99)
	if err := transmit(t.Context(), m, [][]byte{want}); err != nil {
		t.Fatal(err)
	}
	if got := from(t, p, DeviceAddr()); !bytes.Equal(got, want) {
		t.Errorf("% .30x", got)
	}
	if err := n.Do(func() error {
		_, err := OpenInterface("none")
		return err
	}); err == nil {
		t.Error("an interface that there is not was opened")
	}
	if err := n.Down("peer0"); err != nil {
		t.Fatal(err)
	}
	if err := n.Do(func() error {
		_, err := OpenInterface("peer0")
		return err
	}); !errors.Is(err, unix.ENETDOWN) {
		t.Error("an interface that is down: ", err)
	}
}

// from is the next frame of a source at a peer.
func from(t *testing.T, p Peer, src net.HardwareAddr) []byte {
	t.Helper()
	for {
		f, err := p.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(f[6:12], src) {
			return f
		}
	}
}

// TestRetag holds what becomes of control messages that are cut or of another kind.
func TestRetag(t *testing.T) {
	f := sample(PeerAddr(), DeviceAddr(), 60)
	for _, oob := range [][]byte{nil, make([]byte, 3), bytes.Repeat([]byte{0xff}, 40)} {
		if got, err := retag(bytes.Clone(f), oob); err == nil && !bytes.Equal(got, f) {
			t.Errorf("% x changed the frame", oob)
		}
	}
}
