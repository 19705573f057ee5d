package glue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

// Glue is a device whose MAC is known. It belongs to one device: [Glue.Prepare]
// writes to it, so it must not be used by others meanwhile.
type Glue struct {
	// Name is the chip and the port of it: "Motorcomm YT6801".
	Name string
	// Generation is the line of the MAC's IP; 0 for one with registers of its own.
	Generation stmmac.Generation
	// Preconditions are what lies outside of the device's registers and must have
	// been set up by the firmware, by the kernel or by hand, one sentence each.
	Preconditions []string
	// Limits are what the chip cannot do, or what is not known of it, and the device
	// does not tell: one sentence each.
	Limits []string

	// Where the MAC's registers are and what no register tells; who knows better sets
	// them before Prepare.
	Region    int    // BAR of a PCI function, index of the reg entry of a platform device
	CSROffset uint32 // bytes from the start of the region to the CSR space
	CSRClock  uint64 // Hz; 0: not known
	AddrWidth int    // bits of a bus address; 0: what the MAC's feature register says

	info    vfio.Info
	is      integration
	missing []error
	link    *stmmac.Link     // of a fixed link
	addr    net.HardwareAddr // that the chip or the device tree keeps
}

// Find tells which MAC a device is. k is where the device tree and the state of the
// PCI link are read, if nil the machine's own kernel. Several compatibles of a node
// are tried in their order, so that the most specific known one wins; where only a
// generic one is known, as snps,dwmac-4.20a, it gives the generation.
//
// The error of a device that is not known wraps errors.ErrUnsupported and says
// how to give by hand what Find would have told.
func Find(k vfio.Kernel, i vfio.Info) (*Glue, error) {
	is, generic, ok := lookup(&i)
	if !ok {
		return nil, unknown(&i)
	}
	g := newGlue(k, i, is)
	if generic {
		g.Limits = append(g.Limits, fmt.Sprintf("%s is not known, only %s is: what is special about the chip is not done", i.Compatible[0], is.name))
	}
	return g, nil
}

// Assume returns the Glue of a device that Find does not know and whose MAC's
// generation the caller does. k is as for Find.
func Assume(k vfio.Kernel, i vfio.Info, generation stmmac.Generation) *Glue {
	return newGlue(k, i, integration{name: "unknown chip", generation: generation})
}

func newGlue(k vfio.Kernel, i vfio.Info, is integration) *Glue {
	if k == nil {
		k = vfio.System()
	}
	g := &Glue{
		Name: is.name, Generation: is.generation,
		Preconditions: slices.Clone(is.needs), Limits: slices.Clone(is.limits),
		CSROffset: is.offset, CSRClock: is.csrClock, AddrWidth: is.addrWidth,
		info: i, is: is,
	}
	if g.Generation == stmmac.GMAC {
		g.Limits = append(g.Limits, "a GMAC 3.x that was built for enhanced descriptors (ENHDESSEL in HW_Feature) is refused when it is opened")
	}
	if i.Bus == vfio.PCI {
		g.readPCI(k.FS())
	} else {
		g.readPlatform(k.FS())
	}
	if g.CSRClock == 0 {
		g.Limits = append(g.Limits, "the frequency of the CSR clock is not known: a PHY needs it to be given (csr=HZ, stmmac.WithCSRClock)")
	}
	return g
}

// lookup finds a device in the tables; generic says that only the IP is known, not
// the chip.
func lookup(i *vfio.Info) (is integration, generic, ok bool) {
	if i.Bus == vfio.PCI {
		for n := range pciTable {
			if e := &pciTable[n]; e.vendor == i.Vendor && e.device == i.Device {
				return e.integration, false, true
			}
		}
		return is, false, false
	}
	for first, c := range i.Compatible {
		is, ok = platform(c)
		if ok {
			generic = isRelease(c) || c == anyRelease
			if !generic && is.own == "" {
				is.generation = generationOf(i.Compatible[first+1:], is.generation)
			}
			return is, generic && first > 0, true
		}
	}
	return is, false, false
}

// platform finds a compatible in the table.
func platform(compatible string) (is integration, ok bool) {
	for n := range platformTable {
		if e := &platformTable[n]; slices.Contains(e.compatibles, compatible) {
			return e.integration, true
		}
	}
	return is, false
}

// anyRelease is the compatible of the IP that says no release: nodes of a GMAC4 have
// it too.
const anyRelease = "snps,dwmac"

// isRelease says whether a compatible names a release of the IP.
func isRelease(compatible string) bool {
	return strings.HasPrefix(compatible, "snps,") && compatible != anyRelease
}

// generationOf is the generation of the first release among compatibles: one name of
// a chip may stand for several (st,stm32-dwmac is a GMAC on an STM32F7 and a GMAC4 on
// an STM32H7). Without a release it is that of the table.
func generationOf(compatibles []string, table stmmac.Generation) stmmac.Generation {
	for _, c := range compatibles {
		if !isRelease(c) {
			continue
		}
		if is, ok := platform(c); ok {
			return is.generation
		}
	}
	return table
}

// unknown is the error of a device that no table has.
func unknown(i *vfio.Info) error {
	what := fmt.Sprintf("PCI id %04x:%04x", i.Vendor, i.Device)
	switch {
	case i.Bus != vfio.PCI && len(i.Compatible) == 0:
		what = "device without a compatible in the device tree"
	case i.Bus != vfio.PCI:
		what = "compatible of " + strings.Join(i.Compatible, ", ")
	}
	return &vfio.Error{Op: "find its MAC", Dev: i.Name,
		Err: fmt.Errorf("no MAC is known for the %s: %w", what, errors.ErrUnsupported),
		Remedy: fmt.Sprintf("if it has a DesignWare MAC, say which: %s:%s,generation=gmac4 (or gmac, a 3.x),region=0,offset=0x0,csr=HZ in an address, "+
			"or stmmac.WithGeneration, WithCSRClock, and RegionNo and CSROffset in WithConfig", i.Bus, i.Name)}
}

// Support says whether package stmmac drives this MAC today: nil, or an error
// that wraps errors.ErrUnsupported and says why not.
func (g *Glue) Support() error {
	var err error
	switch {
	case g.is.own != "":
		err = fmt.Errorf("%s: %s: %w", g.Name, g.is.own, errors.ErrUnsupported)
	case g.Generation != stmmac.GMAC && g.Generation != stmmac.GMAC4: // those that stmmac.Open takes
		err = fmt.Errorf("%s: generation %v: %w", g.Name, g.Generation, errors.ErrUnsupported)
	default:
		return nil
	}
	return g.fail("drive its MAC", err, fmt.Sprintf("give it back to the kernel's driver: stmmacctl unbind %s:%s", g.info.Bus, g.info.Name))
}

// Missing says which preconditions are seen not to be met: nil, or an error for
// each, with what to do about it. nil does not say that all are met.
func (g *Glue) Missing() error { return errors.Join(g.lacksBAR(), errors.Join(g.missing...)) }

// fail is an error of this device.
func (g *Glue) fail(op string, err error, remedy string) error {
	return &vfio.Error{Op: op, Dev: g.info.Name, Err: err, Remedy: remedy}
}

// lacks notes a precondition that is not met.
func (g *Glue) lacks(err error, remedy string) {
	g.missing = append(g.missing, g.fail("prepare", err, remedy))
}

// Prepare does the work around the MAC that the chip needs before the MAC is touched,
// stops a DMA that its last owner has left running (see [stmmac.Halt]), and returns the device to open it on: d, or one that wraps d, repeats that work
// after each Reset and undoes it in Close. Closing what it returns closes d. On an
// error, which [Glue.Missing] may be, what was done is undone, and d is still open and
// the caller's.
//
// Where the chip keeps the MAC's address, Options have it afterwards.
func (g *Glue) Prepare(ctx context.Context, d stmmac.Device) (stmmac.Device, error) {
	if err := g.Missing(); err != nil {
		return nil, err
	}
	if g.is.prepare != nil {
		return g.is.prepare(ctx, g, d)
	}
	if err := g.answers(d); err != nil {
		return nil, err
	}
	// A chip with work of its own is reset by that. What stmmac does not drive it refuses
	// itself, with the reason.
	if err := stmmac.Halt(ctx, d, g.Options(0)...); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, g.fail("prepare", fmt.Errorf("stop what its last owner has left running: %w", err), remedy(g.Preconditions))
	}
	return d, nil
}

// The registers with the release of the IP.
const (
	gmacVersion  mmio.Reg[version] = 0x0020 // of GMAC 3.x
	gmac4Version mmio.Reg[version] = 0x0110 // of GMAC4 and GMAC5
)

type version uint32

const snpsver mmio.Field[version] = 0xff // release: 0x42 for 4.20

// answers says whether the MAC of a platform device has its clocks: their lack is
// the likeliest of all faults there, and the first read shows it on most chips. (On
// some it stops the bus, and nothing can be said.)
func (g *Glue) answers(d stmmac.Device) error {
	reg, name := gmac4Version, "MAC_Version"
	switch {
	case g.info.Bus != vfio.Platform:
		return nil
	case g.Generation == stmmac.GMAC:
		reg, name = gmacVersion, "Version"
	case g.Generation != stmmac.GMAC4:
		return nil
	}
	r, err := d.Region(g.Region)
	if err != nil {
		return g.fail("prepare", fmt.Errorf("region %d: %w", g.Region, err), "")
	}
	v := reg.Load(mmio.Window(r, g.CSROffset, r.Len()))
	if uint32(v) != mmio.AllOnes && snpsver.Get(v) != 0 {
		return nil
	}
	return g.fail("prepare", fmt.Errorf("%s reads %#08x: the MAC has no clock, is held in reset, or is not at offset %#x of region %d: %w",
		name, uint32(v), g.CSROffset, g.Region, vfio.ErrGone), remedy(g.Preconditions))
}

func remedy(preconditions []string) string {
	if len(preconditions) == 0 {
		return "make sure that its clocks run and its resets are released"
	}
	return "make sure that " + strings.Join(preconditions, "; ")
}
