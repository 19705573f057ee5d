package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The protocol between a hardware test and a peer on another machine, over TCP: the
// server first sends hello, then both sides send messages. A message is its kind, one
// byte, the length of its body, two bytes in network order, and the body. Whoever
// gets something that is none of these, or longer than its kind may be, hangs up.
//
//	hello    server  magic, version, abilities (a bit each), MTU in two bytes
//	frame    both    a frame without FCS: to be sent to the device, or received from it
//	watch    client  a source address: frames of others are not passed on; none are before
//	echo     client  1: frames go back to the device with their addresses swapped, and
//	                 are not passed on; 0: they are passed on
//	count    client  asks for the counts
//	counts   server  four times 64 bits, see Counts
//	refused  server  why the server hangs up, as text
type kind byte

const (
	kindHello kind = iota + 1
	kindFrame
	kindWatch
	kindEcho
	kindCount
	kindCounts
	kindRefused
)

// version is that of the protocol; two that differ do not talk.
const version = 1

// magic starts a hello.
const magic = "hwtest"

// errProtocol is what is not of the protocol.
var errProtocol = errors.New("not the protocol of hwtest")

// bodies are the bounds of the bodies by kind in bytes.
func bodies(k kind) (least, most int, ok bool) {
	const maxText = 1000
	switch k {
	case kindHello:
		n := len(magic) + 4
		return n, n, true
	case kindFrame:
		return minFrame, maxFrame, true
	case kindWatch:
		return 6, 6, true
	case kindEcho:
		return 1, 1, true
	case kindCount:
		return 0, 0, true
	case kindCounts:
		return 32, 32, true
	case kindRefused:
		return 0, maxText, true
	}
	return 0, 0, false
}

// readMessage reads a message; the body is good until the next one is read into buf,
// which is of maxFrame bytes at least.
func readMessage(r *bufio.Reader, buf []byte) (kind, []byte, error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), int(binary.BigEndian.Uint16(head[1:]))
	least, most, ok := bodies(k)
	if !ok || n < least || n > most {
		return 0, nil, fmt.Errorf("message of kind %d and %d bytes: %w", k, n, errProtocol)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return 0, nil, noEOF(err)
	}
	return k, buf[:n], nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// writeMessage writes a message whose body is within its bounds.
func writeMessage(w *bufio.Writer, k kind, body []byte) error {
	if least, most, ok := bodies(k); !ok || len(body) < least || len(body) > most {
		return fmt.Errorf("message of kind %d and %d bytes: %w", k, len(body), errProtocol)
	}
	head := [3]byte{byte(k)}
	binary.BigEndian.PutUint16(head[1:], uint16(len(body)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// abilities are those that a hello can tell, by bit.
func abilities() []Ability { return []Ability{Separate, Cable, Partner, Pause, Tags, Jumbo} }

// hello is what a server says of itself.
type hello struct {
	can []Ability
	mtu int
}

func (h hello) encode() []byte {
	var bits byte
	for i, a := range abilities() {
		for _, b := range h.can {
			if a == b {
				bits |= 1 << i
			}
		}
	}
	b := append([]byte(magic), version, bits)
	return binary.BigEndian.AppendUint16(b, uint16(min(h.mtu, maxMTU)))
}

func decodeHello(b []byte) (h hello, err error) {
	if string(b[:len(magic)]) != magic {
		return h, errProtocol
	}
	b = b[len(magic):]
	if b[0] != version {
		return h, fmt.Errorf("it speaks version %d of the protocol and this is %d: take both from one commit: %w", b[0], version, errProtocol)
	}
	for i, a := range abilities() {
		if b[1]&(1<<i) != 0 {
			h.can = append(h.can, a)
		}
	}
	h.mtu = int(binary.BigEndian.Uint16(b[2:]))
	if h.mtu < minMTU || h.mtu > maxMTU {
		return h, fmt.Errorf("an MTU of %d is not in %d..%d: %w", h.mtu, minMTU, maxMTU, errProtocol)
	}
	return h, nil
}

// Counts are what a server has counted since its client came.
type Counts struct {
	Sent     uint64 // frames to the device
	Received uint64 // frames from the source that is watched
	Foreign  uint64 // frames from others
	Dropped  uint64 // frames of those received that the client was too slow for
}

func (c Counts) encode() (b []byte) {
	for _, v := range []uint64{c.Sent, c.Received, c.Foreign, c.Dropped} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func decodeCounts(b []byte) Counts {
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Counts{at(0), at(1), at(2), at(3)}
}
