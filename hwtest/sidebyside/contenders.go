package main

import (
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/sidebyside/fakemac"
	"github.com/gostmmac/gostmmac/hwtest/sidebyside/ixystyle"
)

// The set-up that every contender of the loop shares.
const (
	burst      = 256  // packets that the device completes at once: one round
	ringSize   = 512  // descriptors per ring
	poolSize   = 4096 // buffers
	bufferSize = 2048 // bytes
	frameSize  = 60   // bytes without FCS: the shortest Ethernet frame
)

// loop is an opened contender: a driver that forwards from its receive ring to its transmit ring, and the
// device under it. One round is Arrive, Forward, Depart, in this order and on one goroutine.
type loop interface {
	// Arrive lets the device complete burst received frames.
	Arrive() error
	// Forward moves burst packets in batches of batch and returns how many it sent. Only this is timed and counted.
	Forward(batch int) int
	// Depart lets the device send all that was handed to it and returns how many frames it was.
	Depart() (int, error)
	Close() error
}

// contender is one row of the comparison. The first row is the reference of the ratios.
type contender struct {
	name     string
	open     func() (loop, error)
	packages []string // import paths whose functions count: the driver, and the loop on it
	loop     string   // the import path among them that has the loop
	// most is how many instructions per packet the driver without the loop may take, by batch size, on amd64.
	most map[int]float64
}

func contenders() []contender {
	const module = "github.com/gostmmac/gostmmac/hwtest/sidebyside"
	return []contender{
		{name: "ixystyle", open: openIxystyle, packages: []string{module + "/ixystyle"}},
		{name: "ours", open: openOurs, packages: oursPackages, loop: oursPackages[0],
			most: map[int]float64{1: 400, 8: 190, 32: 170}},
	}
}

func find(table []contender, name string) (contender, error) {
	for _, c := range table {
		if c.name == name {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("no contender %q", name)
}

// ringSpace holds two rings of 16-byte descriptors, each aligned to a page.
const ringSpace = 2 * (ringSize*16 + 4096)

type ixystyleLoop struct {
	memory *ixystyle.Memory
	mac    *fakemac.Device
	driver *ixystyle.Device
	bufs   []*ixystyle.PktBuf
}

func openIxystyle() (loop, error) {
	memory, err := ixystyle.NewMemory(poolSize*bufferSize + ringSpace)
	if err != nil {
		return nil, err
	}
	l := &ixystyleLoop{memory: memory, bufs: make([]*ixystyle.PktBuf, burst)}
	l.mac = fakemac.New(memory.Bytes(), memory.Bus())
	pool, err := ixystyle.NewMempool(memory, poolSize, bufferSize)
	if err == nil {
		l.driver, err = ixystyle.Open(l.mac.BAR(), memory, pool, ixystyle.Config{RingSize: ringSize, BufferSize: bufferSize})
	}
	if err != nil {
		memory.Close()
		return nil, err
	}
	return l, nil
}

func (l *ixystyleLoop) Arrive() error {
	n, err := l.mac.Receive(burst, frameSize, nil)
	if err == nil && n != burst {
		err = fmt.Errorf("ixystyle: device took %d of %d frames", n, burst)
	}
	return err
}

func (l *ixystyleLoop) Forward(batch int) int {
	return ixystyle.Forward(l.driver, l.driver, l.bufs[:batch], burst)
}

func (l *ixystyleLoop) Depart() (int, error) { return l.mac.Transmit(nil) }

func (l *ixystyleLoop) Close() error { return l.memory.Close() }
