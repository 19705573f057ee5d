package stack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
)

// The station on the wire that pings, and the one that answers.
var (
	pinger   = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	answerer = netip.AddrFrom4([4]byte{192, 0, 2, 2})
	station  = []byte{2, 0, 0, 0, 0, 1}
)

// Ping asks the stack of a board for its address and pings it, with frames made by
// hand, of 56 to 1,472 bytes of data.
func Ping(ctx context.Context, m *qtest.Machine) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a guard against a hang
	defer cancel()
	b, err := up(ctx, m, answerer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := m.Wire().Send(ctx, arpRequest()); err != nil {
		return err
	}
	reply, err := until(ctx, m.Wire(), func(f []byte) bool {
		return len(f) >= 42 && f[12] == 0x08 && f[13] == 0x06 && f[21] == 2 && bytes.Equal(f[28:32], answerer.AsSlice())
	})
	if err != nil {
		return fmt.Errorf("no answer to who has %v: %w", answerer, err)
	}
	mac := bytes.Clone(reply[22:28])
	if !bytes.Equal(mac, b.mac.HardwareAddr()) {
		return fmt.Errorf("%v is said to be at % x, and the MAC is %v", answerer, mac, b.mac.HardwareAddr())
	}
	for i, n := range []int{56, 57, 512, 1400, 1472} {
		request := echoRequest(mac, uint16(i), n)
		if err := m.Wire().Send(ctx, request); err != nil {
			return err
		}
		reply, err := until(ctx, m.Wire(), func(f []byte) bool {
			return len(f) >= 42+n && f[12] == 0x08 && f[13] == 0 && f[23] == 1 && f[34] == 0 && binary.BigEndian.Uint16(f[40:]) == uint16(i)
		})
		if err != nil {
			return fmt.Errorf("ping of %d bytes: %w", n, err)
		}
		if !bytes.Equal(reply[42:42+n], request[42:]) {
			return fmt.Errorf("ping of %d bytes came back changed", n)
		}
		if sum(reply[14:34]) != 0 || sum(reply[34:42+n]) != 0 {
			return fmt.Errorf("ping of %d bytes came back with a wrong checksum", n)
		}
	}
	return nil
}

// until takes frames off the wire until one is what is wanted.
func until(ctx context.Context, w *qtest.Wire, wanted func([]byte) bool) ([]byte, error) {
	for {
		f, err := w.Recv(ctx)
		if err != nil || wanted(f) {
			return f, err
		}
	}
}

// arpRequest asks who has the address of the board (RFC 826).
func arpRequest() []byte {
	f := bytes.Repeat([]byte{0xff}, 6)
	f = append(f, station...)
	f = append(f, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1)
	f = append(append(f, station...), pinger.AsSlice()...)
	f = append(append(f, make([]byte, 6)...), answerer.AsSlice()...)
	return append(f, make([]byte, 60-len(f))...)
}

// echoRequest is a ping with n bytes of data (RFC 791, 792).
func echoRequest(to []byte, seq uint16, n int) []byte {
	icmp := []byte{8, 0, 0, 0, 0x12, 0x34}
	icmp = binary.BigEndian.AppendUint16(icmp, seq)
	for i := range n {
		icmp = append(icmp, byte(i*3+n))
	}
	binary.BigEndian.PutUint16(icmp[2:], sum(icmp))
	ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 1, 0, 0}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(icmp)))
	ip = append(append(ip, pinger.AsSlice()...), answerer.AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], sum(ip))
	f := append(append(bytes.Clone(to), station...), 0x08, 0)
	return append(append(f, ip...), icmp...)
}

// sum is the internet checksum (RFC 1071); over data that has its own it is 0.
func sum(p []byte) uint16 {
	var s uint32
	for ; len(p) > 1; p = p[2:] {
		s += uint32(binary.BigEndian.Uint16(p))
	}
	if len(p) == 1 {
		s += uint32(p[0]) << 8
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
