package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio"
)

// Scheme opens the devices of a scheme. An error should be an [*AddressError].
type Scheme func(ctx context.Context, a Address) (*Handle, error)

// Opener opens devices by address. The devices of one Opener can be plugged
// into each other. Open may be called by several goroutines; the fields are set
// before that.
type Opener struct {
	// Schemes by name; add to it what else there is.
	Schemes map[string]Scheme
	// Loop configures the generators of wire=gen: that of a NAME is the
	// configuration at the time its first end is opened.
	Loop sim.LoopConfig
	// Kernel is where the devices of pci and platform are; nil is the machine's own.
	Kernel vfio.Kernel
	// Warn is told what is dangerous about a device that is being opened, for people;
	// nil tells nobody.
	Warn func(a Address, text string)

	mu      sync.Mutex
	meets   map[string]*meeting
	files   []openFile
	domains map[string]*sharedDomain // by iommu=
}

// NewOpener returns an Opener that knows the schemes pci, platform and sim.
func NewOpener() *Opener {
	o := &Opener{meets: map[string]*meeting{}}
	o.Schemes = map[string]Scheme{"sim": o.openSim, "pci": o.openVFIO, "platform": o.openVFIO}
	return o
}

// Open opens the device that addr names. The error of a malformed address is an
// [*AddressError]; that of a scheme or generation that is not known wraps
// errors.ErrUnsupported.
func (o *Opener) Open(ctx context.Context, addr string) (*Handle, error) {
	a, err := Parse(addr)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &AddressError{Address: addr, Err: err}
	}
	open := o.Schemes[a.Scheme]
	if open == nil {
		known := "none"
		if len(o.Schemes) > 0 {
			known = strings.Join(slices.Sorted(maps.Keys(o.Schemes)), ", ")
		}
		return nil, &AddressError{Address: addr, Part: "scheme", Err: fmt.Errorf(
			"%q is not known, those known are: %s: %w", a.Scheme, known, errors.ErrUnsupported)}
	}
	return open(ctx, a)
}

// meeting is a wire with two ends that two addresses of the same name share.
type meeting struct {
	ends  [2]sim.Wire
	given int // ends handed out so far
	open  int // of these, not closed yet
}

// meet returns the next end of the wire that name stands for, and what to call
// when it is closed. The name is free again when all ends that were handed out
// are closed.
func (o *Opener) meet(name string, make func() (a, b sim.Wire)) (end sim.Wire, leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.meets[name]
	if m == nil {
		m = new(meeting)
		m.ends[0], m.ends[1] = make()
		o.meets[name] = m
	}
	if m.given == len(m.ends) {
		return nil, nil, invalid("both ends are in use")
	}
	end = m.ends[m.given]
	m.given++
	m.open++
	return end, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if m.open--; m.open == 0 {
			delete(o.meets, name)
		}
	}, nil
}
