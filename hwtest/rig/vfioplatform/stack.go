package vfioplatform

import (
	"context"
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// withEcho does something while the echo server runs on the device. It takes the device from
// VFIO or the kernel as it finds it.
func (h *Host) withEcho(ctx context.Context, do func() error) error {
	p := h.start(ctx, 0, "echo", "-dev", address+",bind=on", "-addr", farIP+"/24")
	if _, err := p.await(ctx, "echo on TCP and UDP port 7"); err != nil {
		return err
	}
	return errors.Join(do(), p.stop(ctx))
}

// ping pings from the kernel's stack to the driver's, twice with each size.
func ping(ctx context.Context, h *Host) error {
	return h.withEcho(ctx, func() error {
		n, slowest := 0, int64(0)
		for size := 56; size <= 1472; size += 59 { // 24 steps
			r, err := do(ctx, h, jobs.Ping{To: farIP, Size: size, Count: 2})
			if err != nil {
				return fmt.Errorf("%d bytes: %w", size, err)
			}
			n, slowest = n+r.Answered, max(slowest, r.Slowest)
		}
		note.Printf(ctx, "%d of 56 to 1472 bytes, at most %d us", n, slowest)
		return nil
	})
}

// transfer sends 10 MB from the kernel's stack to the driver's and back, at once, and compares
// each byte.
func transfer(ctx context.Context, h *Host) error {
	const bytes = 10_000_000
	return h.withEcho(ctx, func() error {
		r, err := do(ctx, h, jobs.Transfer{Dial: farIP + ":7", Send: bytes, Receive: bytes, Seed: 1, Echo: true})
		if err == nil {
			note.Printf(ctx, "%.1f MB/s each way", float64(bytes)/float64(max(r.Microseconds, 1)))
		}
		return err
	})
}

// takenAndGiven: with bind=on a program takes the device from the kernel and gives it back.
func takenAndGiven(ctx context.Context, h *Host) error {
	if _, err := h.run(ctx, 0, "stmmacctl", "unbind", address); err != nil {
		return err
	}
	err := h.withEcho(ctx, func() error {
		err := h.isWith(ctx, vfioDriver)
		if err == nil {
			_, err = do(ctx, h, jobs.Ping{To: farIP, Size: 56, Count: 1})
		}
		return err
	})
	if err := errors.Join(err, h.isWith(ctx, kernelDriver)); err != nil {
		return err
	}
	_, err = h.run(ctx, 0, "stmmacctl", "bind", address)
	return err
}
