package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"time"
)

func TestPcapWirePlays(t *testing.T) {
	file := goodPcap()
	sizes := []int{60, 14, 0, 1514, 9018}
	for i, n := range sizes {
		file.record(uint32(i), 0, uint32(n), wireFrame(uint64(i), n))
	}
	for _, tc := range []struct {
		name   string
		b      []byte
		frames int
		err    error
	}{
		{"whole", file.b, 5, nil},
		{"cut", file.b[:len(file.b)-1], 4, io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := NewPcapWire(bytes.NewReader(tc.b), nil, PcapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !w.Elastic() {
				t.Fatal("a capture must be elastic")
			}
			w.Notify(func() { t.Error("notified") })
			for i := range tc.frames {
				if w.Drained() {
					t.Fatalf("drained before frame %d", i)
				}
				mustReceive(t, w, wireFrame(uint64(i), sizes[i]), false)
			}
			for range 2 {
				mustNotReceive(t, w)
			}
			<-w.Done()
			if !w.Drained() || !errors.Is(w.Err(), tc.err) {
				t.Fatalf("drained %v, error %v, want %v", w.Drained(), w.Err(), tc.err)
			}
			if !w.Transmit(Frame{Data: wireFrame(0, 60)}) {
				t.Fatal("without a file to write frames must be dropped")
			}
			for range 2 {
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPcapWireHeaderError(t *testing.T) {
	var pe *PcapError
	if w, err := NewPcapWire(bytes.NewReader([]byte("#!/bin/sh")), nil, PcapOptions{}); w != nil || !errors.As(err, &pe) {
		t.Fatalf("%v, %v", w, err)
	}
}

func TestPcapWireFCS(t *testing.T) {
	frame := wireFrame(5, 60)
	fcs := func(x uint32) []byte {
		return binary.LittleEndian.AppendUint32(bytes.Clone(frame), crc32.ChecksumIEEE(frame)^x)
	}
	file := newPcapFile(binary.BigEndian, 0xa1b2c3d4, 2, 4, 0, 1|0x24000000).
		record(0, 0, 64, fcs(0)).
		record(0, 0, 64, fcs(1<<31)).
		record(0, 0, 64, fcs(1)[:62]). // cut in the FCS
		record(0, 0, 64, fcs(0)[:30]). // cut before it
		record(0, 0, 0, fcs(0)).       // no original length
		record(0, 0, 3, frame[:3]).
		record(0, 0, 0, nil)
	w, err := NewPcapWire(bytes.NewReader(file.b), nil, PcapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustReceive(t, w, frame, false)
	mustReceive(t, w, frame, true)
	mustReceive(t, w, frame, false)
	mustReceive(t, w, frame[:30], false)
	mustReceive(t, w, frame, false)
	mustReceive(t, w, nil, false)
	mustReceive(t, w, nil, false)
	mustNotReceive(t, w)
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
}

func TestPcapWireRecords(t *testing.T) {
	clock := new(wireClock)
	var out bytes.Buffer
	w, err := NewPcapWire(nil, &out, PcapOptions{Clock: clock, Format: PcapFormat{Nanoseconds: true, SnapLen: 100}})
	if err != nil {
		t.Fatal(err)
	}
	if !w.Drained() {
		t.Fatal("nothing to play must be drained")
	}
	mustNotReceive(t, w)
	clock.advance(3*time.Second + 7)
	w.Transmit(Frame{Data: wireFrame(1, 60)})
	clock.advance(time.Second)
	w.Transmit(Frame{Data: wireFrame(2, 101), BadFCS: true})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := newPcapFile(binary.LittleEndian, 0xa1b23c4d, 2, 4, 100, 1).
		record(3, 7, 60, wireFrame(1, 60)).record(4, 7, 101, wireFrame(2, 101)[:100]).b
	if !w.Transmit(Frame{Data: wireFrame(3, 60)}) || w.Close() != nil || !bytes.Equal(out.Bytes(), want) {
		t.Fatalf("written\n%x\nwant\n%x", out.Bytes(), want)
	}
}

func TestPcapWireWriteError(t *testing.T) {
	full := errors.New("full")
	cut := goodPcap().words(1, 2, 3).b
	w, err := NewPcapWire(bytes.NewReader(cut), &failingWriter{room: 5000, err: full}, PcapOptions{Clock: new(wireClock)})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if !w.Transmit(Frame{Data: wireFrame(0, 1514)}) {
			t.Fatal("a frame that cannot be written must be dropped")
		}
	}
	mustNotReceive(t, w)
	if err := w.Err(); !errors.Is(err, full) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%v; want both errors", err)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, full) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("close: %v, want the write error", err)
		}
	}
}

func TestPcapWireCloseEndsPlaying(t *testing.T) {
	w, err := NewPcapWire(bytes.NewReader(goodPcap().record(0, 0, 60, wireFrame(0, 60)).b), nil, PcapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-w.Done()
	mustNotReceive(t, w)
}
