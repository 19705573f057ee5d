package pcapngtest

import (
	"encoding/binary"
	"fmt"
)

// File is what a capture file of one section holds.
type File struct {
	App        string
	Interfaces []Interface
	Packets    []Packet
}

// Interface is an Interface Description Block and the last Interface Statistics
// Block for it.
type Interface struct {
	Name        string
	Addr        []byte
	Speed       uint64
	SnapLen     int
	Nanoseconds bool // times count nanoseconds; else they count microseconds
	Stats       *Stats
}

// Packet is an Enhanced Packet Block.
type Packet struct {
	Interface int
	Time      uint64
	Data      []byte
	Len       int
	Flags     uint32
	Dropped   uint64
	Comment   string
}

// Stats is an Interface Statistics Block.
type Stats struct {
	Time, Start, End  uint64
	Received, Dropped uint64
}

// order is that of the section.
var order = binary.LittleEndian

// Read reads a little-endian file and complains about everything that the draft
// does not allow or that no test needs.
func Read(b []byte) (*File, error) {
	var f *File
	for at := 0; at < len(b); {
		fail := func(format string, a ...any) (*File, error) {
			return f, fmt.Errorf("block at %d: %s", at, fmt.Sprintf(format, a...))
		}
		rest := b[at:]
		if len(rest) < 12 {
			return fail("%d bytes are no block", len(rest))
		}
		kind, n := order.Uint32(rest), int(order.Uint32(rest[4:]))
		if n < 12 || n%4 != 0 || n > len(rest) || int(order.Uint32(rest[n-4:])) != n {
			return fail("length %d of %d", n, len(rest))
		}
		body := rest[8 : n-4]
		if f == nil && kind != 0x0a0d0d0a {
			return fail("type %#x comes first", kind)
		}
		var err error
		switch kind {
		case 0x0a0d0d0a:
			if f != nil {
				return fail("a second section")
			}
			f = new(File)
			err = f.section(body)
		case 1:
			err = f.description(body)
		case 5:
			err = f.statistics(body)
		case 6:
			err = f.packet(body)
		default:
			return fail("type %#x", kind)
		}
		if err != nil {
			return fail("%v", err)
		}
		at += n
	}
	return f, nil
}

// options calls f with each option.
func options(b []byte, f func(code uint16, v []byte) error) error {
	if len(b) == 0 {
		return nil
	}
	for {
		if len(b) < 4 {
			return fmt.Errorf("the options have no end")
		}
		code, n := order.Uint16(b), int(order.Uint16(b[2:]))
		b = b[4:]
		if code == 0 {
			if n != 0 || len(b) != 0 {
				return fmt.Errorf("%d bytes behind the end of the options", n+len(b))
			}
			return nil
		}
		padded := (n + 3) / 4 * 4
		if padded > len(b) {
			return fmt.Errorf("option %d has %d bytes of %d", code, n, len(b))
		}
		if err := f(code, b[:n]); err != nil {
			return fmt.Errorf("option %d: %w", code, err)
		}
		b = b[padded:]
	}
}

func number(v []byte, n int) (uint64, error) {
	switch {
	case len(v) != n:
		return 0, fmt.Errorf("%d bytes, want %d", len(v), n)
	case n == 4:
		return uint64(order.Uint32(v)), nil
	}
	return order.Uint64(v), nil
}

func moment(v []byte) uint64 { return uint64(order.Uint32(v))<<32 | uint64(order.Uint32(v[4:])) }

func (f *File) section(b []byte) error {
	if len(b) < 16 || order.Uint32(b) != 0x1a2b3c4d || order.Uint16(b[4:]) != 1 || order.Uint16(b[6:]) != 0 || order.Uint64(b[8:]) != 1<<64-1 {
		return fmt.Errorf("section header % x", b)
	}
	return options(b[16:], func(code uint16, v []byte) error {
		if code == 4 {
			f.App = string(v)
		}
		return nil
	})
}

func (f *File) description(b []byte) error {
	if len(b) < 8 || order.Uint16(b) != 1 || order.Uint16(b[2:]) != 0 {
		return fmt.Errorf("interface description % x", b)
	}
	i := Interface{SnapLen: int(order.Uint32(b[4:]))}
	err := options(b[8:], func(code uint16, v []byte) (err error) {
		switch code {
		case 2:
			i.Name = string(v)
		case 6:
			i.Addr = v
		case 8:
			i.Speed, err = number(v, 8)
		case 9:
			i.Nanoseconds = len(v) == 1 && v[0] == 9
		case 13:
			if len(v) != 1 || v[0] != 0 {
				err = fmt.Errorf("FCS of % x", v)
			}
		default:
			err = fmt.Errorf("unknown")
		}
		return err
	})
	f.Interfaces = append(f.Interfaces, i)
	return err
}

func (f *File) packet(b []byte) error {
	if len(b) < 20 {
		return fmt.Errorf("%d bytes", len(b))
	}
	p := Packet{Interface: int(order.Uint32(b)), Time: moment(b[4:]), Len: int(order.Uint32(b[16:]))}
	n := int(order.Uint32(b[12:]))
	if p.Interface >= len(f.Interfaces) || n > p.Len || (n+3)/4*4 > len(b)-20 {
		return fmt.Errorf("interface %d of %d, %d bytes of %d in %d", p.Interface, len(f.Interfaces), n, p.Len, len(b)-20)
	}
	if s := f.Interfaces[p.Interface].SnapLen; s != 0 && n > s {
		return fmt.Errorf("%d bytes are more than %d", n, s)
	}
	p.Data = b[20:][:n]
	err := options(b[20+(n+3)/4*4:], func(code uint16, v []byte) (err error) {
		var x uint64
		switch code {
		case 1:
			p.Comment = string(v)
		case 2:
			x, err = number(v, 4)
			p.Flags = uint32(x)
		case 4:
			p.Dropped, err = number(v, 8)
		default:
			err = fmt.Errorf("unknown")
		}
		return err
	})
	f.Packets = append(f.Packets, p)
	return err
}

func (f *File) statistics(b []byte) error {
	if len(b) < 12 || int(order.Uint32(b)) >= len(f.Interfaces) {
		return fmt.Errorf("% x", b)
	}
	s := &Stats{Time: moment(b[4:])}
	err := options(b[12:], func(code uint16, v []byte) (err error) {
		if len(v) != 8 {
			return fmt.Errorf("%d bytes, want 8", len(v))
		}
		switch code {
		case 2:
			s.Start = moment(v)
		case 3:
			s.End = moment(v)
		case 4:
			s.Received, err = number(v, 8)
		case 5:
			s.Dropped, err = number(v, 8)
		default:
			err = fmt.Errorf("unknown")
		}
		return err
	})
	f.Interfaces[order.Uint32(b)].Stats = s
	return err
}
