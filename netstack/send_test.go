package netstack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// newAlone brings a stack up whose cable ends in the hands of the test, and
// connects a UDP socket to a station there that needs no ARP.
func newAlone(t *testing.T, c stationConfig, clock stmmac.Clock, cable int) (s *station, far sim.Wire, conn net.Conn) {
	t.Helper()
	noGoroutines(t)
	near, far := sim.NewPair(cable)
	s = newStation(t, near, 1, c)
	s.up(t, Config{Addresses: prefixes(addr4[0] + "/24"), Clock: clock})
	if err := s.net.Stack().AddStaticNeighbor(nicID, header.IPv4ProtocolNumber,
		tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), "\x02\x00\x00\x00\x00\x02"); err != nil {
		t.Fatal(err)
	}
	conn, err := s.net.DialContext(t.Context(), "udp", addr4[1]+":9")
	if err != nil {
		t.Fatal(err)
	}
	return s, far, conn
}

// drain takes all frames off the far end of a cable.
func drain(w sim.Wire) (n int) {
	for _, ok := w.Receive(); ok; _, ok = w.Receive() {
		n++
	}
	return n
}

// write gives the endpoint a frame of n bytes and says whether the ring took it.
func write(ep *Endpoint, n int) (bool, tcpip.Error) {
	var list stack.PacketBufferList
	list.PushBack(packet(n))
	defer list.Reset()
	sent, err := ep.WritePackets(list)
	return sent == 1, err
}

// TestStall sends to a device that does not move: senders wait, give up when their
// time is over, do not wait again, and go on when it moves.
func TestStall(t *testing.T) {
	noGoroutines(t)
	clock := sim.NewManualClock()
	near, far := sim.NewPair(1)
	// A MAC that rebuilds nothing, and whose self-test left no frame in the counts.
	s := newStation(t, near, 1, stationConfig{ring: 8, opts: []stmmac.Option{
		stmmac.WithRecovery(stmmac.Recovery{Stall: time.Hour}), stmmac.WithChecksums(false, false)}})
	ep, err := NewEndpoint(s.mac, WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	write(ep, 1000)
	eventually(t, "the cable is full", func() bool { return s.dev.Stats().TxFrames == 1 })
	const senders = 4
	results := make(chan error, senders)
	for range senders {
		go func() {
			for {
				ok, err := write(ep, 1000)
				if _, full := err.(*tcpip.ErrNoBufferSpace); full && !ok {
					results <- nil
					return
				} else if err != nil || !ok {
					results <- fmt.Errorf("taken %v, %v", ok, err)
					return
				}
			}
		}()
	}
	eventually(t, "senders wait", func() bool { return ep.Stats().TxRingWaits >= senders })
	clock.Advance(sendPatience - 1)
	if st := ep.Stats(); st.Dropped() != 0 {
		t.Errorf("dropped before the time was over: %+v", st)
	}
	for range senders {
		eventually(t, "a sender gives up", func() bool {
			// The time of one that was woken in between began anew.
			clock.Advance(sendPatience / 100)
			select {
			case err := <-results:
				if err != nil {
					t.Error(err)
				}
				return true
			default:
				return false
			}
		})
	}
	st := ep.Stats()
	if st.TxNoRoom != senders || st.Dropped() != senders {
		t.Errorf("%+v", st)
	}
	if ok, err := write(ep, 1000); ok || err == nil {
		t.Errorf("while the device stands still: %v, %v", ok, err)
	}
	if again := ep.Stats(); again.TxRingWaits != st.TxRingWaits || again.TxNoRoom != senders+1 {
		t.Errorf("while the device stands still: %+v", again)
	}
	got := 0
	eventually(t, "the frames leave", func() bool { got += drain(far); return got == int(st.TxPackets) })
	if ok, err := write(ep, 1000); !ok || err != nil {
		t.Errorf("after the device has moved: %v, %v", ok, err)
	}
	eventually(t, "a frame leaves", func() bool { return drain(far) == 1 })
}

// TestLinkDown sends while the link is down: what the ring has no room for is
// dropped at once.
func TestLinkDown(t *testing.T) {
	s, far, conn := newAlone(t, stationConfig{ring: 8}, nil, 64)
	if err := s.mac.SetLink(stmmac.Link{}); err != nil {
		t.Fatal(err)
	}
	var err error
	for n := 0; err == nil && n < 100; n++ {
		_, err = conn.Write(make([]byte, 100))
	}
	if !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("%v", err)
	}
	st := s.net.Endpoint().Stats()
	if st.TxNoLink != 1 || st.Dropped() != 1 || st.TxRingWaits != 0 {
		t.Errorf("%+v", st)
	}
	if err := s.mac.SetLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}); err != nil {
		t.Fatal(err)
	}
	got := 0
	eventually(t, "the frames leave", func() bool { got += drain(far); return got == int(st.TxPackets) })
	if _, err := conn.Write(nil); err != nil {
		t.Error(err)
	}
}

// TestNoBuffers sends while the pool is empty: senders wait, and go on when a
// buffer comes back. A packet that needs several takes none before it gets all.
func TestNoBuffers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		c       stationConfig
		payload int
	}{
		{"one", stationConfig{ring: 8, bufs: 64}, 1000},
		{"several", stationConfig{ring: 16, bufs: 64, bufSize: 256}, 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, far, conn := newAlone(t, tc.c, nil, 512)
			var held []*pagepool.Buf
			for b, err := s.pool.Alloc(); err == nil; b, err = s.pool.Alloc() {
				held = append(held, b)
			}
			const senders, each = 4, 3
			var wg sync.WaitGroup
			for range senders {
				wg.Go(func() {
					for range each {
						if _, err := conn.Write(make([]byte, tc.payload)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			ep := s.net.Endpoint()
			// One waits, and the others for their turn.
			eventually(t, "a sender waits", func() bool { return ep.Stats().TxPoolWaits > 0 })
			if st := ep.Stats(); st.TxPackets != 0 {
				t.Errorf("%+v", st)
			}
			for _, b := range held {
				s.pool.Free(b)
			}
			wg.Wait()
			got := 0
			eventually(t, "the frames leave", func() bool { got += drain(far); return got == senders*each })
			if st := ep.Stats(); st.Dropped() != 0 {
				t.Errorf("%+v", st)
			}
			s.settled(t)
		})
	}
}

// waitClock is a clock that stands still and knows how many wait.
type waitClock struct {
	*sim.ManualClock
	waiting atomic.Int64
}

func (c *waitClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.waiting.Add(1)
	inner := c.ManualClock.AfterFunc(d, f)
	return func() bool { // called once
		c.waiting.Add(-1)
		return inner()
	}
}

// TestCloseWhileStalled closes a Net whose device does not move and of which all
// goroutines that send are asleep, that which receives among them.
func TestCloseWhileStalled(t *testing.T) {
	clock := &waitClock{ManualClock: sim.NewManualClock()}
	s, far, conn := newAlone(t, stationConfig{ring: 8}, clock, 1)
	const senders = 3
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for {
				if _, err := conn.Write(make([]byte, 100)); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for range 8 {
		eventually(t, "the cable takes a frame", func() bool { return far.Transmit(sim.Frame{Data: echoRequest(0)}) })
	}
	// What the receiver sends is the answer to a request.
	ep := s.net.Endpoint()
	eventually(t, "all wait", func() bool { return clock.waiting.Load() > senders })
	if err := s.net.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if st := ep.Stats(); st.TxClosed <= senders || st.Dropped() != st.TxClosed+st.RxDetached {
		t.Errorf("%+v", st)
	}
	if n := clock.waiting.Load(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}

// packet is an Ethernet frame of n bytes as gVisor gives it to be sent.
func packet(n int) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.EthernetMinimumSize,
		Payload:            buffer.MakeWithData(make([]byte, n-header.EthernetMinimumSize)),
	})
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: "\x02\x00\x00\x00\x00\x01", DstAddr: "\x02\x00\x00\x00\x00\x02", Type: header.IPv4ProtocolNumber,
	})
	return pkt
}

// TestWritePackets gives the endpoint lists of packets of which some can never be
// sent.
func TestWritePackets(t *testing.T) {
	for _, tc := range []struct {
		name    string
		c       stationConfig
		sizes   []int
		sent    int
		refused int
	}{
		{"none too long", stationConfig{}, []int{14, 60, 1514}, 3, 0},
		{"too long", stationConfig{}, []int{60, 1523, 60, 9000, 60}, 3, 2},
		{"all too long", stationConfig{}, []int{2000}, 0, 1},
		{"a long list", stationConfig{ring: 8}, make([]int, 100), 100, 0},
		{"more buffers than the ring has slots", stationConfig{ring: 4, bufSize: 256, bufs: 64}, []int{60, 1514, 60}, 2, 1},
		{"more buffers than there are", stationConfig{ring: 4, bufSize: 256, bufs: 4}, []int{1514}, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noGoroutines(t)
			near, far := sim.NewPair(512)
			s := newStation(t, near, 1, tc.c)
			ep, err := NewEndpoint(s.mac)
			if err != nil {
				t.Fatal(err)
			}
			defer ep.Close()
			var list stack.PacketBufferList
			bytes := 0
			for _, n := range tc.sizes {
				if n == 0 {
					n = 200
				}
				list.PushBack(packet(n))
				bytes += n
			}
			sent, terr := ep.WritePackets(list)
			list.Reset()
			if _, long := terr.(*tcpip.ErrMessageTooLong); sent != tc.sent || long != (tc.refused > 0) || !long && terr != nil {
				t.Errorf("%d sent, %v", sent, terr)
			}
			st := ep.Stats()
			if st.TxPackets != uint64(tc.sent) || st.TxRefused != uint64(tc.refused) || st.Dropped() != st.TxRefused ||
				tc.refused == 0 && st.TxBytes != uint64(bytes) {
				t.Errorf("%+v", st)
			}
			got := 0
			eventually(t, "the frames leave", func() bool { got += drain(far); return got == tc.sent })
			s.settled(t)
			ep.Close()
			list.PushBack(packet(60))
			sent, terr = ep.WritePackets(list)
			list.Reset()
			if _, closed := terr.(*tcpip.ErrClosedForSend); sent != 0 || !closed || ep.Stats().TxClosed != 1 {
				t.Errorf("after Close: %d sent, %v", sent, terr)
			}
		})
	}
}

// TestDeviceGone sends when the MAC was closed.
func TestDeviceGone(t *testing.T) {
	s, _, conn := newAlone(t, stationConfig{}, nil, 8)
	if err := s.mac.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(nil); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v", err)
	}
	eventually(t, "receiving ends", func() bool { return errors.Is(s.net.Endpoint().Err(), net.ErrClosed) })
	if st := s.net.Endpoint().Stats(); st.TxClosed != 1 {
		t.Errorf("%+v", st)
	}
	_ = conn.SetDeadline(time.Now())
	if _, err := conn.Read(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestSendAllocates nothing while there is room.
func TestSendAllocates(t *testing.T) {
	near, far := sim.NewPair(4) // its slots have grown after a few frames
	s := newStation(t, near, 1, stationConfig{})
	ep, err := NewEndpoint(s.mac)
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	var list stack.PacketBufferList
	list.PushBack(packet(1000))
	defer list.Reset()
	if n := testing.AllocsPerRun(1000, func() {
		if sent, err := ep.WritePackets(list); sent != 1 || err != nil {
			t.Errorf("%d sent, %v", sent, err)
		}
		for drain(far) == 0 {
			runtime.Gosched()
		}
	}); n > 0.5 { // the collector and the race detector may empty the pool of batches
		t.Errorf("%v allocations a packet", n)
	}
}
