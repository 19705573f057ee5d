package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// Job is a job with a result of type R.
type Job[R any] interface {
	// Name is what the job is called between rig and guest.
	Name() string
	result(R)
}

// returns makes a type a job with a result of type R.
type returns[R any] struct{}

func (returns[R]) result(R) {}

// None is the result of jobs that have none.
type None struct{}

// run is what a job is for the guest.
type run struct {
	ctx context.Context
	w   *World
	log func(line string)
}

// runner is a job that can be run.
type runner interface {
	Name() string
	run(r run) (any, error)
}

// World is where jobs run: it keeps what outlives them, the network namespaces and the
// multicast groups that were joined, and the programs that run. Its methods may be called by several goroutines.
type World struct {
	// PowerOff ends the machine that is the world; nil where that is not to be.
	PowerOff func() error

	mu     sync.Mutex
	here   *netns.NS
	spaces map[string]*netns.NS
	joined map[membership]*netns.Membership
	// programs are those that run under a tag.
	programs map[string]*os.Process
}

// NewWorld makes a world around the namespace that the process is in.
func NewWorld() (*World, error) {
	here, err := netns.Current()
	if err != nil {
		return nil, err
	}
	return &World{here: here, spaces: map[string]*netns.NS{}, joined: map[membership]*netns.Membership{},
		programs: map[string]*os.Process{}}, nil
}

// Close lets go of the namespaces and groups.
func (w *World) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := []error{w.here.Close()}
	for _, e := range w.joined {
		errs = append(errs, e.Close())
	}
	for _, s := range w.spaces {
		errs = append(errs, s.Close())
	}
	clear(w.joined)
	clear(w.spaces)
	return errors.Join(errs...)
}

// space returns a namespace by name.
func (w *World) space(name string) (*netns.NS, error) {
	if name == "" {
		return w.here, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("no space %q was made: %w", name, os.ErrNotExist)
}

// decoder makes a job from its arguments.
type decoder func(args json.RawMessage) (runner, error)

// of is the entry of a type of jobs.
func of[J runner]() (string, decoder) {
	var zero J
	return zero.Name(), func(args json.RawMessage) (runner, error) {
		var j J
		d := json.NewDecoder(bytes.NewReader(args))
		d.DisallowUnknownFields()
		if err := d.Decode(&j); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return j, nil
	}
}

// decoders returns all jobs by name.
func decoders() map[string]decoder {
	m := map[string]decoder{}
	add := func(name string, d decoder) { m[name] = d }
	add(of[System]())
	add(of[Load]())
	add(of[Unload]())
	add(of[ReadFile]())
	add(of[WriteFile]())
	add(of[List]())
	add(of[ReadLink]())
	add(of[Permit]())
	add(of[Program]())
	add(of[Signal]())
	add(of[Space]())
	add(of[Move]())
	add(of[Interfaces]())
	add(of[Configure]())
	add(of[WaitInterface]())
	add(of[Pair]())
	add(of[VLAN]())
	add(of[Delete]())
	add(of[Ping]())
	add(of[Transfer]())
	add(of[Frames]())
	add(of[Reflect]())
	add(of[Join]())
	add(of[Leave]())
	add(of[Link]())
	add(of[Driver]())
	add(of[Statistics]())
	add(of[SelfTest]())
	add(of[Pause]())
	add(of[SetPause]())
	add(of[Coalesce]())
	add(of[SetCoalesce]())
	add(of[Rings]())
	add(of[SetRings]())
	add(of[Features]())
	add(of[SetFeatures]())
	add(of[PowerOff]())
	return m
}

// Run runs a job: it is a channel.Handler.
func (w *World) Run(ctx context.Context, name string, args json.RawMessage, log func(line string)) (any, error) {
	all := decoders()
	decode := all[name]
	if decode == nil {
		return nil, fmt.Errorf("there is no such job; there are %q", slices.Sorted(maps.Keys(all)))
	}
	j, err := decode(args)
	if err != nil {
		return nil, err
	}
	return j.run(run{ctx, w, log})
}
