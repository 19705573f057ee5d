package stmmac_test

import (
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// direction is one of the two descriptor lists of a channel.
type direction bool

const (
	receiving direction = false
	sending   direction = true
)

// limits are what a generation has, and how much of it.
type limits struct {
	queues   int  // each way
	rxBuf    int  // bytes of a receive buffer
	txBuf    int  // bytes of a transmit buffer
	rxLen    int  // largest length that a receive descriptor can tell
	second   bool // a descriptor has a second buffer, which is empty
	tails    bool // a register says where the list ends, and not OWN alone
	total    bool // the first transmit descriptor tells the length of its frame
	vectors  bool // queues can have vectors of their own
	tags     bool // the device takes VLAN tags off
	clause45 bool
	mdio     string // the register of MDIO that errors name
}

// engine is one of the two that check and insert checksums.
type engine int

const (
	rxEngine engine = iota
	txEngine
)

// macLink is what the registers of a MAC say of its link.
type macLink struct {
	rx, tx           bool // enabled
	speed            int  // Mbit/s
	full             bool
	rxPause, txPause bool
}

// txDesc is a transmit descriptor that the driver wrote.
type txDesc struct {
	owned, first, last, irq bool
	n                       int    // bytes of its buffer
	total                   int    // of the frame, where the generation tells it
	other                   uint32 // bits that are none of these, but for the place in the list
}

// generation is what a case has to know of a generation of the MAC to see one from
// outside of the driver. csr is its register space, ch a DMA channel; descriptors are
// four words in the byte order of the machine.
type generation interface {
	limits() limits
	// model is the generation of a model, options is what Open has to be told of it.
	model() sim.Generation
	options(sim.Config) stmmac.Option
	hardware(*core.Config, mmio.Region) core.Hardware
	// fake is scripted registers of a MAC, unsized are those of MACs that do not tell
	// the size of a FIFO, and fifo how much of both the registers give a queue, bytes,
	// if they divide a FIFO at all.
	fake() *mmio.Fake
	unsized() []unsizedFIFO
	fifo(csr mmio.Region, q int) (rx, tx int, divided bool)

	// list is where a list begins, current is the descriptor that its engine is at.
	list(csr mmio.Region, ch int, d direction) uint64
	current(csr mmio.Region, ch int, d direction) uint64
	// given is how many of n receive descriptors the engine may use.
	given(r *rig, ch, n int) int
	// dry says that the engine had no receive descriptor.
	dry(csr mmio.Region, ch int) bool
	storesForward(csr mmio.Region, ch int, d direction) bool
	// threshold makes the transmitter send frames before it has all of them.
	threshold(csr mmio.Region)
	// rxSize is the size of buffers that the device was told, bytes.
	rxSize(csr mmio.Region, s *spy) int
	// skip is how many bus words lie between two descriptors.
	skip(csr mmio.Region) uint32
	feature(engine) (off, bit uint32)
	link(conf uint32, csr mmio.Region) macLink

	owned(d *[4]uint32) bool
	received(d *[4]uint32) (n int, last bool)
	queued(d *[4]uint32) txDesc

	bareDriver
}

// bareDriver is how a driver at the level of registers does its work.
type bareDriver interface {
	// reset begins a software reset, and resetting says that it goes on.
	reset(csr mmio.Region)
	resetting(csr mmio.Region) bool
	// skips is the skip length for descriptors that many bytes apart, if there is one.
	skips(stride, bus int) (dsl int, ok bool)
	setup(b *bare, dsl int)
	lists(b *bare, rx, tx uint64)
	run(b *bare, on bool)
	// rxWords and txWords are descriptor i with a buffer and OWN, which is in word own.
	rxWords(b *bare, i int, addr uint64) [4]uint32
	txWords(b *bare, i int, addr uint64, n int) [4]uint32
	own() int
	// ring tells the device of descriptors before tail.
	ring(b *bare, d direction, tail uint64)
}

// unsizedFIFO is a MAC that does not tell the size of its FIFOs.
type unsizedFIFO struct {
	name string
	fake func() *mmio.Fake
	each func(queues int) int // bytes that a queue is taken to have
}

// generations are those that cases run on: the list of a GMAC 3.x may be a ring or a
// chain.
var generations = []struct {
	name string
	generation
}{
	{"gmac4", gmac4Side{}}, {"gmac/ring", gmacSide{}}, {"gmac/chain", gmacSide{chain: true}},
}

// onEach runs a case on each generation. What it is run on stands in the name of the
// test, so that no part of it can take another by mistake: see on.
func onEach(t *testing.T, test func(*testing.T)) {
	for _, g := range generations {
		t.Run(g.name, test)
	}
}

// on is the generation that a test runs on, by its name; the default is GMAC4.
func on(t *testing.T) generation {
	for _, g := range generations {
		if strings.Contains(t.Name()+"/", "/"+g.name+"/") {
			return g.generation
		}
	}
	return gmac4Side{}
}

// queueCounts are those of the counts that the generation of a test has queues for.
func queueCounts(t *testing.T, counts ...int) (fit []int) {
	for _, n := range counts {
		if n <= on(t).limits().queues {
			fit = append(fit, n)
		}
	}
	return fit
}
