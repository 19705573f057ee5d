package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/glue"
	"github.com/gostmmac/gostmmac/vfio"
)

var _ stmmac.Device = (*vfio.Device)(nil)

// vfioSpec is what an address of the schemes pci and platform says beside the
// device. What is nil or zero is left to glue.
type vfioSpec struct {
	iommu        string
	generation   stmmac.Generation
	region       *int
	offset       *uint32
	csrClock     uint64
	addrWidth    int
	hardwareAddr net.HardwareAddr
	bind         bool
}

// vfioKey is a key of the schemes pci and platform.
type vfioKey struct {
	name string
	set  func(*vfioSpec, string) error
}

// vfioKeys returns the keys, in the order in which errors list them.
func vfioKeys() []vfioKey {
	return []vfioKey{
		{"generation", (*vfioSpec).setGeneration},
		{"region", func(s *vfioSpec, v string) error {
			const most = 255
			n, err := strconv.ParseUint(v, 10, 8)
			if err != nil {
				return invalid("not a number of a region, 0 to %d", most)
			}
			i := int(n)
			s.region = &i
			return nil
		}},
		{"offset", func(s *vfioSpec, v string) error {
			n, err := strconv.ParseUint(v, 0, 32)
			if err != nil || n%4 != 0 {
				return invalid("not an offset in bytes that is a multiple of 4, as in 0x2000")
			}
			off := uint32(n)
			s.offset = &off
			return nil
		}},
		{"csr", func(s *vfioSpec, v string) (err error) {
			const least, most = 1_000_000, 800_000_000 // what there is an MDC divider for
			if s.csrClock, err = strconv.ParseUint(v, 10, 64); err != nil || s.csrClock < least || s.csrClock > most {
				return invalid("not a frequency in Hz, %d to %d", least, most)
			}
			return nil
		}},
		{"iommu", func(s *vfioSpec, v string) error {
			if _, ok := domainOptions(v); !ok {
				return invalid("none of auto, group, iommufd, noiommu and noiommu-group")
			}
			s.iommu = v
			return nil
		}},
		{"addr", func(s *vfioSpec, v string) (err error) {
			s.hardwareAddr, err = net.ParseMAC(v)
			if a := s.hardwareAddr; err != nil || len(a) != 6 || a[0]&1 != 0 || a.String() == "00:00:00:00:00:00" {
				return invalid("not the address of a station, as in 02:00:00:00:00:01")
			}
			return nil
		}},
		{"width", func(s *vfioSpec, v string) (err error) {
			const least, most = 32, 64
			if s.addrWidth, err = strconv.Atoi(v); err != nil || s.addrWidth < least || s.addrWidth > most {
				return invalid("not a number of address bits, %d to %d", least, most)
			}
			return nil
		}},
		{"bind", func(s *vfioSpec, v string) error {
			if v != "on" && v != "off" {
				return invalid("neither on nor off")
			}
			s.bind = v == "on"
			return nil
		}},
	}
}

func (s *vfioSpec) setGeneration(v string) error {
	g, ok := stmmac.ParseGeneration(v)
	if !ok {
		return invalid("no generation of the MAC, want gmac or gmac4")
	}
	if g != stmmac.GMAC && g != stmmac.GMAC4 {
		return fmt.Errorf("only gmac and gmac4 are driven: %w", errors.ErrUnsupported)
	}
	s.generation = g
	return nil
}

// domainOptions are the options of the domain of an iommu=.
func domainOptions(iommu string) ([]vfio.Option, bool) {
	switch iommu {
	case "auto":
		return nil, true
	case "group":
		return []vfio.Option{vfio.WithBackend(vfio.Group)}, true
	case "iommufd":
		return []vfio.Option{vfio.WithBackend(vfio.IOMMUFD)}, true
	case "noiommu":
		return []vfio.Option{vfio.WithNoIOMMU()}, true
	case "noiommu-group":
		return []vfio.Option{vfio.WithNoIOMMU(), vfio.WithBackend(vfio.Group)}, true
	}
	return nil, false
}

// parseVFIO checks all that can be checked without looking at the machine.
func parseVFIO(a Address) (*vfioSpec, error) {
	s := &vfioSpec{iommu: "auto"}
	keys := vfioKeys()
next:
	for _, p := range a.Params {
		for _, k := range keys {
			if k.name != p.Key {
				continue
			}
			if err := k.set(s, p.Value); err != nil {
				return nil, &AddressError{Address: a.String(), Part: p.String(), Err: err}
			}
			continue next
		}
		names := make([]string, len(keys))
		for i, k := range keys {
			names[i] = k.name
		}
		return nil, &AddressError{Address: a.String(), Part: p.String(), Err: invalid(
			"%s= is no key of %s, those are: %s", p.Key, a.Scheme, strings.Join(names, ", "))}
	}
	return s, nil
}

// openVFIO is the schemes pci and platform.
func (o *Opener) openVFIO(ctx context.Context, a Address) (*Handle, error) {
	s, err := parseVFIO(a)
	if err != nil {
		return nil, err
	}
	fail := func(part string, err error) (*Handle, error) {
		return nil, &AddressError{Address: a.String(), Part: part, Err: err}
	}
	k := o.Kernel
	if k == nil {
		k = vfio.System()
	}
	i, err := vfio.Lookup(k, a.Location)
	if err != nil {
		return fail("location", err)
	}
	if string(i.Bus) != a.Scheme {
		return fail("location", invalid("it is a %s device: write %s:%s", i.Bus, i.Bus, a.Location))
	}
	g, err := s.glue(k, i)
	if err != nil {
		return fail("location", err)
	}
	h := &Handle{Address: a}
	if s.bind {
		b, err := vfio.Bind(ctx, k, i.Name)
		if err != nil {
			return fail("bind=on", err)
		}
		i = b.Info
		for _, w := range b.Warnings {
			o.warn(a, w)
		}
		h.closers = []func() error{b.Restore}
	}
	if strings.HasPrefix(s.iommu, "noiommu") && i.NoIOMMU() {
		o.warn(a, "no IOMMU stands before it: it reads and writes all memory of the machine")
	}
	if err := o.openDevice(ctx, h, k, s, &i, g); err != nil {
		_, err = fail("", errors.Join(err, h.Close()))
		return nil, err
	}
	return h, nil
}

func (o *Opener) warn(a Address, text string) {
	if o.Warn != nil {
		o.Warn(a, text)
	}
}

// glue tells which MAC the device has: by the tables, and where the address says
// something, by that.
func (s *vfioSpec) glue(k vfio.Kernel, i vfio.Info) (*glue.Glue, error) {
	g, err := glue.Find(k, i)
	switch {
	case err != nil && s.generation == 0:
		return nil, err
	case err != nil:
		g = glue.Assume(k, i, s.generation)
	case s.generation != 0:
		g.Generation = s.generation
	default:
		if err := g.Support(); err != nil {
			return nil, err
		}
	}
	if s.region != nil {
		g.Region = *s.region
	}
	if s.offset != nil {
		g.CSROffset = *s.offset
	}
	if s.csrClock != 0 {
		g.CSRClock = s.csrClock
	}
	if s.addrWidth != 0 {
		g.AddrWidth = s.addrWidth
	}
	// Before the device is opened, which resets it.
	return g, g.Missing()
}

// openDevice opens the device in the domain of its kind and does what its chip
// needs. On an error, closing h gives back what there is.
func (o *Opener) openDevice(ctx context.Context, h *Handle, k vfio.Kernel, s *vfioSpec, i *vfio.Info, g *glue.Glue) error {
	dom, leave, err := o.domain(k, s.iommu)
	if err != nil {
		return err
	}
	h.closers = slices.Insert(h.closers, 0, leave)
	d, err := dom.Open(ctx, i.Name, g.DeviceOptions()...)
	if err != nil {
		return err
	}
	h.closers = slices.Insert(h.closers, 0, d.Close)
	if i.NoIOMMU() && !d.WasReset() {
		o.warn(h.Address, "the kernel has no reset for it either: when this process is killed, it goes on writing to memory that belongs to others by then, until it is opened again")
	}
	p, err := g.Prepare(ctx, d)
	if err != nil {
		return err
	}
	h.closers[0] = p.Close
	h.Device = p
	h.Options = append(g.Options(p.NumInterrupts()), stmmac.WithName(h.Address.String()))
	if s.hardwareAddr != nil {
		h.Options = append(h.Options, stmmac.WithHardwareAddr(s.hardwareAddr))
	}
	return nil
}

// sharedDomain is a domain and how many devices are in it or on their way.
type sharedDomain struct {
	dom  *vfio.Domain
	used int
}

// domain returns the domain of an iommu=, which it makes for the first device, and
// what to call when the device is closed: the last one closes it.
func (o *Opener) domain(k vfio.Kernel, iommu string) (dom *vfio.Domain, leave func() error, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.domains[iommu]
	if d == nil {
		opts, _ := domainOptions(iommu)
		d = new(sharedDomain)
		if d.dom, err = vfio.NewDomain(append(opts, vfio.WithKernel(k))...); err != nil {
			return nil, nil, err
		}
		if o.domains == nil {
			o.domains = map[string]*sharedDomain{}
		}
		o.domains[iommu] = d
	}
	d.used++
	return d.dom, func() error {
		o.mu.Lock()
		d.used--
		last := d.used == 0
		if last {
			delete(o.domains, iommu)
		}
		o.mu.Unlock()
		if last {
			return d.dom.Close()
		}
		return nil
	}, nil
}
