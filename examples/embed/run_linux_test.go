package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
)

// ring is how many descriptors each ring has; one of them is not used. Their
// pool, of four times as many buffers, fits into the memory of a board.
const ring = 256

// frame returns a frame from and to the address that the board's MAC has in
// this test, and what its echo is.
func frame(i, n int) (in, echo []byte) {
	payload := bytes.Repeat([]byte{byte(i)}, n)
	in = append([]byte("\x02mac00\x02peer0\x88\xb5"), payload...)
	echo = append([]byte("\x02peer0\x02mac00\x88\xb5"), payload...)
	return in, echo
}

// fixedLink is for a MAC without a PHY.
var fixedLink = stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true})

// TestRun runs the program on a board whose MAC answers, with more frames than
// the rings hold and a sender that stands still at first.
func TestRun(t *testing.T) {
	b := newBoard(t, nil)
	m := newMiniMAC(t, b)
	var wanted [][]byte
	for i := range 3 * ring {
		in, echo := frame(i, 46+i*37%1455)
		m.feed(in)
		wanted = append(wanted, echo)
		if i == 20 {
			m.feed([]byte("\xff\xff\xff\xff\xff\xff\x02peer0\x88\xb5to everybody, so nobody's to echo"))
		}
	}
	b.leavesNothing(t, func() {
		stop := m.start()
		defer stop()
		m.hold.Store(true)
		ctx, interrupt := context.WithCancel(t.Context())
		var out strings.Builder
		ended := make(chan error)
		go func() {
			ended <- run(ctx, config{paths: b.paths, generation: stmmac.GMAC4, mtu: 1500, csrClock: 250_000_000}, &out,
				stmmac.WithConfig(patient), stmmac.WithRings(ring, ring), fixedLink)
		}()

		// The send ring fills, and then the receive ring: the loop waits.
		until(func() bool {
			_, received, _ := m.done()
			return m.posted() == ring-1 && len(received) > ring-1
		})
		if sent, _, _ := m.done(); len(sent) != 0 {
			t.Errorf("%d frames were sent while the sender stood still", len(sent))
		}
		m.hold.Store(false)
		until(func() bool { sent, _, _ := m.done(); return len(sent) >= len(wanted) })
		interrupt()
		if err := <-ended; err != nil {
			t.Error(err)
		}

		sent, rxAddr, txAddr := m.done()
		if !slices.EqualFunc(sent, wanted, bytes.Equal) {
			t.Errorf("%d frames came back, and not the %d that were sent in their order", len(sent), len(wanted))
		}
		// The frame to everybody was the one behind number 20.
		if rxAddr = slices.Delete(rxAddr, 21, 22); !slices.Equal(rxAddr, txAddr) {
			t.Errorf("frames were sent from %#x and received into %#x", txAddr, rxAddr)
		}
		for _, want := range []string{
			b.uio + ": ", "1000 Mbit/s full duplex",
			fmt.Sprintf("echoed %d, to a group 1, refused 0\n", len(wanted)),
			fmt.Sprintf("%-16s %d\n", "rx0_packets", len(wanted)+1),
			fmt.Sprintf("%-16s %d\n", "tx0_packets", len(wanted)),
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in:\n%s", want, out.String())
			}
		}
	})
}

// TestRunTwice gives the device back so that it can be had again, also when the
// loop waits for a sender that stands still.
func TestRunTwice(t *testing.T) {
	b := newBoard(t, nil)
	m := newMiniMAC(t, b)
	b.leavesNothing(t, func() {
		stop := m.start()
		defer stop()
		m.hold.Store(true)
		for range 2 {
			for i := range 2 * ring {
				in, _ := frame(i, 100)
				m.feed(in)
			}
			_, before, _ := m.done()
			ctx, interrupt := context.WithCancel(t.Context())
			var out strings.Builder
			ended := make(chan error)
			go func() {
				ended <- run(ctx, config{paths: b.paths, generation: stmmac.GMAC4, mtu: 1500}, &out,
					stmmac.WithConfig(patient), stmmac.WithRings(ring, ring))
			}()
			until(func() bool {
				_, received, _ := m.done()
				return m.posted() == ring-1 && len(received)-len(before) > ring-1
			})
			interrupt()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
