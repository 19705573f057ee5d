package fakemac

import (
	"bytes"
	"errors"
	"testing"
)

const (
	testBase = 0x2_0000_0000
	rxRing   = 0
	txRing   = 0x100
	buffers  = 0x1000
	rbsz     = 256
	length   = 4 // descriptors
)

// newDevice returns a running channel with both rings empty and both tails at the start.
func newDevice(t *testing.T) (*Device, []byte) {
	t.Helper()
	mem := make([]byte, 0x2000)
	d := New(mem, testBase)
	for offset, v := range map[int]uint32{
		dmaCh0TxListHigh: testBase >> 32, dmaCh0TxListLow: txRing, dmaCh0TxRingLength: length - 1, dmaCh0TxTail: txRing,
		dmaCh0RxListHigh: testBase >> 32, dmaCh0RxListLow: rxRing, dmaCh0RxRingLength: length - 1, dmaCh0RxTail: rxRing,
		dmaCh0TxControl: startBit, dmaCh0RxControl: startBit | rbsz<<rbszShift,
	} {
		setRegister(d, offset, v)
	}
	return d, mem
}

func setRegister(d *Device, offset int, v uint32) { setWord(d.BAR()[offset:], 0, v) }

func put(mem []byte, offset int, addr uint64, w2, w3 uint32) {
	setWord(mem[offset:], 0, uint32(addr))
	setWord(mem[offset:], 1, uint32(addr>>32))
	setWord(mem[offset:], 2, w2)
	setWord(mem[offset:], 3, w3)
}

func TestReceive(t *testing.T) {
	d, mem := newDevice(t)
	for i := range length {
		put(mem, rxRing+i*descriptorSize, testBase+buffers+uint64(i)*rbsz, 0, descOwn|rdes3Buffer1Valid)
	}
	fill := func(i int, frame []byte) {
		for k := range frame {
			frame[k] = byte(0x10 + i)
		}
	}
	if n, err := d.Receive(9, 60, fill); n != 0 || err != nil {
		t.Fatalf("with the tail at the start: %d, %v", n, err)
	}
	setRegister(d, dmaCh0RxTail, rxRing+3*descriptorSize)
	if n, err := d.Receive(9, 60, fill); n != 3 || err != nil {
		t.Fatalf("up to the tail: %d, %v", n, err)
	}
	for i := range 3 {
		desc := mem[rxRing+i*descriptorSize:]
		if got := word(desc, 3); got != descFirst|descLast|rdes3Status1Valid|64 {
			t.Errorf("descriptor %d: RDES3 %#x", i, got)
		}
		if word(desc, 0) != 0 || word(desc, 1) != rdes1GoodUDP {
			t.Errorf("descriptor %d has %#x, %#x in the place of its address", i, word(desc, 0), word(desc, 1))
		}
		frame := mem[buffers+i*rbsz:]
		if want := bytes.Repeat([]byte{byte(0x10 + i)}, 60); !bytes.Equal(frame[:60], want) || frame[60] != 0 {
			t.Errorf("frame %d: % x", i, frame[:61])
		}
	}
	// The tail moves around the ring, but the next descriptor after 3 is not owned.
	setRegister(d, dmaCh0RxTail, rxRing+2*descriptorSize)
	if n, err := d.Receive(9, 60, nil); n != 1 || err != nil {
		t.Errorf("up to a descriptor without OWN: %d, %v", n, err)
	}
}

func TestReceiveRejects(t *testing.T) {
	for name, spoil := range map[string]func(d *Device, mem []byte){
		"stopped":        func(d *Device, _ []byte) { setRegister(d, dmaCh0RxControl, rbsz<<rbszShift) },
		"ring outside":   func(d *Device, _ []byte) { setRegister(d, dmaCh0RxListHigh, 1) },
		"no BUF1V":       func(_ *Device, mem []byte) { put(mem, rxRing, testBase+buffers, 0, descOwn) },
		"buffer outside": func(_ *Device, mem []byte) { put(mem, rxRing, testBase-1, 0, descOwn|rdes3Buffer1Valid) },
		"buffer at the end": func(_ *Device, mem []byte) {
			put(mem, rxRing, testBase+0x2000-rbsz+1, 0, descOwn|rdes3Buffer1Valid)
		},
		"address wraps": func(_ *Device, mem []byte) { put(mem, rxRing, 1<<64-8, 0, descOwn|rdes3Buffer1Valid) },
	} {
		t.Run(name, func(t *testing.T) {
			d, mem := newDevice(t)
			put(mem, rxRing, testBase+buffers, 0, descOwn|rdes3Buffer1Valid)
			setRegister(d, dmaCh0RxTail, rxRing+descriptorSize)
			spoil(d, mem)
			if n, err := d.Receive(1, 60, nil); n != 0 || !errors.Is(err, ErrDriver) {
				t.Errorf("got %d, %v, want ErrDriver", n, err)
			}
		})
	}
	d, _ := newDevice(t)
	for _, size := range []int{-1, rbsz - frameCheckSequence + 1, maxFrameInDescriptor + 1} {
		if _, err := d.Receive(1, size, nil); err == nil {
			t.Errorf("a frame of %d bytes is accepted", size)
		}
	}
}

func TestTransmit(t *testing.T) {
	d, mem := newDevice(t)
	const control = descOwn | descFirst | descLast
	for i := range 3 {
		put(mem, txRing+i*descriptorSize, testBase+buffers+uint64(i)*rbsz, uint32(60+i), control|uint32(60+i))
		mem[buffers+i*rbsz] = byte(i + 1)
	}
	setRegister(d, dmaCh0TxTail, txRing+2*descriptorSize)
	var seen []int
	n, err := d.Transmit(func(frame []byte) { seen = append(seen, int(frame[0]), len(frame)) })
	if n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if len(seen) != 4 || seen[0] != 1 || seen[1] != 60 || seen[2] != 2 || seen[3] != 61 {
		t.Errorf("frames %v", seen)
	}
	for i, own := range []uint32{0, 0, descOwn} {
		if got := word(mem[txRing+i*descriptorSize:], 3) & descOwn; got != own {
			t.Errorf("descriptor %d: OWN %#x, want %#x", i, got, own)
		}
	}
}

func TestTransmitRejects(t *testing.T) {
	const control = descOwn | descFirst | descLast
	for name, spoil := range map[string]func(d *Device, mem []byte){
		"stopped":        func(d *Device, _ []byte) { setRegister(d, dmaCh0TxControl, 0) },
		"not first":      func(_ *Device, mem []byte) { put(mem, txRing, testBase, 60, descOwn|descLast|60) },
		"not last":       func(_ *Device, mem []byte) { put(mem, txRing, testBase, 60, descOwn|descFirst|60) },
		"context":        func(_ *Device, mem []byte) { put(mem, txRing, testBase, 60, control|tdes3Context|60) },
		"empty":          func(_ *Device, mem []byte) { put(mem, txRing, testBase, 0, control) },
		"two lengths":    func(_ *Device, mem []byte) { put(mem, txRing, testBase, 60, control|61) },
		"buffer outside": func(_ *Device, mem []byte) { put(mem, txRing, testBase+0x2000-59, 60, control|60) },
	} {
		t.Run(name, func(t *testing.T) {
			d, mem := newDevice(t)
			put(mem, txRing, testBase, 60, control|60)
			setRegister(d, dmaCh0TxTail, txRing+descriptorSize)
			spoil(d, mem)
			if n, err := d.Transmit(nil); n != 0 || !errors.Is(err, ErrDriver) {
				t.Errorf("got %d, %v, want ErrDriver", n, err)
			}
		})
	}
}
