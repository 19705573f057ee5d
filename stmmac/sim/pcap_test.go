package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

// pcapFile builds a file word by word, apart from the writer.
type pcapFile struct {
	order binary.AppendByteOrder
	b     []byte
}

func newPcapFile(order binary.AppendByteOrder, magic uint32, major, minor uint16, snap, link uint32) *pcapFile {
	f := &pcapFile{order: order}
	f.b = order.AppendUint32(f.b, magic)
	f.b = order.AppendUint16(f.b, major)
	f.b = order.AppendUint16(f.b, minor)
	f.words(0, 0, snap, link)
	return f
}

func (f *pcapFile) words(w ...uint32) *pcapFile {
	for _, v := range w {
		f.b = f.order.AppendUint32(f.b, v)
	}
	return f
}

func (f *pcapFile) record(sec, frac, orig uint32, data []byte) *pcapFile {
	f.words(sec, frac, uint32(len(data)), orig)
	f.b = append(f.b, data...)
	return f
}

func goodPcap() *pcapFile {
	return newPcapFile(binary.LittleEndian, 0xa1b2c3d4, 2, 4, 65535, 1)
}

func TestPcapFormats(t *testing.T) {
	for _, tc := range []struct {
		name  string
		order binary.AppendByteOrder
		magic uint32
		unit  time.Duration
		f     PcapFormat
	}{
		{"micro/little", binary.LittleEndian, 0xa1b2c3d4, time.Microsecond, PcapFormat{SnapLen: 100}},
		{"micro/big", binary.BigEndian, 0xa1b2c3d4, time.Microsecond, PcapFormat{SnapLen: 100, BigEndian: true}},
		{"nano/little", binary.LittleEndian, 0xa1b23c4d, 1, PcapFormat{SnapLen: 100, Nanoseconds: true}},
		{"nano/big", binary.BigEndian, 0xa1b23c4d, 1, PcapFormat{SnapLen: 100, BigEndian: true, Nanoseconds: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := 1700000000*time.Second + 123456*tc.unit
			want := newPcapFile(tc.order, tc.magic, 2, 4, 100, 1).
				record(1700000000, 123456, 60, wireFrame(1, 60)).
				record(0, 0, 0, nil).
				record(0, 0, 150, wireFrame(2, 150)[:100]).b
			var out bytes.Buffer
			w := NewPcapWriter(&out, tc.f)
			for _, err := range []error{
				w.WriteFrame(at, wireFrame(1, 60)), w.WriteFrame(-1, nil), w.WriteFrame(0, wireFrame(2, 150)), w.Flush(),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Fatalf("written\n%x\nwant\n%x", out.Bytes(), want)
			}
			r, err := NewPcapReader(iotest.OneByteReader(bytes.NewReader(want)))
			if err != nil {
				t.Fatal(err)
			}
			for i, rec := range []PcapRecord{
				{at, wireFrame(1, 60), 60}, {0, nil, 0}, {0, wireFrame(2, 150)[:100], 150},
			} {
				got, err := r.Next()
				if err != nil || got.Time != rec.Time || got.OrigLen != rec.OrigLen || !bytes.Equal(got.Data, rec.Data) {
					t.Fatalf("record %d: %+v, %v", i, got, err)
				}
			}
			for range 2 {
				if _, err := r.Next(); err != io.EOF {
					t.Fatalf("at the end: %v, want io.EOF", err)
				}
			}
		})
	}
}

func TestPcapErrors(t *testing.T) {
	le := binary.LittleEndian
	errDisk := errors.New("disk")
	good := goodPcap().record(1, 2, 60, wireFrame(1, 60)).b
	for _, tc := range []struct {
		name string
		in   io.Reader
		op   string
		off  int64
		err  error
	}{
		{"empty", bytes.NewReader(nil), "header", 0, io.ErrUnexpectedEOF},
		{"cut file header", bytes.NewReader(good[:23]), "header", 0, io.ErrUnexpectedEOF},
		{"magic", bytes.NewReader(newPcapFile(le, 0x0a0d0d0a, 2, 4, 65535, 1).b), "header", 0, ErrPcapMagic},
		{"modified magic", bytes.NewReader(newPcapFile(le, 0xa1b2cd34, 2, 4, 65535, 1).b), "header", 0, ErrPcapMagic},
		{"major", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 3, 4, 65535, 1).b), "header", 0, ErrPcapVersion},
		{"minor", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 3, 65535, 1).b), "header", 0, ErrPcapVersion},
		{"link type", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 65535, 113).b), "header", 0, ErrPcapLinkType},
		{"link type reserved", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 65535, 1|1<<20).b), "header", 0, ErrPcapLinkType},
		{"FCS of 2", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 65535, 1|0x14000000).b), "header", 0, ErrPcapLinkType},
		{"cut record header", bytes.NewReader(good[:24+15]), "record", 24, io.ErrUnexpectedEOF},
		{"record header of 1", bytes.NewReader(good[:25]), "record", 24, io.ErrUnexpectedEOF},
		{"no data", bytes.NewReader(good[:40]), "data", 40, io.ErrUnexpectedEOF},
		{"cut data", bytes.NewReader(good[:99]), "data", 40, io.ErrUnexpectedEOF},
		{"above snap length", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 59, 1).record(0, 0, 60, wireFrame(0, 60)).b), "record", 24, ErrPcapLength},
		{"above 256 KiB", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 1<<31, 1).words(0, 0, 256<<10+1, 0).b), "record", 24, ErrPcapLength},
		{"above 256 KiB, snap length 0", bytes.NewReader(newPcapFile(le, 0xa1b2c3d4, 2, 4, 0, 1).words(0, 0, 1<<32-1, 0).b), "record", 24, ErrPcapLength},
		{"second record", bytes.NewReader(append(bytes.Clone(good), 1, 2)), "record", 100, io.ErrUnexpectedEOF},
		{"read error in header", iotest.ErrReader(errDisk), "header", 0, errDisk},
		{"read error in record", io.MultiReader(bytes.NewReader(good[:30]), iotest.ErrReader(errDisk)), "record", 24, errDisk},
		{"read error in data", io.MultiReader(bytes.NewReader(good[:50]), iotest.ErrReader(errDisk)), "data", 40, errDisk},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := NewPcapReader(tc.in)
			for err == nil {
				_, err = r.Next()
			}
			var pe *PcapError
			if !errors.As(err, &pe) || pe.Op != tc.op || pe.Offset != tc.off || !errors.Is(err, tc.err) {
				t.Fatalf("%v; want %s at %d: %v", err, tc.op, tc.off, tc.err)
			}
			if r != nil {
				if _, again := r.Next(); again != err {
					t.Fatalf("then %v, want the same error", again)
				}
			}
		})
	}
}

// A length alone takes no memory: 256 KiB are promised and one byte comes.
func TestPcapHostileLengthAllocs(t *testing.T) {
	r, err := NewPcapReader(bytes.NewReader(append(newPcapFile(binary.LittleEndian, 0xa1b2c3d4, 2, 4, 0, 1).words(0, 0, 256<<10, 0).b, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if len(r.buf) > pcapChunk {
		t.Fatalf("took %d bytes for a record of which there is 1", len(r.buf))
	}
}

type failingWriter struct {
	room int
	err  error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if len(b) > w.room {
		n := w.room
		w.room = 0
		return n, w.err
	}
	w.room -= len(b)
	return len(b), nil
}

func TestPcapWriteError(t *testing.T) {
	full := errors.New("full")
	w := NewPcapWriter(&failingWriter{room: 50, err: full}, PcapFormat{})
	if err := w.WriteFrame(0, wireFrame(0, 60)); err != nil {
		t.Fatalf("buffered: %v", err)
	}
	first := w.Flush()
	var pe *PcapError
	if !errors.As(first, &pe) || pe.Op != "write" || !errors.Is(first, full) {
		t.Fatal(first)
	}
	if err := w.WriteFrame(0, nil); err != first {
		t.Fatalf("then %v, want the same error", err)
	}
	if err := w.Flush(); err != first {
		t.Fatalf("then %v, want the same error", err)
	}
}

func TestPcapRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := PcapFormat{BigEndian: rapid.Bool().Draw(t, "big"), Nanoseconds: rapid.Bool().Draw(t, "nano"),
			SnapLen: rapid.SampledFrom([]uint32{0, 1, 64, 1000, 1 << 20}).Draw(t, "snap")}
		unit := time.Microsecond
		if f.Nanoseconds {
			unit = 1
		}
		type sent struct {
			t    time.Duration
			data []byte
		}
		frames := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sent {
			n := rapid.IntRange(0, 10000).Draw(t, "len")
			return sent{time.Duration(rapid.Int64Range(0, 1<<32*int64(time.Second)-1).Draw(t, "time")), wireFrame(uint64(n), n)}
		}), 0, 8).Draw(t, "frames")
		var b bytes.Buffer
		w := NewPcapWriter(&b, f)
		for _, s := range frames {
			w.WriteFrame(s.t, s.data)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r, err := NewPcapReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range frames {
			rec, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			want := s.data[:min(len(s.data), r.SnapLen())]
			if rec.Time != s.t/unit*unit || int(rec.OrigLen) != len(s.data) || !bytes.Equal(rec.Data, want) {
				t.Fatalf("%v, %d of %d bytes came back as %v, %d of %d", s.t, len(want), len(s.data), rec.Time, len(rec.Data), rec.OrigLen)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
	})
}

func FuzzPcap(f *testing.F) {
	good := goodPcap().record(1, 2, 60, wireFrame(1, 60)).record(1, 3, 1514, wireFrame(2, 64)).b
	f.Add([]byte{})
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(newPcapFile(binary.BigEndian, 0xa1b23c4d, 2, 4, 0, 1|0x24000000).record(1, 2, 64, wireFrame(1, 64)).b)
	f.Add(newPcapFile(binary.LittleEndian, 0xa1b2c3d4, 2, 4, 0, 1).words(0, 0, 256<<10, 1).b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewPcapReader(bytes.NewReader(b))
		at := int64(pcapFileHeader)
		for err == nil {
			var rec PcapRecord
			if rec, err = r.Next(); err == nil {
				if !bytes.Equal(rec.Data, b[at+pcapRecHeader:][:len(rec.Data)]) {
					t.Fatalf("the record at %d has other data", at)
				}
				at += pcapRecHeader + int64(len(rec.Data))
			}
		}
		var pe *PcapError
		switch {
		case err == io.EOF:
			if at != int64(len(b)) {
				t.Fatalf("end at %d of %d", at, len(b))
			}
		case !errors.As(err, &pe) || pe.Offset < 0 || pe.Offset > int64(len(b)):
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if r != nil && len(r.buf) > max(2*len(b), pcapChunk) {
			t.Fatalf("took %d bytes for a file of %d", len(r.buf), len(b))
		}
		// The wire survives the same and ends.
		w, err := NewPcapWire(bytes.NewReader(b), nil, PcapOptions{Clock: new(wireClock)})
		if err != nil {
			return
		}
		for range len(b) {
			if _, ok := w.Receive(); !ok {
				break
			}
		}
		if !w.Drained() {
			t.Fatal("the wire did not end")
		}
	})
}
