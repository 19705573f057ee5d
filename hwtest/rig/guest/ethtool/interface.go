package ethtool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// Commands and sets of names of linux/ethtool.h.
const (
	cmdDriver      = 0x03
	cmdLink        = 0x0a
	cmdCoalesce    = 0x0e
	cmdSetCoalesce = 0x0f
	cmdRings       = 0x10
	cmdSetRings    = 0x11
	cmdPause       = 0x12
	cmdSetPause    = 0x13
	cmdTest        = 0x1a
	cmdStrings     = 0x1b
	cmdStats       = 0x1d
	cmdSetInfo     = 0x37
	cmdFeatures    = 0x3a
	cmdSetFeatures = 0x3b
	cmdSettings    = 0x4c

	namesOfTests    = 0
	namesOfStats    = 1
	namesOfFeatures = 4
	nameLen         = 32
)

// Interface is an interface of the network namespace in which it was opened. Its methods may
// be called by several goroutines. Their errors name the interface and what was asked, and
// wrap the system's: errors.ErrUnsupported where the driver has no such thing, os.ErrPermission
// for a user that may not.
type Interface struct {
	name string
	mu   sync.Mutex // one ioctl at a time
	fd   int
}

// Open opens an interface by name. Whether it exists is for the first use to find out.
func Open(name string) (*Interface, error) {
	fd, err := open()
	if err != nil {
		return nil, fmt.Errorf("ethtool: open a socket for %s: %w", name, err)
	}
	return &Interface{name: name, fd: fd}, nil
}

// Close closes it. It is for the end: no other call may run or follow.
func (i *Interface) Close() error { return closeSocket(i.fd) }

var native = binary.NativeEndian

// block is what an ioctl takes and fills: 32-bit words first, whose first is the command.
type block []byte

// newBlock is a block of n bytes, at most filled up to 8, aligned as the kernel wants it.
func newBlock(cmd uint32, n int) block {
	words := make([]uint64, (n+7)/8)
	b := block(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8))
	b.put(0, cmd)
	return b
}

func (b block) put(word int, v uint32)  { native.PutUint32(b[4*word:], v) }
func (b block) get(word int) uint32     { return native.Uint32(b[4*word:]) }
func (b block) get64(offset int) uint64 { return native.Uint64(b[offset:]) }
func (b block) text(offset, n int) string {
	text, _, _ := bytes.Cut(b[offset:offset+n], []byte{0})
	return string(text)
}

// do does an ioctl; what names it in an error.
func (i *Interface) do(what string, b block) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, err := ioctl(i.fd, i.name, unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8))
	if err != nil {
		return 0, fmt.Errorf("ethtool: %s of %s: %w", what, i.name, err)
	}
	return n, nil
}

// names returns a set of names.
func (i *Interface) names(what string, set uint32) ([]string, error) {
	info := newBlock(cmdSetInfo, 24) // the command, a reserved word, a mask of sets, the length of the one
	native.PutUint64(info[8:], 1<<set)
	if _, err := i.do(what, info); err != nil {
		return nil, err
	}
	if info.get64(8) == 0 {
		return nil, nil
	}
	n := int(info.get(4))
	b := newBlock(cmdStrings, 12+n*nameLen)
	b.put(1, set)
	b.put(2, uint32(n))
	if _, err := i.do(what, b); err != nil {
		return nil, err
	}
	all := make([]string, 0, n)
	for k := range min(n, int(b.get(2))) {
		all = append(all, b.text(12+k*nameLen, nameLen))
	}
	return all, nil
}

// Driver is the driver of an interface.
type Driver struct {
	Name string // "stmmaceth" for stmmac
	Bus  string // the device's name on its bus
}

// Driver returns the driver.
func (i *Interface) Driver() (Driver, error) {
	b := newBlock(cmdDriver, 196)
	_, err := i.do("driver", b)
	return Driver{b.text(4, 32), b.text(100, 32)}, err
}

// Link is the state of the link.
type Link struct {
	Up      bool
	Mbps    int // 0 when it is not known
	Full    bool
	Autoneg bool
}

// Link returns the state of the link. Speed and duplex of an interface whose driver does not
// tell them are 0 and half.
func (i *Interface) Link() (l Link, err error) {
	up := newBlock(cmdLink, 8)
	if _, err := i.do("link", up); err != nil {
		return l, err
	}
	l.Up = up.get(1) != 0
	// The first call says how many words the masks of modes have, as a negative number.
	const head, unknown, full = 48, 1<<32 - 1, 1
	b := newBlock(cmdSettings, head)
	if _, err := i.do("link settings", b); err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			return l, nil
		}
		return l, err
	}
	words := -int(int8(b[15]))
	if words <= 0 {
		return l, nil
	}
	b = newBlock(cmdSettings, head+3*4*words)
	b[15] = byte(words)
	if _, err := i.do("link settings", b); err != nil {
		return l, err
	}
	if v := b.get(1); v != unknown {
		l.Mbps = int(v)
	}
	l.Full, l.Autoneg = b[8] == full, b[11] != 0
	return l, nil
}

// Statistics returns the driver's own counters by name.
func (i *Interface) Statistics() (map[string]uint64, error) {
	names, err := i.names("statistics", namesOfStats)
	if err != nil || len(names) == 0 {
		return map[string]uint64{}, err
	}
	b := newBlock(cmdStats, 8+8*len(names))
	b.put(1, uint32(len(names)))
	if _, err := i.do("statistics", b); err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for k, n := range names[:min(len(names), int(b.get(1)))] {
		all[n] = b.get64(8 + 8*k)
	}
	return all, nil
}

// Pause is flow control by pause frames.
type Pause struct{ Autoneg, Rx, Tx bool }

// Pause returns what is set.
func (i *Interface) Pause() (Pause, error) {
	b := newBlock(cmdPause, 16)
	_, err := i.do("pause", b)
	return Pause{b.get(1) != 0, b.get(2) != 0, b.get(3) != 0}, err
}

// SetPause sets it.
func (i *Interface) SetPause(p Pause) error {
	b := newBlock(cmdSetPause, 16)
	for k, on := range []bool{p.Autoneg, p.Rx, p.Tx} {
		if on {
			b.put(1+k, 1)
		}
	}
	_, err := i.do("set pause", b)
	return err
}

// Coalesce is how many frames or microseconds an interrupt is for, in both directions.
type Coalesce struct{ RxMicroseconds, RxFrames, TxMicroseconds, TxFrames uint32 }

const coalesceSize = 23 * 4

// Coalesce returns what is set.
func (i *Interface) Coalesce() (Coalesce, error) {
	b := newBlock(cmdCoalesce, coalesceSize)
	_, err := i.do("coalescing", b)
	return Coalesce{b.get(1), b.get(2), b.get(5), b.get(6)}, err
}

// SetCoalesce sets it; all other parameters stay.
func (i *Interface) SetCoalesce(c Coalesce) error {
	b := newBlock(cmdCoalesce, coalesceSize)
	if _, err := i.do("coalescing", b); err != nil {
		return err
	}
	b.put(0, cmdSetCoalesce)
	b.put(1, c.RxMicroseconds)
	b.put(2, c.RxFrames)
	b.put(5, c.TxMicroseconds)
	b.put(6, c.TxFrames)
	_, err := i.do("set coalescing", b)
	return err
}

// Rings are the lengths of rings in descriptors, and the most that the driver takes.
type Rings struct{ Rx, Tx, MaxRx, MaxTx uint32 }

// Rings returns what is set.
func (i *Interface) Rings() (Rings, error) {
	b := newBlock(cmdRings, 36)
	_, err := i.do("rings", b)
	return Rings{b.get(5), b.get(8), b.get(1), b.get(4)}, err
}

// SetRings sets the lengths.
func (i *Interface) SetRings(rx, tx uint32) error {
	b := newBlock(cmdRings, 36)
	if _, err := i.do("rings", b); err != nil {
		return err
	}
	b.put(0, cmdSetRings)
	b.put(5, rx)
	b.put(8, tx)
	_, err := i.do("set rings", b)
	return err
}

// Feature is an offload or another feature of an interface.
type Feature struct {
	Active    bool
	Available bool // it can be changed
}

// Features returns all features that have a name.
func (i *Interface) Features() (map[string]Feature, error) {
	names, err := i.names("features", namesOfFeatures)
	if err != nil {
		return nil, err
	}
	const perBlock = 32
	blocks := (len(names) + perBlock - 1) / perBlock
	b := newBlock(cmdFeatures, 8+16*blocks)
	b.put(1, uint32(blocks))
	if _, err := i.do("features", b); err != nil {
		return nil, err
	}
	all := map[string]Feature{}
	for k, n := range names {
		// Words of a block: what can be changed, what was asked for, what is active, what never changes.
		word, bit := 2+4*(k/perBlock), uint32(1)<<(k%perBlock)
		if n != "" {
			all[n] = Feature{Active: b.get(word+2)&bit != 0, Available: b.get(word)&bit != 0}
		}
	}
	return all, nil
}

// SetFeatures switches features by name on or off, all others stay. One that does not
// become what was asked for is an error.
func (i *Interface) SetFeatures(want map[string]bool) error {
	names, err := i.names("features", namesOfFeatures)
	if err != nil {
		return err
	}
	const perBlock = 32
	blocks := (len(names) + perBlock - 1) / perBlock
	b := newBlock(cmdSetFeatures, 8+8*blocks)
	b.put(1, uint32(blocks))
	for n, on := range want {
		k := slices.Index(names, n)
		if k < 0 {
			return fmt.Errorf("ethtool: set features of %s: the kernel knows no %q", i.name, n)
		}
		word, bit := 2+2*(k/perBlock), uint32(1)<<(k%perBlock)
		b.put(word, b.get(word)|bit)
		if on {
			b.put(word+1, b.get(word+1)|bit)
		}
	}
	if _, err := i.do("set features", b); err != nil {
		return err
	}
	got, err := i.Features()
	if err != nil {
		return err
	}
	for n, on := range want {
		if got[n].Active != on {
			return fmt.Errorf("ethtool: set features of %s: %s stayed %v", i.name, n, got[n].Active)
		}
	}
	return nil
}
