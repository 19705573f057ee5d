package vfioplatform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

const (
	shortest = 14 // bytes of a frame: a header alone
	header   = 14
	tag      = 4 // of a VLAN
)

// counts are what the station prints at the end.
type counts struct {
	Frames, Padded     int
	Interrupts, Kernel uint64 // as the driver counts, and as the kernel does
	Lowest             uint64 // bus address of memory
	Pages, Overwritten int    // huge pages, bytes
}

// countsOf reads them.
func countsOf(lines []string) (c counts, err error) {
	for _, l := range lines {
		if strings.HasPrefix(l, "{") {
			return c, json.Unmarshal([]byte(l), &c)
		}
	}
	return c, fmt.Errorf("the station has printed no counts: %q", lines)
}

// traffic is how frames go.
type traffic struct {
	poll bool
	mtu  int
	min  int  // bytes of the shortest frame
	zero bool // the memory of the device begins at physical address 0
}

func (t traffic) longest() int { return t.mtu + header + tag }
func (t traffic) frames() int  { return t.longest() - t.min + 1 }

func (t traffic) args(more ...string) []string {
	return append([]string{"-dev", address, "-mtu", strconv.Itoa(t.mtu), "-poll=" + strconv.FormatBool(t.poll), "-zero=" + strconv.FormatBool(t.zero)}, more...)
}

// toDevice sends frames of every length from the kernel's packet socket, which the driver
// sends back.
func (h *Host) toDevice(ctx context.Context, t traffic) (c counts, err error) {
	p := h.start(ctx, 0, "station", t.args("reflect")...)
	if _, err := p.await(ctx, jobs.Ready); err != nil {
		return c, err
	}
	r, err := do(ctx, h, jobs.Frames{Interface: h.near, To: farMAC, Min: t.min, Max: t.longest(), Seed: 1})
	if err != nil {
		return c, fmt.Errorf("%w; the station: %w", err, p.stop(ctx))
	}
	if err := p.stop(ctx); err != nil {
		return c, err
	}
	c, err = countsOf(p.output())
	if err == nil && (c.Frames != t.frames() || r.Frames != t.frames()) {
		err = fmt.Errorf("%d frames came back of %d that the driver has sent back, and there were %d", r.Frames, c.Frames, t.frames())
	}
	return c, err
}

// fromDevice sends frames of every length from the driver, which the kernel's packet socket
// sends back.
func (h *Host) fromDevice(ctx context.Context, t traffic) (c counts, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reflected := make(chan error, 1)
	go func() {
		_, err := do(ctx, h, jobs.Reflect{Interface: h.near, Count: t.frames()})
		reflected <- err
	}()
	select {
	case <-h.ready:
	case err := <-reflected:
		return c, err
	case <-ctx.Done():
		return c, ctx.Err()
	}
	lines, err := h.run(ctx, 0, "station", t.args("-to", nearMAC, "-min", strconv.Itoa(t.min), "-max", strconv.Itoa(t.longest()), "frames")...)
	if err != nil {
		return c, err
	}
	if err := <-reflected; err != nil {
		return c, err
	}
	c, err = countsOf(lines)
	if err == nil && c.Frames != t.frames() {
		err = fmt.Errorf("%d frames came back of %d", c.Frames, t.frames())
	}
	return c, err
}

// sleeps says whether the driver has slept until frames came: one that polls has no interrupts.
func (c counts) sleeps(t traffic) error {
	switch {
	case c.Interrupts != c.Kernel:
		return fmt.Errorf("the driver has seen %d interrupts, and /proc/interrupts counts %d", c.Interrupts, c.Kernel)
	case t.poll && c.Interrupts > 0:
		return fmt.Errorf("%d interrupts of a driver that polls", c.Interrupts)
	case !t.poll && c.Interrupts < uint64(c.Frames)/4:
		// One may tell of a frame that was sent and of the next one that has come.
		return fmt.Errorf("%d interrupts for %d frames, each of which was waited for", c.Interrupts, c.Frames)
	}
	return nil
}

// bothWays sends frames of every length from each end, which the other end sends back.
func (h *Host) bothWays(ctx context.Context, t traffic) error {
	for _, way := range []func(context.Context, traffic) (counts, error){h.toDevice, h.fromDevice} {
		c, err := way(ctx, t)
		if err == nil {
			err = c.sleeps(t)
		}
		if err != nil {
			return err
		}
		note.Printf(ctx, "%d frames, %d interrupts", c.Frames, c.Interrupts)
	}
	return nil
}

// frames is a case of traffic.
func frames(t traffic) func(context.Context, *Host) error {
	return func(ctx context.Context, h *Host) error { return h.bothWays(ctx, t) }
}

// longestMTU is that up to which the kernel's driver gets frames of normal descriptors into the
// first buffer of one, which has 2047 bytes, with the FCS. What is longer it puts into the
// second one, whose address it leaves 0.
const longestMTU = 2047 - 4 - header - tag

// jumbo sends frames beyond 1518 bytes.
func jumbo(ctx context.Context, h *Host) error {
	if err := h.setNear(ctx, longestMTU); err != nil {
		return err
	}
	note.Printf(ctx, "MTU %d", longestMTU)
	err := h.bothWays(ctx, traffic{mtu: longestMTU, min: 1500})
	if err == nil {
		err = h.bothWays(ctx, traffic{mtu: longestMTU, min: 1500, poll: true})
	}
	return errors.Join(err, h.setNear(ctx, 1500))
}

// pageZero: the memory at physical address 0, which is memory as any other, is the device's. The
// kernel sets it apart when it boots; later something else may have it.
func pageZero(ctx context.Context, h *Host) error {
	for _, way := range []func(context.Context, traffic) (counts, error){h.toDevice, h.fromDevice} {
		c, err := way(ctx, traffic{mtu: 1500, min: 1400, zero: true})
		if err == nil && c.Lowest != 0 {
			err = fmt.Errorf("the memory of the device begins at %#x", c.Lowest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
