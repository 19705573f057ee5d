package sim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The classic capture file, draft-ietf-opsawg-pcap (libpcap savefile format 2.4).
const (
	pcapMagicMicro = 0xa1b2c3d4
	pcapMagicNano  = 0xa1b23c4d
	pcapMajor      = 2
	pcapMinor      = 4
	pcapFileHeader = 24
	pcapRecHeader  = 16
	pcapEthernet   = 1 // LINKTYPE_ETHERNET

	// Fields of the link type word: the FCS length in 16-bit units counts only
	// with the bit that says it is there; what lies between is reserved.
	pcapLinkMask     = 0x0000ffff
	pcapLinkReserved = 0x03ff0000
	pcapFCSPresent   = 0x04000000
	pcapFCSShift     = 28

	// pcapMaxRecord is libpcap's MAXIMUM_SNAPLEN.
	pcapMaxRecord = 256 << 10
	// pcapChunk is how much of a record is read before memory for more of it is
	// taken, so that a length alone costs nothing.
	pcapChunk = 4 << 10
)

// What is wrong with a capture file. A file that ends inside a header or a
// record has [io.ErrUnexpectedEOF].
var (
	ErrPcapMagic    = errors.New("not a pcap file")
	ErrPcapVersion  = errors.New("pcap version is not 2.4")
	ErrPcapLinkType = errors.New("link type is not Ethernet")
	ErrPcapLength   = errors.New("record is longer than the file says records are")
)

// PcapError is an error in a capture file.
type PcapError struct {
	Op     string // "header", "record" (the header of one), "data" or "write"
	Offset int64  // where that header, record or data starts, in bytes
	Err    error  // one of ErrPcap…, io.ErrUnexpectedEOF, or what the file returned
}

// Error implements error.
func (e *PcapError) Error() string {
	return fmt.Sprintf("sim: pcap %s at offset %d: %v", e.Op, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *PcapError) Unwrap() error { return e.Err }

// PcapRecord is one frame of a capture file.
type PcapRecord struct {
	// Time is the time since the Unix epoch.
	Time time.Duration
	// Data is what was captured, with FCS if the file has it.
	Data []byte
	// OrigLen is the length on the wire; Data is shorter if the capture cut it.
	OrigLen uint32
}

// PcapReader reads a classic capture file of either byte order and resolution.
// It is used by one goroutine at a time. It never panics and never holds more
// memory than twice what it read plus a fixed buffer.
type PcapReader struct {
	r       *bufio.Reader
	order   binary.ByteOrder
	unit    time.Duration
	snapLen uint32
	fcsLen  int
	off     int64
	hdr     [pcapRecHeader]byte
	buf     []byte
	err     error
}

// NewPcapReader reads the file header. It returns a [*PcapError].
func NewPcapReader(r io.Reader) (*PcapReader, error) {
	p := &PcapReader{r: bufio.NewReader(r)}
	var h [pcapFileHeader]byte
	if _, err := io.ReadFull(p.r, h[:]); err != nil {
		return nil, &PcapError{Op: "header", Err: pcapCut(err)}
	}
	if err := p.header(&h); err != nil {
		return nil, &PcapError{Op: "header", Err: err}
	}
	p.off = pcapFileHeader
	return p, nil
}

func (p *PcapReader) header(h *[pcapFileHeader]byte) error {
	var magic uint32
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		magic = order.Uint32(h[:])
		if magic == pcapMagicMicro || magic == pcapMagicNano {
			p.order = order
			break
		}
	}
	switch {
	case p.order == nil:
		return ErrPcapMagic
	case magic == pcapMagicMicro:
		p.unit = time.Microsecond
	default:
		p.unit = time.Nanosecond
	}
	if p.order.Uint16(h[4:]) != pcapMajor || p.order.Uint16(h[6:]) != pcapMinor {
		return ErrPcapVersion
	}
	p.snapLen = p.order.Uint32(h[16:])
	if p.snapLen == 0 || p.snapLen > pcapMaxRecord { // as libpcap: no limit of its own
		p.snapLen = pcapMaxRecord
	}
	link := p.order.Uint32(h[20:])
	if link&pcapFCSPresent != 0 {
		p.fcsLen = int(link>>pcapFCSShift) * 2
	}
	if link&pcapLinkMask != pcapEthernet || link&pcapLinkReserved != 0 || p.fcsLen != 0 && p.fcsLen != 4 {
		return ErrPcapLinkType
	}
	return nil
}

// pcapCut turns the end of a file where it must not be into a cut file.
func pcapCut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// FCSLen is the number of FCS bytes at the end of every uncut frame, 0 or 4.
func (p *PcapReader) FCSLen() int { return p.fcsLen }

// SnapLen is the longest record that the file may have, in bytes.
func (p *PcapReader) SnapLen() int { return int(p.snapLen) }

// Next returns the next record, [io.EOF] at the end, or a [*PcapError]; an
// error stays. The data is valid until the next call.
func (p *PcapReader) Next() (PcapRecord, error) {
	if p.err != nil {
		return PcapRecord{}, p.err
	}
	rec, err := p.next()
	p.err = err
	return rec, err
}

func (p *PcapReader) next() (PcapRecord, error) {
	n, err := io.ReadFull(p.r, p.hdr[:])
	if n == 0 && errors.Is(err, io.EOF) {
		return PcapRecord{}, io.EOF
	}
	if err != nil {
		return PcapRecord{}, &PcapError{Op: "record", Offset: p.off, Err: pcapCut(err)}
	}
	length := p.order.Uint32(p.hdr[8:])
	if length > p.snapLen {
		return PcapRecord{}, &PcapError{Op: "record", Offset: p.off, Err: ErrPcapLength}
	}
	p.off += pcapRecHeader
	if err := p.data(int(length)); err != nil {
		return PcapRecord{}, &PcapError{Op: "data", Offset: p.off, Err: pcapCut(err)}
	}
	p.off += int64(length)
	return PcapRecord{
		Time:    time.Duration(p.order.Uint32(p.hdr[0:]))*time.Second + time.Duration(p.order.Uint32(p.hdr[4:]))*p.unit,
		Data:    p.buf[:length:length],
		OrigLen: p.order.Uint32(p.hdr[12:]),
	}, nil
}

// data reads n bytes into buf, which grows with what was read.
func (p *PcapReader) data(n int) error {
	for have := 0; have < n; {
		if have == len(p.buf) {
			grown := make([]byte, max(2*have, pcapChunk))
			copy(grown, p.buf)
			p.buf = grown
		}
		end := min(n, len(p.buf))
		if _, err := io.ReadFull(p.r, p.buf[have:end]); err != nil {
			return err
		}
		have = end
	}
	return nil
}

// PcapFormat says how a capture file is written. The zero value is what tcpdump
// writes: little-endian, microseconds, frames of up to 256 KiB.
type PcapFormat struct {
	BigEndian   bool
	Nanoseconds bool
	// SnapLen cuts longer frames, in bytes; 0 and more than 256 KiB are 256 KiB.
	SnapLen uint32
}

// PcapWriter writes a classic capture file of Ethernet frames without FCS. It
// is used by one goroutine at a time.
type PcapWriter struct {
	w       *bufio.Writer
	order   binary.ByteOrder
	unit    time.Duration
	snapLen uint32
	off     int64
	hdr     [pcapRecHeader]byte
	err     error
}

// NewPcapWriter returns a writer whose file header is in its buffer.
func NewPcapWriter(w io.Writer, f PcapFormat) *PcapWriter {
	p := &PcapWriter{w: bufio.NewWriter(w), order: binary.LittleEndian, unit: time.Microsecond, snapLen: f.SnapLen}
	magic := uint32(pcapMagicMicro)
	if f.Nanoseconds {
		magic, p.unit = pcapMagicNano, time.Nanosecond
	}
	if f.BigEndian {
		p.order = binary.BigEndian
	}
	if p.snapLen == 0 || p.snapLen > pcapMaxRecord {
		p.snapLen = pcapMaxRecord
	}
	var h [pcapFileHeader]byte
	p.order.PutUint32(h[0:], magic)
	p.order.PutUint16(h[4:], pcapMajor)
	p.order.PutUint16(h[6:], pcapMinor)
	p.order.PutUint32(h[16:], p.snapLen)
	p.order.PutUint32(h[20:], pcapEthernet)
	p.put(h[:])
	return p
}

// WriteFrame appends a frame that passed t after the Unix epoch; a time before
// it is written as 0, and seconds are kept modulo 2^32. The error is a
// [*PcapError] and stays.
func (p *PcapWriter) WriteFrame(t time.Duration, data []byte) error {
	t = max(t, 0)
	n := min(uint64(len(data)), uint64(p.snapLen))
	p.order.PutUint32(p.hdr[0:], uint32(t/time.Second))
	p.order.PutUint32(p.hdr[4:], uint32(t%time.Second/p.unit))
	p.order.PutUint32(p.hdr[8:], uint32(n))
	p.order.PutUint32(p.hdr[12:], uint32(len(data)))
	p.put(p.hdr[:])
	p.put(data[:n])
	return p.err
}

// Flush writes what is buffered. The error is a [*PcapError] and stays.
func (p *PcapWriter) Flush() error {
	p.fail(p.w.Flush())
	return p.err
}

func (p *PcapWriter) put(b []byte) {
	if p.err != nil {
		return
	}
	n, err := p.w.Write(b)
	p.fail(err)
	p.off += int64(n)
}

func (p *PcapWriter) fail(err error) {
	if p.err == nil && err != nil {
		p.err = &PcapError{Op: "write", Offset: p.off, Err: err}
	}
}
