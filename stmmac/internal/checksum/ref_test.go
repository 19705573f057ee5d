package checksum

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
)

// expected is what the straightforward implementation says of a frame.
type expected struct {
	ok, plain, icmp4 bool
	tags             int
	filled           []byte // the frame with its checksums
}

// onesSum is the sum of RFC 1071 over the parts, one byte behind the other.
func onesSum(parts ...[]byte) uint16 {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if len(all)%2 == 1 {
		all = append(all, 0)
	}
	s := uint32(0)
	for i := 0; i < len(all); i += 2 {
		if s += uint32(all[i])<<8 | uint32(all[i+1]); s > 0xffff {
			s -= 0xffff
		}
	}
	return uint16(s)
}

// reference fills the checksums of a frame in one piece.
func reference(frame []byte) (e expected) {
	f := append([]byte(nil), frame...)
	e.filled = f
	customer := true
	at := 12
	for ; at+2 <= len(f); at += 4 {
		switch typ := binary.BigEndian.Uint16(f[at:]); {
		case (typ == 0x8100 || typ == 0x88a8) && e.tags < 2:
			customer = customer && typ == 0x8100
			e.tags++
			continue
		case typ == 0x0800:
			e.ipv4(f[at+2:])
		case typ == 0x86dd:
			e.ipv6(f[at+2:])
		}
		break
	}
	e.plain = e.plain && customer
	return e
}

func (e *expected) ipv4(p []byte) {
	if len(p) < 20 || p[0]>>4 != 4 {
		return
	}
	header, total := int(p[0]&15)*4, int(p[2])<<8|int(p[3])
	if header < 20 || total < header || total > len(p) {
		return
	}
	e.ok = true
	binary.BigEndian.PutUint16(p[10:], 0)
	binary.BigEndian.PutUint16(p[10:], ^onesSum(p[:header]))
	if more, offset := p[6]&0x20 != 0, int(p[6]&0x1f)<<8|int(p[7]); more || offset != 0 {
		return
	}
	pseudo := append(append([]byte(nil), p[12:20]...), 0, p[9])
	done, all := e.payload(p[header:total], pseudo, p[9], false)
	e.plain = done && all && header == 20 && total == len(p)
	e.icmp4 = done && p[9] == 1
}

func (e *expected) ipv6(p []byte) {
	if len(p) < 40 || p[0]>>4 != 6 {
		return
	}
	n := int(p[4])<<8 | int(p[5])
	if n == 0 || 40+n > len(p) {
		return
	}
	next, rest := p[6], p[40:40+n]
	for headers := 0; ; headers++ {
		if headers == 16 {
			return
		}
		if next != 0 && next != 43 && next != 44 && next != 60 {
			pseudo := append(append([]byte(nil), p[8:40]...), 0, next)
			done, all := e.payload(rest, pseudo, next, true)
			e.ok = done
			e.plain = done && all && headers == 0 && 40+n == len(p)
			return
		}
		if len(rest) < 8 {
			return
		}
		size := 8 + 8*int(rest[1])
		switch next {
		case 43:
			if rest[3] != 0 { // segments left
				return
			}
		case 44:
			if rest[2] != 0 || rest[3]&^6 != 0 { // offset, M
				return
			}
			size = 8
		}
		if size > len(rest) {
			return
		}
		next, rest = rest[0], rest[size:]
	}
}

// payload fills the checksum of a payload. done says that it has one, and all
// that it covers all of it.
func (e *expected) payload(p, pseudo []byte, proto byte, v6 bool) (done, all bool) {
	least, field := 0, 0
	switch {
	case proto == 6:
		least, field = 20, 16
	case proto == 17:
		least, field = 8, 6
	case proto == 1 && !v6:
		least, field, pseudo = 8, 2, nil
	case proto == 58 && v6:
		least, field = 4, 2
	default:
		return false, false
	}
	if len(p) < least {
		return false, false
	}
	all = true
	if proto == 17 {
		n := int(p[4])<<8 | int(p[5])
		if n < 8 || n > len(p) {
			return false, false
		}
		all = n == len(p)
		p = p[:n]
	}
	if pseudo != nil {
		pseudo = append(pseudo, byte(len(p)>>8), byte(len(p)))
	}
	binary.BigEndian.PutUint16(p[field:], 0)
	sum := ^onesSum(pseudo, p)
	if sum == 0 && proto == 17 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(p[field:], sum)
	return true, all
}

// flat is a device without an IOMMU and without memory.
type flat struct{ next uint64 }

func (f *flat) MapDMA(mem []byte) (uint64, error) {
	a := f.next + 1<<20
	f.next = a + uint64(len(mem))
	return a, nil
}
func (f *flat) UnmapDMA(uint64, int) error                    { return nil }
func (f *flat) Coherent() bool                                { return true }
func (f *flat) AllocDMA(n, align int) ([]byte, uint64, error) { return nil, 0, errors.ErrUnsupported }

const (
	chunk = 1024
	guard = 0xc3
)

func newPool(t testing.TB) *pagepool.Pool {
	t.Helper()
	p, err := pagepool.New(&flat{}, 64, pagepool.WithBufSize(chunk))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// fataler is a test of any kind.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// split is a frame in buffers of the given lengths and one with the rest. Each
// starts at another offset, and what surrounds the data is guard.
func split(t fataler, pool *pagepool.Pool, frame []byte, lens []int) *pagepool.Buf {
	t.Helper()
	var head, tail *pagepool.Buf
	for i := 0; ; i++ {
		n := len(frame)
		if i < len(lens) {
			n = min(n, lens[i])
		}
		b, err := pool.Alloc()
		if err != nil {
			t.Fatal(err)
		}
		b.Reset(0)
		b.SetLen(chunk)
		for j := range b.Bytes() {
			b.Bytes()[j] = guard
		}
		b.Reset(17 + 3*i)
		b.SetData(frame[:n])
		if frame = frame[n:]; head == nil {
			head = b
		} else {
			tail.SetNext(b)
		}
		tail = b
		if i >= len(lens) {
			return head
		}
	}
}

// joined is the frame of a chain. It fails where guard was overwritten.
func joined(t fataler, b *pagepool.Buf) []byte {
	t.Helper()
	frame := make([]byte, b.FrameLen())
	b.CopyTo(frame)
	for i := 0; b != nil; b, i = b.Next(), i+1 {
		from, to := b.Headroom(), b.Headroom()+b.Len()
		b.Prepend(b.Headroom())
		b.SetLen(chunk)
		for j, v := range b.Bytes() {
			if (j < from || j >= to) && v != guard {
				t.Fatalf("buffer %d: byte %d was overwritten, its data are %d to %d", i, j, from, to)
			}
		}
	}
	return frame
}
