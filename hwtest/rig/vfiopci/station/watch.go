package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// watched is how much memory is mapped for each device: more than the one before had, whose
// bus addresses it has, too, because they are given out from below.
const watched = 16 << 20

// pattern is what the memory holds.
const pattern = 0xa5

// watch maps memory for devices, which so reach it, and looks at the end of ctx whether it is
// as it was.
func watch(ctx context.Context, addrs []string, progress io.Writer) (_ *said.Watch, err error) {
	var closers []func() error
	defer func() {
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c())
		}
	}()
	o := bus.NewOpener()
	type piece struct {
		mem []byte
		at  uint64
	}
	var pieces []piece
	for _, a := range addrs {
		h, err := o.Open(context.WithoutCancel(ctx), a)
		if err != nil {
			return nil, err
		}
		closers = append(closers, h.Close)
		mem, at, unmap, err := memoryFor(h.Device)
		if err != nil {
			return nil, err
		}
		closers = append(closers, unmap)
		copy(mem, bytes.Repeat([]byte{pattern}, len(mem)))
		pieces = append(pieces, piece{mem, at})
	}
	fmt.Fprintln(progress, said.Watching)
	<-ctx.Done()
	w := new(said.Watch)
	for _, p := range pieces {
		inspect(w, p.mem, p.at)
	}
	return w, nil
}

// inspect counts what was changed in memory of a device at a bus address.
func inspect(w *said.Watch, mem []byte, at uint64) {
	w.Bytes += len(mem)
	changed := len(mem) - bytes.Count(mem, []byte{pattern})
	if changed > 0 && w.Changed == 0 {
		w.At = at + uint64(slices.IndexFunc(mem, func(v byte) bool { return v != pattern }))
	}
	w.Changed += changed
}
