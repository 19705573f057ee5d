package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
)

// Device is a model in the process of its driver: its registers are region 0, its
// bus master reaches the memory that the driver maps, and its interrupts wake
// the driver's goroutines. It satisfies the Device interface of package stmmac. All
// methods may be called by several goroutines.
type Device struct {
	*Model
	space  space
	own    bool
	closed atomic.Bool
	mu     sync.Mutex // closing and the vectors
	irqs   []*vector
}

// New returns a device whose MAC is plugged into w; closing the device closes w.
func New(cfg Config, w Wire) (*Device, error) {
	d := &Device{own: cfg.OwnMemory}
	c := cfg
	if err := c.complete(); err != nil {
		return nil, err
	}
	d.space.init(&c)
	d.irqs = make([]*vector, c.NumInterrupts)
	for i := range d.irqs {
		d.irqs[i] = newVector()
	}
	m, err := NewModel(cfg, &d.space, d.interrupt, w)
	if err != nil {
		return nil, err
	}
	d.Model = m
	return d, nil
}

// region is the register space as a driver sees it.
type region struct{ d *Device }

func (r region) Load32(off uint32) uint32 {
	if r.d.closed.Load() {
		return mmio.AllOnes
	}
	return r.d.Model.Load(off)
}

func (r region) Store32(off, v uint32) {
	if !r.d.closed.Load() {
		r.d.Model.Store(off, v)
	}
}

func (r region) Len() uint32 { return r.d.Model.Len() }

// Region returns the registers; the only region is number 0.
func (d *Device) Region(i int) (mmio.Region, error) {
	if i != 0 {
		return nil, fmt.Errorf("sim: region %d: %w", i, errors.ErrUnsupported)
	}
	return region{d}, nil
}

// NumInterrupts is the number of interrupt vectors.
func (d *Device) NumInterrupts() int { return len(d.irqs) }

// Vectors says which vectors the receive and transmit channels have on a device
// with one for each: vector 0 is the common one.
func Vectors(rxQueues, txQueues int) (rx, tx []int) {
	for i := range rxQueues {
		rx = append(rx, 1+i)
	}
	for i := range txQueues {
		tx = append(tx, 1+rxQueues+i)
	}
	return rx, tx
}

// Interrupt returns a vector. It can be had again after it was closed; what fired
// in between counts.
func (d *Device) Interrupt(i int) (mmio.Interrupt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed.Load():
		return nil, fmt.Errorf("sim: interrupt %d: %w", i, net.ErrClosed)
	case i < 0 || i >= len(d.irqs):
		return nil, fmt.Errorf("sim: interrupt %d: %w", i, errors.ErrUnsupported)
	}
	if d.irqs[i].isClosed() {
		d.irqs[i] = d.irqs[i].reopen()
	}
	return d.irqs[i], nil
}

func (d *Device) interrupt(i int) {
	d.mu.Lock()
	v := d.irqs[i]
	d.mu.Unlock()
	v.fire()
}

// MapDMA makes mem reachable for the device. The mapping starts at the same offset
// in a page as mem does, never at 0, and unmapped addresses lie on either side.
func (d *Device) MapDMA(mem []byte) (iova uint64, err error) {
	if err := d.mayMap("MapDMA", len(mem)); err != nil {
		return 0, err
	}
	page := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) & (iovaPage - 1)
	return d.space.add("MapDMA", mem, page, iovaPage, nil)
}

// UnmapDMA undoes MapDMA or AllocDMA for exactly the range that these gave. The
// device does not access the memory any more when it returns.
func (d *Device) UnmapDMA(iova uint64, n int) error {
	m, err := d.space.remove(iova, n)
	if err != nil {
		return err
	}
	d.DropWindows()
	if m.free != nil {
		if err := m.free(); err != nil {
			return &MapError{"UnmapDMA", iova, n, err}
		}
	}
	return nil
}

// Coherent reports true: the device is the same process.
func (d *Device) Coherent() bool { return true }

// AllocDMA returns memory of the device's own, which OwnMemory gives it, mapped and
// zeroed. align is a power of two up to 1 MiB, 0 is a page.
func (d *Device) AllocDMA(n, align int) ([]byte, uint64, error) {
	if !d.own {
		return nil, 0, &MapError{"AllocDMA", 0, n, errors.ErrUnsupported}
	}
	if err := d.mayMap("AllocDMA", n); err != nil {
		return nil, 0, err
	}
	const maxAlign = 1 << 20
	if align < 0 || align > maxAlign || align&(align-1) != 0 {
		return nil, 0, &MapError{"AllocDMA", 0, n, fmt.Errorf("alignment %d: %w", align, errors.ErrUnsupported)}
	}
	mem, free, err := allocMemory(n, max(align, iovaPage))
	if err != nil {
		return nil, 0, &MapError{"AllocDMA", 0, n, err}
	}
	iova, err := d.space.add("AllocDMA", mem, 0, uint64(max(align, iovaPage)), free)
	if err != nil {
		return nil, 0, errors.Join(err, free())
	}
	return mem, iova, nil
}

func (d *Device) mayMap(op string, n int) error {
	if d.closed.Load() {
		return &MapError{op, 0, n, net.ErrClosed}
	}
	if n <= 0 {
		return &MapError{op, 0, n, ErrEmpty}
	}
	d.Model.mu.Lock()
	f := d.Model.faults.FailMap
	d.Model.mu.Unlock()
	if f != nil {
		if err := f(n); err != nil {
			return &MapError{op, 0, n, err}
		}
	}
	return nil
}

// Reset resets the device from outside, as a PCI function-level reset does.
func (d *Device) Reset(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.closed.Load() {
		return fmt.Errorf("sim: reset: %w", net.ErrClosed)
	}
	d.Model.Reset()
	return nil
}

// Close unplugs the device: registers read all ones, interrupts end, and the engines
// and the wire stop. Mappings stay until they are unmapped. It is safe to call twice.
func (d *Device) Close() error {
	d.mu.Lock()
	first := !d.closed.Swap(true)
	irqs := d.irqs
	d.mu.Unlock()
	if !first {
		return nil
	}
	d.Model.Close()
	for _, v := range irqs {
		v.Close()
	}
	return d.Model.wire.Close()
}

// vector is an interrupt vector that counts its edges.
type vector struct {
	n      *atomic.Uint64
	ready  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newVector() *vector {
	return &vector{n: new(atomic.Uint64), ready: make(chan struct{}, 1), closed: make(chan struct{})}
}

func (v *vector) reopen() *vector {
	w := &vector{n: v.n, ready: v.ready, closed: make(chan struct{})}
	return w
}

func (v *vector) isClosed() bool {
	select {
	case <-v.closed:
		return true
	default:
		return false
	}
}

func (v *vector) fire() {
	v.n.Add(1)
	select {
	case v.ready <- struct{}{}:
	default:
	}
}

// Wait implements mmio.Interrupt.
func (v *vector) Wait(ctx context.Context) (uint64, error) {
	for {
		if v.isClosed() {
			return 0, net.ErrClosed
		}
		if n := v.n.Swap(0); n != 0 {
			return n, nil
		}
		select {
		case <-v.ready:
		case <-v.closed:
			return 0, net.ErrClosed
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Unmask does nothing: the vectors are edges.
func (v *vector) Unmask() error { return nil }

// Close unblocks Wait.
func (v *vector) Close() error {
	v.once.Do(func() { close(v.closed) })
	return nil
}
