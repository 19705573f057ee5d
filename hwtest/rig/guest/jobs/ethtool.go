package jobs

import (
	"errors"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/ethtool"
)

// ask runs f with an interface of a namespace.
func ask[R any](r run, space, name string, f func(i *ethtool.Interface) (R, error)) (result any, err error) {
	n, err := r.w.space(space)
	if err != nil {
		return nil, err
	}
	var i *ethtool.Interface
	err = n.Do(func() (err error) {
		i, err = ethtool.Open(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	return f(i)
}

// set is ask for what has no result.
func set(r run, space, name string, f func(i *ethtool.Interface) error) (any, error) {
	return ask(r, space, name, func(i *ethtool.Interface) (None, error) { return None{}, f(i) })
}

// Link asks for the state of the link.
type Link struct {
	returns[ethtool.Link]
	Space     string
	Interface string
}

// Name implements Job.
func (Link) Name() string { return "link" }

func (j Link) run(r run) (any, error) { return ask(r, j.Space, j.Interface, (*ethtool.Interface).Link) }

// Driver asks which driver an interface has.
type Driver struct {
	returns[ethtool.Driver]
	Space     string
	Interface string
}

// Name implements Job.
func (Driver) Name() string { return "driver" }

func (j Driver) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Driver)
}

// Statistics asks for the driver's own counters.
type Statistics struct {
	returns[map[string]uint64]
	Space     string
	Interface string
}

// Name implements Job.
func (Statistics) Name() string { return "statistics" }

func (j Statistics) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Statistics)
}

// SelfTest runs the driver's self-tests, out of service. Tests that the driver did not run at
// all are an error, see ethtool.ErrNotRun.
type SelfTest struct {
	returns[[]ethtool.Test]
	Space     string
	Interface string
}

// Name implements Job.
func (SelfTest) Name() string { return "self-test" }

func (j SelfTest) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).SelfTest)
}

// Pause asks for the flow control.
type Pause struct {
	returns[ethtool.Pause]
	Space     string
	Interface string
}

// Name implements Job.
func (Pause) Name() string { return "pause" }

func (j Pause) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Pause)
}

// Coalesce asks how many frames an interrupt is for.
type Coalesce struct {
	returns[ethtool.Coalesce]
	Space     string
	Interface string
}

// Name implements Job.
func (Coalesce) Name() string { return "coalesce" }

func (j Coalesce) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Coalesce)
}

// Rings asks for the lengths of rings.
type Rings struct {
	returns[ethtool.Rings]
	Space     string
	Interface string
}

// Name implements Job.
func (Rings) Name() string { return "rings" }

func (j Rings) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Rings)
}

// Features asks for offloads and other features.
type Features struct {
	returns[map[string]ethtool.Feature]
	Space     string
	Interface string
}

// Name implements Job.
func (Features) Name() string { return "features" }

func (j Features) run(r run) (any, error) {
	return ask(r, j.Space, j.Interface, (*ethtool.Interface).Features)
}

// SetPause sets the flow control.
type SetPause struct {
	returns[None]
	Space     string
	Interface string
	Pause     ethtool.Pause
}

// Name implements Job.
func (SetPause) Name() string { return "set pause" }

func (j SetPause) run(r run) (any, error) {
	return set(r, j.Space, j.Interface, func(i *ethtool.Interface) error { return i.SetPause(j.Pause) })
}

// SetCoalesce sets how many frames an interrupt is for.
type SetCoalesce struct {
	returns[None]
	Space     string
	Interface string
	Coalesce  ethtool.Coalesce
}

// Name implements Job.
func (SetCoalesce) Name() string { return "set coalesce" }

func (j SetCoalesce) run(r run) (any, error) {
	return set(r, j.Space, j.Interface, func(i *ethtool.Interface) error { return i.SetCoalesce(j.Coalesce) })
}

// SetRings sets the lengths of rings.
type SetRings struct {
	returns[None]
	Space     string
	Interface string
	Rx, Tx    uint32 // descriptors
}

// Name implements Job.
func (SetRings) Name() string { return "set rings" }

func (j SetRings) run(r run) (any, error) {
	return set(r, j.Space, j.Interface, func(i *ethtool.Interface) error { return i.SetRings(j.Rx, j.Tx) })
}

// SetFeatures switches features on or off. One that stays is an error.
type SetFeatures struct {
	returns[None]
	Space     string
	Interface string
	Features  map[string]bool
}

// Name implements Job.
func (SetFeatures) Name() string { return "set features" }

func (j SetFeatures) run(r run) (any, error) {
	return set(r, j.Space, j.Interface, func(i *ethtool.Interface) error { return i.SetFeatures(j.Features) })
}
