package chips

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// Chip is a kind of chip.
type Chip struct {
	Name string // in commands: "yt6801"
	What string // in words

	pci vfiouser.Config
	sim sim.Config
	csr uint64 // where the registers of the MAC lie in BAR 0, bytes
	// vector is the interrupt vector of a line of the model; nil if there is one for all.
	vector func(l line) int
	block  func(*Card) block // what else is in BAR 0, or nil
}

// line is an interrupt line of a model.
type line struct {
	kind   lineKind
	ch     int // channel of rxLine and txLine
	queues int // that the model has each way
}

type lineKind int

const (
	commonLine lineKind = iota
	rxLine
	txLine
)

// block is registers of a chip's own in BAR 0, outside of those of the MAC. Its methods are
// called by one goroutine at a time, but for quiet.
type block interface {
	mmio.Region
	// reset puts it into the state after power-on.
	reset()
	// quiet says that it holds the interrupts of the MAC back.
	quiet() bool
}

// Chips returns all that there are.
func Chips() []Chip { return []Chip{yt6801(), ehl(), ehlPSE(), bareGMAC(), bareGMAC4()} }

// Find returns a chip by name; the error is os.ErrNotExist.
func Find(name string) (Chip, error) {
	names := ""
	for _, c := range Chips() {
		if c.Name == name {
			return c, nil
		}
		names += " " + c.Name
	}
	return Chip{}, fmt.Errorf("chip %q, of%s: %w", name, names, os.ErrNotExist)
}

// Options change a card.
type Options struct {
	// Addr is the address that the chip keeps for its MAC, where it keeps one.
	Addr [6]byte
	// Queues each way, and DMA channels, 1 to 8; 0 is what the chip has. A chip whose
	// vectors are numbered for fewer refuses more.
	Queues int
	// Single leaves the function one interrupt vector of each kind.
	Single bool
	// Only leaves the function one kind of interrupts. With fewer vectors of it than lines
	// of the MAC have numbers for, it has one vector for all.
	Only Interrupts
	// Strict makes the model receive as its rules say, and keep an eye on its driver
	// (sim.Strict). Linux's driver does not follow them: for it a card is not strict.
	Strict bool
	// Model changes the configuration of the model.
	Model func(*sim.Config)
	// Report is told of what clients did wrong; nil tells nobody.
	Report func(error)
}

// Interrupts are kinds of interrupts.
type Interrupts int

// Kinds of interrupts: all that a chip has, or one of them.
const (
	AllInterrupts Interrupts = iota
	INTx
	MSI
	MSIX
)

// String returns the name of the kind.
func (i Interrupts) String() string {
	switch i {
	case AllInterrupts:
		return "all"
	case INTx:
		return "INTx"
	case MSI:
		return "MSI"
	case MSIX:
		return "MSI-X"
	}
	return fmt.Sprintf("interrupts %d", int(i))
}

// leave takes the other kinds out of a function. One that does not have the kind is an
// error that is os.ErrInvalid.
func (i Interrupts) leave(c *vfiouser.Config) error {
	has := true
	switch i {
	case AllInterrupts:
		return nil
	case INTx:
		has = c.INTx
		c.MSI, c.MSIX = vfiouser.MSI{}, vfiouser.MSIX{}
	case MSI:
		has = c.MSI.Vectors > 0
		c.INTx, c.MSIX = false, vfiouser.MSIX{}
	case MSIX:
		has = c.MSIX.Vectors > 0
		c.INTx, c.MSI = false, vfiouser.MSI{}
	}
	if !has {
		return fmt.Errorf("it has no %v: %w", i, os.ErrInvalid)
	}
	return nil
}

// Card is a chip that is plugged into a wire. Its methods may be called by any number of
// goroutines.
type Card struct {
	chip     Chip
	function *vfiouser.Function
	clock    *clock
	out      signals // function
	model    *sim.Model
	block    block
	vectors  []int // by the vector of the model
	csr      mac
	opts     Options

	mu sync.Mutex // between the level of a line and what out is told of it
}

// signals are what a card tells its host of interrupts; see vfiouser.Function.
type signals interface {
	Signal(v int)
	Withdraw(v int)
	SetINTx(high bool)
}

// New makes a card whose MAC is plugged into w. It belongs to the caller, who closes it.
func (c Chip) New(w sim.Wire, o Options) (*Card, error) {
	cfg := c.sim
	cfg.Profile = sim.Linux
	if o.Strict {
		cfg.Profile = sim.Strict
	}
	if o.Queues != 0 {
		cfg.RxQueues, cfg.TxQueues = o.Queues, o.Queues
	}
	if cfg.Generation == sim.GMAC4 {
		cfg.EnableAll() // the stock driver uses of it what it has
	}
	if o.Model != nil {
		o.Model(&cfg)
	}
	pci := c.pci
	pci.Report = o.Report
	if err := o.Only.leave(&pci); err != nil {
		return nil, fmt.Errorf("chip %s: %w", c.Name, err)
	}
	rx, tx := max(cfg.RxQueues, 1), max(cfg.TxQueues, 1)
	k := &Card{chip: c, opts: o, clock: newClock()}
	cfg.Clock = k.clock
	few := o.Only != AllInterrupts && max(pci.MSI.Vectors, pci.MSIX.Vectors) <= 1
	if o.Single || few || c.vector == nil {
		pci.MSI.Vectors, pci.MSIX.Vectors = min(pci.MSI.Vectors, 1), min(pci.MSIX.Vectors, 1)
		k.vectors = []int{0}
	} else {
		cfg.NumInterrupts = 1 + rx + tx
		k.vectors = append(k.vectors, c.vector(line{commonLine, 0, rx}))
		for q := range rx {
			k.vectors = append(k.vectors, c.vector(line{rxLine, q, rx}))
		}
		for q := range tx {
			k.vectors = append(k.vectors, c.vector(line{txLine, q, tx}))
		}
	}
	for line, v := range k.vectors {
		// Without messages all lines are the pin.
		if most := max(pci.MSI.Vectors, pci.MSIX.Vectors, 1); v < 0 || v >= most {
			return nil, fmt.Errorf("chip %s with %d and %d queues: line %d has no vector among %d: %w", c.Name, rx, tx, line, most, os.ErrInvalid)
		}
	}
	var err error
	if k.function, err = vfiouser.New(pci); err != nil {
		return nil, fmt.Errorf("chip %s: %w", c.Name, err)
	}
	k.out = k.function
	if k.model, err = sim.NewModel(cfg, k.function, k.interrupt, w); err != nil {
		return nil, fmt.Errorf("chip %s: %w", c.Name, err)
	}
	k.csr = mac{k.model}
	if c.block != nil {
		k.block = c.block(k)
		k.block.reset()
	}
	return k, nil
}

// Serve shows the card to the clients that connect to l, one after the other, until ctx
// ends.
func (k *Card) Serve(ctx context.Context, l net.Listener) error { return k.function.Serve(ctx, l, k) }

// Model is the MAC.
func (k *Card) Model() *sim.Model { return k.model }

// Function is the PCI function: what the MAC reaches memory with.
func (k *Card) Function() *vfiouser.Function { return k.function }

// Skip lets the time of the MAC jump ahead by d, as if the machine had waited.
func (k *Card) Skip(d time.Duration) { k.clock.skip(d) }

// Close stops the MAC. Serve must have ended.
func (k *Card) Close() { k.model.Close() }

// interrupt is a line of the model that fires.
func (k *Card) interrupt(v int) {
	if k.block != nil && k.block.quiet() {
		return
	}
	k.mu.Lock()
	k.out.Signal(k.vectors[v])
	k.mu.Unlock()
	k.follow()
}

// follow makes the pin follow the lines of the model, and takes back what fired of those that
// are low: a driver that resets the MAC before it unmasks a vector does not see it.
func (k *Card) follow() {
	k.mu.Lock()
	defer k.mu.Unlock()
	any := false
	for line, v := range k.vectors {
		high := k.model.Line(line)
		if any = any || high; !high {
			k.out.Withdraw(v)
		}
	}
	k.out.SetINTx(any && (k.block == nil || !k.block.quiet()))
}

// ReadBAR implements vfiouser.Device.
func (k *Card) ReadBAR(bar int, off uint64, p []byte) {
	if r, off := k.at(bar, off); r != nil {
		vfiouser.ReadRegion(r, off, p)
		k.follow() // some status bits are cleared by reading them
	}
}

// WriteBAR implements vfiouser.Device.
func (k *Card) WriteBAR(bar int, off uint64, p []byte) {
	if r, off := k.at(bar, off); r != nil {
		vfiouser.WriteRegion(r, off, p)
		k.follow()
	}
}

// at is what answers at an offset of a BAR, or nil.
func (k *Card) at(bar int, off uint64) (mmio.Region, uint64) {
	switch {
	case bar != 0:
	case off >= k.chip.csr && off-k.chip.csr < uint64(k.csr.Len()):
		return k.csr, off - k.chip.csr
	case k.block != nil && off < uint64(k.block.Len()):
		return k.block, off
	}
	return nil, 0
}

// Reset implements vfiouser.Device.
func (k *Card) Reset() {
	k.model.Reset()
	if k.block != nil {
		k.block.reset()
	}
	k.follow()
}

// DropWindows implements vfiouser.Device.
func (k *Card) DropWindows() { k.model.DropWindows() }

// mac is the registers of a model.
type mac struct{ m *sim.Model }

func (m mac) Len() uint32                  { return m.m.Len() }
func (m mac) Load32(off uint32) uint32     { return m.m.Load(off) }
func (m mac) Store32(off uint32, v uint32) { m.m.Store(off, v) }

// memory is 32-bit registers that keep what is written.
type memory []byte

func newMemory(n int) memory { return make(memory, n) }

func (m memory) get(off uint32) uint32    { return binary.LittleEndian.Uint32(m[off:]) }
func (m memory) set(off uint32, v uint32) { binary.LittleEndian.PutUint32(m[off:], v) }
