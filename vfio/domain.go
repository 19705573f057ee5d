package vfio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// Domain is one space of bus addresses and the devices in it: memory that is
// mapped for one of them has the same address for all. The zero value is not
// usable; [NewDomain] makes one. Its methods may be called by several goroutines.
type Domain struct {
	k   Kernel
	opt options

	mu       sync.Mutex
	space    space // nil while there is no device
	backend  Backend
	reason   string
	iovas    iovas
	left     int // mappings that can be made; negative: no limit
	mappings []*mapping
	devices  []*Device
	slabs    []*slab
	closed   bool
}

// NewDomain returns a domain without devices. Nothing is opened before the first
// device is.
func NewDomain(opts ...Option) (*Domain, error) {
	o := options{kernel: System()}
	for _, f := range opts {
		f(&o)
	}
	if o.kernel == nil || o.backend > IOMMUFD {
		return nil, &Error{Op: "new domain", Err: fmt.Errorf("no kernel, or %v: %w", o.backend, os.ErrInvalid)}
	}
	return &Domain{k: o.kernel, opt: o}, nil
}

// Open opens the device that addr names, see [Lookup], in a domain of its own,
// which is closed with the device.
func Open(ctx context.Context, addr string, opts ...Option) (*Device, error) {
	dom, err := NewDomain(opts...)
	if err != nil {
		return nil, err
	}
	d, err := dom.Open(ctx, addr)
	if err != nil {
		return nil, errors.Join(err, dom.Close())
	}
	d.ownDomain = true
	return d, nil
}

// Open opens the device that addr names, see [Lookup], in the domain. The device is
// at rest then: a PCI function is reset where it can be, its bus mastering is off
// and its memory space on. An error says what to do where that is known; that of a
// device whose nodes are not there says what [Explain] finds.
func (m *Domain) Open(ctx context.Context, addr string, opts ...DeviceOption) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap("open", addr, err)
	}
	i, err := Lookup(m.k, addr)
	if err != nil {
		return nil, err
	}
	d, err := m.open(ctx, &i, nil, opts)
	if err != nil {
		return nil, m.explained(&i, err)
	}
	return d, nil
}

// explained is the error of opening a device, with what is missing if something is.
func (m *Domain) explained(i *Info, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return wrap("open", i.Name, err)
	}
	e := &Error{Op: "open", Dev: i.Name, Err: err}
	r, _ := Explain(m.k, i.Name) // without it the error says less
	failures := slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Severity != Failure })
	switch len(failures) {
	case 0:
	case 1:
		e.Remedy = failures[0].Text + ": " + strings.ReplaceAll(failures[0].Remedy, "\n", ", ")
	default:
		var texts []string
		for _, f := range failures {
			texts = append(texts, f.Text)
		}
		e.Remedy = strings.Join(texts, "; ") + ": `stmmacctl doctor " + i.address() + "` says what to do about each"
	}
	return e
}

// open opens a device: from descriptors of a parent if there are some.
func (m *Domain) open(ctx context.Context, i *Info, fds *FDs, opts []DeviceOption) (*Device, error) {
	o := deviceOptions{addrWidth: 64}
	for _, f := range slices.Concat(m.opt.device, opts) {
		f(&o)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	first := m.space == nil
	fd, err := m.enter(i, fds, &o)
	if err != nil {
		return nil, errors.Join(err, m.leave(first))
	}
	d := newDevice(m, i, fd, o)
	if err := m.settle(ctx, d); err != nil {
		return nil, errors.Join(err, d.release(), m.space.detach(i, fd), m.leave(first))
	}
	m.devices = append(m.devices, d)
	log := m.opt.log.Info()
	if m.space.physical() {
		log = m.opt.log.Warn().Str("danger", "no IOMMU: the device reaches all memory of the machine")
	}
	log.Str("dev", i.Name).Stringer("backend", m.backend).Str("because", m.reason).Bool("reset", d.wasReset).Msg("open")
	return d, nil
}

// settle brings a device that was opened to rest and learns what the space can map
// with it.
func (m *Domain) settle(ctx context.Context, d *Device) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	return m.learn()
}

// learn reads what can be mapped: each device may narrow it.
func (m *Domain) learn() error {
	l, err := m.space.limits()
	if err != nil {
		return err
	}
	m.left = l.left
	if m.space.physical() && l.ranges == nil {
		return nil
	}
	return m.iovas.setRanges(l.ranges, l.page)
}

// leave gives the space up when no device is in it; fresh says that it was made for
// a device that could not be opened.
func (m *Domain) leave(fresh bool) error {
	if m.space == nil || len(m.devices) > 0 || !fresh {
		return nil
	}
	err := m.space.end()
	m.space, m.iovas = nil, iovas{}
	return err
}

// enter chooses how to reach the device, unless the domain has chosen, and puts it
// into the space.
func (m *Domain) enter(i *Info, fds *FDs, o *deviceOptions) (int, error) {
	if i.NoIOMMU() && !m.opt.noiommu {
		return -1, &Error{Err: fmt.Errorf("no IOMMU stands before the device: %w", fs.ErrPermission),
			Remedy: "turn the IOMMU on (stmmacctl doctor says how), or accept that the device reaches all memory of the machine: WithNoIOMMU, iommu=noiommu in an address"}
	}
	if fds != nil {
		return m.adopt(i, fds, o)
	}
	if m.space != nil {
		if m.space.physical() != i.NoIOMMU() {
			return -1, fmt.Errorf("devices with and without an IOMMU do not share a domain: %w", os.ErrInvalid)
		}
		return m.space.attach(i, o.token)
	}
	var errs []error
	for _, c := range m.candidates(i) {
		fd, err := m.try(c.backend, i, o)
		if err == nil {
			m.backend, m.reason = c.backend, c.reason
			return fd, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return -1, errors.Join(errs...)
}

// try opens the device by one backend in a new space.
func (m *Domain) try(b Backend, i *Info, o *deviceOptions) (int, error) {
	s, err := openSpace(m.k, b, i.NoIOMMU(), &FDs{Container: -1, IOMMUFD: -1})
	if err != nil {
		return -1, err
	}
	fd, err := s.attach(i, o.token)
	if err != nil {
		return -1, errors.Join(err, s.end())
	}
	m.space = s
	return fd, nil
}

// openSpace opens a space, from descriptors of a parent where there are some.
func openSpace(k Kernel, b Backend, noiommu bool, fds *FDs) (space, error) {
	if b == IOMMUFD {
		s, err := openIOAS(k, fds.IOMMUFD, fds.IOAS)
		if err != nil {
			return nil, err
		}
		if noiommu {
			return noIOAS{s}, nil
		}
		return s, nil
	}
	c, err := openContainer(k, fds.Container)
	if err != nil {
		return nil, err
	}
	if noiommu {
		return noContainer{c}, nil
	}
	return c, nil
}

// candidate is a backend and why it.
type candidate struct {
	backend Backend
	reason  string
}

// candidates are the backends to try, in this order.
func (m *Domain) candidates(i *Info) []candidate {
	if b := m.opt.backend; b != Auto {
		return []candidate{{b, "it was asked for"}}
	}
	_, err := fs.Stat(m.k.FS(), iommuNode)
	switch {
	case err != nil:
		return []candidate{{Group, "there is no /dev/iommu"}}
	case i.Cdev == "":
		return []candidate{{Group, "the device has no node in /dev/vfio/devices"}}
	}
	all := []candidate{{IOMMUFD, "the device has the node /" + i.cdevNode() + ", and /dev/iommu is there"}}
	if _, err := fs.Stat(m.k.FS(), i.groupNode()); err == nil && i.Group >= 0 {
		all = append(all, candidate{Group, "/dev/iommu or /" + i.cdevNode() + " cannot be opened"})
	}
	return all
}

// Backend is how the devices of the domain are reached, and why so; Auto while there
// is none.
func (m *Domain) Backend() (b Backend, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.space == nil {
		return Auto, "no device is open"
	}
	return m.backend, m.reason
}

// remove takes a device, which is at rest, out of the domain.
func (m *Domain) remove(d *Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.space.detach(&d.info, d.fd)
	m.devices = slices.DeleteFunc(m.devices, func(o *Device) bool { return o == d })
	if len(m.devices) == 0 {
		// The kernel forgets what is mapped with the last device.
		err = errors.Join(err, m.leave(true))
		m.mappings = nil
	}
	return err
}

// Close closes all devices of the domain. It is safe to call twice.
func (m *Domain) Close() error {
	m.mu.Lock()
	m.closed = true
	devices := slices.Clone(m.devices)
	m.mu.Unlock()
	var errs []error
	for _, d := range devices {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
