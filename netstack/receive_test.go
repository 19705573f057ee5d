package netstack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// marker sets flags on the frames whose first payload byte names them, as a MAC
// does that has the features.
type marker map[byte]pagepool.Flags

func (m marker) Run(bufs []*pagepool.Buf, verdicts []stmmac.Verdict) {
	for i, b := range bufs {
		verdicts[i] = stmmac.VerdictPass
		if p := b.Bytes(); len(p) > header.EthernetMinimumSize {
			b.Flags |= m[p[header.EthernetMinimumSize]]
		}
	}
}

// TestReceive says for each kind of frame what becomes of it.
func TestReceive(t *testing.T) {
	frame := func(dst string, first byte) []byte {
		f := make([]byte, 60)
		header.Ethernet(f).Encode(&header.EthernetFields{
			SrcAddr: "\x02\x00\x00\x00\x00\x02", DstAddr: tcpip.LinkAddress(dst), Type: 0x88b5, // IEEE 802 local experiments
		})
		f[header.EthernetMinimumSize] = first
		return f
	}
	const own, other = "\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x03"
	flags := marker{1: pagepool.RxCsumBad, 2: pagepool.RxCsumGood, 3: pagepool.VLANTag, 4: pagepool.VLANTag | pagepool.VLANService, 5: pagepool.InnerVLANTag}
	for _, tc := range []struct {
		name  string
		frame []byte
		count func(*Stats) *uint64
	}{
		{"own", frame(own, 0), func(s *Stats) *uint64 { return &s.RxDelivered }},
		{"broadcast", frame("\xff\xff\xff\xff\xff\xff", 0), func(s *Stats) *uint64 { return &s.RxDelivered }},
		{"multicast", frame("\x33\x33\x00\x00\x00\x01", 0), func(s *Stats) *uint64 { return &s.RxDelivered }},
		{"somebody else", frame(other, 0), func(s *Stats) *uint64 { return &s.RxOtherHost }},
		{"verified and bad", frame(own, 1), func(s *Stats) *uint64 { return &s.RxChecksum }},
		{"verified and good", frame(own, 2), func(s *Stats) *uint64 { return &s.RxDelivered }},
		{"tagged", frame(own, 3), func(s *Stats) *uint64 { return &s.RxVLAN }},
		{"service tag", frame(own, 4), func(s *Stats) *uint64 { return &s.RxVLAN }},
		{"inner tag alone", frame(own, 5), func(s *Stats) *uint64 { return &s.RxVLAN }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			near, far := sim.NewPair(8)
			s := newStation(t, near, 1, stationConfig{opts: []stmmac.Option{stmmac.WithProgram(flags), stmmac.WithPromiscuous()}})
			s.up(t, Config{Addresses: prefixes(addr4[0] + "/24")})
			far.Transmit(sim.Frame{Data: tc.frame})
			ep := s.net.Endpoint()
			eventually(t, "the frame arrives", func() bool {
				st := ep.Stats()
				return st.RxDelivered+st.Dropped() > 0
			})
			s.net.Close() // the batch is accounted for
			st := ep.Stats()
			if st.RxPackets != 1 || st.RxBytes != 60 || *tc.count(&st) != 1 || st.RxDelivered+st.Dropped() != 1 {
				t.Errorf("%+v", st)
			}
			s.settled(t)
		})
	}
}

// TestPing sends echo requests of all lengths by hand, and compares the answers.
func TestPing(t *testing.T) {
	noGoroutines(t)
	near, far := sim.NewPair(8)
	s := newStation(t, near, 1, stationConfig{mtu: 9000, opts: []stmmac.Option{stmmac.WithChecksums(false, false)}})
	s.up(t, Config{Addresses: prefixes(addr4[0] + "/24")})
	if err := s.net.Stack().AddStaticNeighbor(nicID, header.IPv4ProtocolNumber,
		tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), "\x02\x00\x00\x00\x00\x02"); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 17, 18, 19, 56, 1472, 1473, 1980, 1984, 1985, 8972} {
		want := echoRequest(n)
		far.Transmit(sim.Frame{Data: want})
		var got []byte
		eventually(t, "the answer", func() bool {
			f, ok := far.Receive()
			got = bytes.Clone(f.Data)
			return ok
		})
		const l4 = header.EthernetMinimumSize + header.IPv4MinimumSize
		if len(got) < l4+header.ICMPv4MinimumSize+n {
			t.Fatalf("%d bytes: a frame of %d comes back", n, len(got))
		}
		icmp := header.ICMPv4(got[l4:][:header.ICMPv4MinimumSize+n])
		ip := header.IPv4(got[header.EthernetMinimumSize:])
		if icmp.Type() != header.ICMPv4EchoReply || !ip.IsChecksumValid() || header.ICMPv4Checksum(icmp, 0) != icmp.Checksum() ||
			!bytes.Equal(icmp.Payload(), make([]byte, n)) {
			t.Fatalf("%d bytes: % x", n, got)
		}
	}
	// The stack verifies: the MAC here does not.
	bad := echoRequest(10)
	bad[header.EthernetMinimumSize+header.IPv4MinimumSize+header.ICMPv4MinimumSize]++
	far.Transmit(sim.Frame{Data: bad})
	ep := s.net.Endpoint()
	sent := ep.Stats().TxPackets
	far.Transmit(sim.Frame{Data: echoRequest(0)})
	eventually(t, "the answer to the good one", func() bool { return ep.Stats().TxPackets > sent })
	s.net.Close()
	if st := ep.Stats(); st.TxPackets != sent+1 || st.Dropped() != 0 {
		t.Errorf("a packet with a bad checksum was answered: %+v", st)
	}
}

// mangle makes something near a valid frame of one.
func mangle(r *rand.Rand, f []byte) []byte {
	f = bytes.Clone(f)
	for range 1 + r.IntN(4) {
		switch r.IntN(4) {
		case 0:
			f[12+r.IntN(len(f)-12)] = byte(r.Uint32())
		case 1:
			f = f[:max(header.EthernetMinimumSize, r.IntN(len(f)+1))]
			if len(f) < 16 {
				return f
			}
		case 2:
			binary.BigEndian.PutUint16(f[12:], []uint16{0x0800, 0x0806, 0x86dd, 0x8100, 0x05dc, 0, 0xffff}[r.IntN(7)])
		case 3:
			f = append(f, make([]byte, r.IntN(100))...)
		}
	}
	return f
}

// TestMalformed lets frames arrive that are wrong in every layer. The stack goes on
// serving, and nothing is left behind.
func TestMalformed(t *testing.T) {
	noGoroutines(t)
	near, far := sim.NewPair(64)
	s := newStation(t, near, 1, stationConfig{})
	s.up(t, Config{Addresses: prefixes(addr4[0]+"/24", addr6[0]+"/64")})
	pc, err := s.net.ListenPacket("udp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	go echo(pc)
	if _, err := s.net.Listen("tcp", ":7"); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	seeds := talk(t)
	const frames = 3000
	for range frames {
		f := mangle(r, seeds[r.IntN(len(seeds))])
		eventually(t, "the cable takes a frame", func() bool {
			drain(far)
			return far.Transmit(sim.Frame{Data: f})
		})
	}
	ep := s.net.Endpoint()
	// What the stack learned from the frames may be wrong; what it is told is not.
	if err := s.net.Stack().AddStaticNeighbor(nicID, header.IPv4ProtocolNumber,
		tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), "\x02\x00\x00\x00\x00\x02"); err != nil {
		t.Fatal(err)
	}
	request := echoRequest(1003)
	eventually(t, "an echo is answered still", func() bool {
		far.Transmit(sim.Frame{Data: request})
		for f, ok := far.Receive(); ok; f, ok = far.Receive() {
			if len(f.Data) == len(request) {
				return true
			}
		}
		return false
	})
	if st := ep.Stats(); st.RxDelivered == 0 || st.RxDelivered+st.Dropped() < st.RxPackets-rxBatch {
		t.Errorf("%+v", st)
	}
}

// talk returns the frames that a station got in conversations over TCP and UDP, of
// IPv4 and IPv6.
func talk(t *testing.T) (frames [][]byte) {
	near, far := sim.NewPair(512)
	a := newStation(t, &tap{Wire: near, keep: &frames}, 1, stationConfig{})
	b := newStation(t, far, 2, stationConfig{})
	up6(t, a, b)
	pc, err := a.net.ListenPacket("udp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go echo(pc)
	for _, host := range []string{addr4[0], addr6[0]} {
		ca, cb := connect(t, b, a, host)
		exchange(t, ca, cb, 3000)
		ca.Close()
		cb.Close()
		c, err := b.net.DialContext(t.Context(), "udp", net.JoinHostPort(host, "7"))
		if err != nil {
			t.Fatal(err)
		}
		c.Write(random(3000))
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	a.net.Close()
	b.net.Close()
	// The model of a has done with the wire when its device is closed.
	a.dev.Close()
	if len(frames) < 20 {
		t.Fatalf("%d frames", len(frames))
	}
	return frames
}

// tap keeps the frames that go over one end of a wire to a MAC.
type tap struct {
	sim.Wire
	keep *[][]byte
}

func (w *tap) Receive() (sim.Frame, bool) {
	f, ok := w.Wire.Receive()
	if ok && len(*w.keep) < 200 {
		*w.keep = append(*w.keep, bytes.Clone(f.Data))
	}
	return f, ok
}

// TestLabels finds the receiving goroutine by its labels.
func TestLabels(t *testing.T) {
	near, _ := sim.NewPair(8)
	s := newStation(t, near, 1, stationConfig{})
	s.up(t, Config{Addresses: prefixes(addr4[0] + "/24")})
	eventually(t, "the labels are there", func() bool {
		var b strings.Builder
		pprof.Lookup("goroutine").WriteTo(&b, 1)
		return strings.Contains(b.String(), `"nic":"02:00:00:00:00:01", "queue":"rx0"`)
	})
}

// TestSetMTU follows the MTU up and down.
func TestSetMTU(t *testing.T) {
	near, _ := sim.NewPair(8)
	s := newStation(t, near, 1, stationConfig{mtu: 2000})
	n := &changingMTU{NIC: s.mac, mtu: 2000}
	ep, err := NewEndpoint(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		set  uint32 // 0: not called
		mac  int
		want uint32
	}{
		{0, 2000, 2000},
		{0, 1800, 1800}, // follows
		{1500, 1800, 1500},
		{0, 1400, 1400}, // never above that of the MAC
		{0, 1800, 1500},
		{67, 1800, 1500}, // refused
		{68, 1800, 68},
		{9000, 1800, 1800}, // the MAC's from here on
		{0, 2000, 2000},
		{2000, 2000, 2000},
		{0, 1900, 1900},
		{0, -1, 0},
	} {
		n.mtu = tc.mac
		if tc.set != 0 {
			ep.SetMTU(tc.set)
		}
		if got := ep.MTU(); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

type changingMTU struct {
	NIC
	mtu int
}

func (n *changingMTU) MTU() int { return n.mtu }

// TestNewEndpoint refuses MACs that the endpoint cannot serve.
func TestNewEndpoint(t *testing.T) {
	near, _ := sim.NewPair(8)
	s := newStation(t, near, 1, stationConfig{})
	if _, err := NewEndpoint(&strangeNIC{NIC: s.mac, rx: 2}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("two receive queues: %v", err)
	}
	if _, err := NewEndpoint(&strangeNIC{NIC: s.mac, rx: 1}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no address: %v", err)
	}
	ep, err := NewEndpoint(s.mac)
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	const mac = tcpip.LinkAddress("\x02\x00\x00\x00\x00\x01")
	ep.SetLinkAddress("\x02\x00\x00\x00\x00\x09")
	if ep.LinkAddress() != mac {
		t.Errorf("took an address that the MAC does not have: %v", ep.LinkAddress())
	}
	if ep.IsAttached() || ep.ARPHardwareType() != header.ARPHardwareEther || ep.MaxHeaderLength() != 14 {
		t.Error("not an Ethernet endpoint that is not attached")
	}
	ep.Wait() // for nothing
	closed := 0
	ep.SetOnCloseAction(func() { closed++ })
	ep.Close()
	ep.Close()
	if closed != 1 {
		t.Errorf("%d actions on Close", closed)
	}
}

type strangeNIC struct {
	NIC
	rx int
}

func (n *strangeNIC) NumQueues() (rx, tx int)        { return n.rx, 1 }
func (n *strangeNIC) HardwareAddr() net.HardwareAddr { return nil }
