package pcapng

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// Block types. Sections 4.1 to 4.6 of the draft.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	byteOrderMagic = 0x1a2b3c4d
	linkEthernet   = 1 // LINKTYPE_ETHERNET
	nanoseconds    = 9 // if_tsresol: 10^-9 s
)

// Option codes. They count for the type of block that they stand in.
const (
	optEnd     = 0
	optComment = 1

	shbUserAppl = 4

	ifName     = 2
	ifMACAddr  = 6
	ifSpeed    = 8
	ifTsresol  = 9
	ifFCSLen   = 13
	epbFlags   = 2
	epbDropped = 4

	isbStart  = 2
	isbEnd    = 3
	isbIfRecv = 4
	isbIfDrop = 5
	maxOption = 1<<16 - 1
)

// Direction is where a packet went.
type Direction uint32

// Directions, the lowest bits of epb_flags.
const (
	Unknown  Direction = 0
	Inbound  Direction = 1
	Outbound Direction = 2
)

// Interface describes where packets are captured.
type Interface struct {
	Name    string
	Addr    []byte // its MAC address, six bytes, or nil
	Speed   uint64 // bit/s, 0: unknown
	SnapLen uint32 // bytes of a packet that are kept; 0: all
}

// Packet is a captured packet. Times count from the Unix epoch in nanoseconds.
type Packet struct {
	Interface int // the number that Writer.Interface gave
	Time      uint64
	Data      []byte // what was kept of it, without FCS
	Len       int    // bytes that it had
	Direction Direction
	Dropped   uint64 // packets of the interface that were lost since the one before
	Comment   string
}

// Statistics are the counts of an interface.
type Statistics struct {
	Time       uint64 // of the counts
	Start, End uint64 // of the capture
	Received   uint64 // packets that there were
	Dropped    uint64 // those of them that are not in the file
}

// Writer writes a capture file, each block with one call of Write. It is for one
// goroutine at a time, and allocates nothing for a packet once its memory is as
// large as the longest. After an error all calls return it: the file may end inside
// a block.
type Writer struct {
	w          io.Writer
	b          []byte // the block that is being made
	interfaces int
	err        error
}

// NewWriter returns a Writer to w and writes the head of the file; app is what
// makes it.
func NewWriter(w io.Writer, app string) (*Writer, error) {
	p := &Writer{w: w}
	p.begin(blockSection)
	p.u32(byteOrderMagic)
	p.u32(1)          // version 1.0
	p.u64(^uint64(0)) // the length of the section is not known
	p.text(shbUserAppl, app)
	p.endOptions()
	return p, p.end()
}

// Interface adds an interface and returns its number.
func (p *Writer) Interface(i Interface) (int, error) {
	p.begin(blockInterface)
	p.u32(linkEthernet)
	p.u32(i.SnapLen)
	p.text(ifName, i.Name)
	if len(i.Addr) == 6 {
		p.option(ifMACAddr, i.Addr)
	}
	if i.Speed != 0 {
		p.option64(ifSpeed, i.Speed)
	}
	p.option(ifTsresol, []byte{nanoseconds})
	p.option(ifFCSLen, []byte{0})
	p.endOptions()
	p.interfaces++
	return p.interfaces - 1, p.end()
}

// Packet adds a packet.
func (p *Writer) Packet(k *Packet) error {
	if err := p.known(k.Interface); err != nil {
		return err
	}
	p.begin(blockPacket)
	p.u32(uint32(k.Interface))
	p.time(k.Time)
	p.u32(uint32(len(k.Data)))
	p.u32(uint32(k.Len))
	p.b = append(p.b, k.Data...)
	p.pad()
	if k.Direction != Unknown || k.Dropped != 0 || k.Comment != "" {
		p.text(optComment, k.Comment)
		p.head(epbFlags, 4)
		p.u32(uint32(k.Direction))
		if k.Dropped != 0 {
			p.option64(epbDropped, k.Dropped)
		}
		p.endOptions()
	}
	return p.end()
}

// Statistics adds the counts of an interface.
func (p *Writer) Statistics(number int, s Statistics) error {
	if err := p.known(number); err != nil {
		return err
	}
	p.begin(blockStatistics)
	p.u32(uint32(number))
	p.time(s.Time)
	p.head(isbStart, 8)
	p.time(s.Start)
	p.head(isbEnd, 8)
	p.time(s.End)
	p.option64(isbIfRecv, s.Received)
	p.option64(isbIfDrop, s.Dropped)
	p.endOptions()
	return p.end()
}

func (p *Writer) known(number int) error {
	if number < 0 || number >= p.interfaces {
		return fmt.Errorf("pcapng: interface %d of %d: %w", number, p.interfaces, os.ErrInvalid)
	}
	return nil
}

func (p *Writer) u16(v uint16) { p.b = binary.LittleEndian.AppendUint16(p.b, v) }
func (p *Writer) u32(v uint32) { p.b = binary.LittleEndian.AppendUint32(p.b, v) }
func (p *Writer) u64(v uint64) { p.b = binary.LittleEndian.AppendUint64(p.b, v) }

// time writes a time: two words, the upper one first whatever the byte order.
func (p *Writer) time(v uint64) {
	p.u32(uint32(v >> 32))
	p.u32(uint32(v))
}

// pad fills up to a multiple of four bytes.
func (p *Writer) pad() {
	for len(p.b)%4 != 0 {
		p.b = append(p.b, 0)
	}
}

// begin begins a block.
func (p *Writer) begin(kind uint32) {
	p.b = p.b[:0]
	p.u32(kind)
	p.u32(0) // the length, which end knows
}

// end writes the block.
func (p *Writer) end() error {
	n := uint32(len(p.b) + 4)
	p.u32(n)
	binary.LittleEndian.PutUint32(p.b[4:], n)
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	return p.err
}

// head begins an option of n bytes.
func (p *Writer) head(code uint16, n int) {
	p.u16(code)
	p.u16(uint16(n))
}

func (p *Writer) option(code uint16, v []byte) {
	p.head(code, len(v))
	p.b = append(p.b, v...)
	p.pad()
}

func (p *Writer) option64(code uint16, v uint64) {
	p.head(code, 8)
	p.u64(v)
}

// text writes an option of text, unless that is empty. What is too long is cut.
func (p *Writer) text(code uint16, s string) {
	if s == "" {
		return
	}
	s = s[:min(len(s), maxOption)]
	p.head(code, len(s))
	p.b = append(p.b, s...)
	p.pad()
}

func (p *Writer) endOptions() { p.head(optEnd, 0) }
