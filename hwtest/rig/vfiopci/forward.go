package vfiopci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// loop plugs a generator and checker into the two cards of the generators: frames each way,
// 0 without end. Frames are given up when nobody has forwarded them for long.
func (h *Host) loop(frames uint64, patience time.Duration) (ends [2]*sim.LoopWire, err error) {
	const window, never = 64, 1 << 16
	a, b := sim.NewLoop(sim.LoopConfig{
		Sizes: []int{60, 61, 128, 594, 1514}, Window: window, GiveUp: never, Timeout: patience, Frames: frames, Seed: frames + 1,
	})
	ends = [2]*sim.LoopWire{a, b}
	return ends, errors.Join(h.ends[0].plug(a), h.ends[1].plug(b))
}

// forwarded is what of the command's result is looked at.
type forwarded struct {
	Packets, Bytes uint64
	Drops          map[string]uint64
	Directions     []struct {
		Name           string
		Packets, Bytes uint64
	}
	Errors []string
}

// forward forwards frames between the generators through two cards in one domain or in two:
// each arrives once, unchanged and in order, and the command counts what the wires do.
func (h *Host) forward(ctx context.Context, other bool) error {
	const frames = 3000
	ends, err := h.loop(frames, time.Minute)
	if err != nil {
		return err
	}
	var before [2]sim.Stats
	for i := range before {
		before[i] = h.Cards[generators+i].Model().Stats()
	}
	var r forwarded
	err = h.value(ctx, nil, &r, forwarderBin, "-json", "-count", fmt.Sprint(frames), "-duration", "2m",
		"-a", h.boot.address(generators, false), "-b", h.boot.address(generators+1, other))
	if err != nil {
		return err
	}
	var errs []error
	for i, e := range ends {
		c := e.Counters()
		if want := (sim.LoopCounters{Sent: frames, Received: frames, Bytes: c.Bytes}); c != want {
			errs = append(errs, fmt.Errorf("the wire of %s counts %+v", cards.Place(generators+i), c))
		}
		if len(r.Directions) != 2 || r.Directions[i].Packets != c.Received || r.Directions[i].Bytes != c.Bytes {
			errs = append(errs, fmt.Errorf("forwarder counts %+v, and the wire %d frames, %d bytes", r.Directions, c.Received, c.Bytes))
		}
		s := h.Cards[generators+i].Model().Stats()
		if rx, tx := s.RxFrames-before[i].RxFrames, s.TxFrames-before[i].TxFrames; rx != frames || tx != frames {
			errs = append(errs, fmt.Errorf("%s received %d frames and sent %d", cards.Place(generators+i), rx, tx))
		}
	}
	for reason, n := range r.Drops {
		if n > 0 {
			errs = append(errs, fmt.Errorf("forwarder dropped %d: %s", n, reason))
		}
	}
	note.Printf(ctx, "%d frames each way, %d bytes, as the wires, the cards and the command count them", frames, r.Bytes)
	return errors.Join(append(errs, h.audit())...)
}
