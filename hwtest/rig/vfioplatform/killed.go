package vfioplatform

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// kill has a process drive the device, and kills it while frames pass. What it leaves is a
// device that goes on.
func (h *Host) kill(ctx context.Context) error {
	p := h.start(ctx, 0, "station", traffic{mtu: 1500}.args("reflect")...)
	if _, err := p.await(ctx, jobs.Ready); err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() {
		for {
			if _, err := do(sending, h, jobs.Frames{Interface: h.near, To: farMAC, Min: 60, Max: 1514}); err != nil {
				sent <- err
				return
			}
		}
	}()
	err := h.passing(ctx)
	err = errors.Join(err, p.signal(ctx, syscall.SIGKILL), p.wait(ctx, -1))
	stop()
	if e := <-sent; !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	return err
}

// passing waits until some frames have passed at the kernel's interface.
func (h *Host) passing(ctx context.Context) error {
	const some = 100
	received := func() (n int, err error) {
		b, err := do(ctx, h, jobs.ReadFile{Path: "/sys/class/net/" + h.near + "/statistics/rx_packets"})
		if err == nil {
			_, err = fmt.Sscan(string(b), &n)
		}
		return n, err
	}
	first, err := received()
	for now := first; err == nil && now < first+some; {
		now, err = received()
	}
	return err
}

// intrude takes the memory that a process has left, with the device opened first or not, and
// returns how much of it was overwritten.
func (h *Host) intrude(ctx context.Context, args ...string) (counts, error) {
	lines, err := h.run(ctx, 0, "station", append(args, "-iface", h.near, "intrude")...)
	if err != nil {
		return counts{}, err
	}
	c, err := countsOf(lines)
	if err == nil && c.Pages != hugePages {
		err = fmt.Errorf("%d huge pages were free of %d", c.Pages, hugePages)
	}
	return c, err
}

// killed kills a process in mid-traffic. Neither an IOMMU nor a reset stops its device: it
// writes to memory of others, until the device is opened again.
func killed(ctx context.Context, h *Host) error {
	if err := h.kill(ctx); err != nil {
		return err
	}
	c, err := h.intrude(ctx)
	if err != nil {
		return err
	}
	note.Printf(ctx, "without opening it %d bytes of %d pages were overwritten", c.Overwritten, c.Pages)
	if c.Overwritten == 0 {
		return errors.New("nobody has stopped the device, and it has written nothing: the test would not see it")
	}
	if err := h.kill(ctx); err != nil {
		return err
	}
	if c, err = h.intrude(ctx, "-dev", address); err != nil {
		return err
	}
	note.Printf(ctx, "behind opening it %d", c.Overwritten)
	if c.Overwritten > 0 {
		return fmt.Errorf("%d bytes of %d pages were overwritten when the device had been opened", c.Overwritten, c.Pages)
	}
	return nil
}
