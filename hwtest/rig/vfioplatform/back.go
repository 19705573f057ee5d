package vfioplatform

import (
	"context"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// far is the network namespace of the second GMAC when it is with the kernel.
const far = "far"

// back: the device goes back to the kernel's driver and works there, though a process that drove
// it was killed just before.
func back(ctx context.Context, h *Host) error {
	if err := h.kill(ctx); err != nil {
		return err
	}
	// Until it is opened again it writes to memory.
	if err := h.works(ctx); err != nil {
		return err
	}
	if _, err := h.run(ctx, 0, "stmmacctl", "unbind", address); err != nil {
		return err
	}
	if err := h.isWith(ctx, kernelDriver); err != nil {
		return err
	}
	name, err := h.interfaceOf(ctx, farMAC)
	if err != nil {
		return err
	}
	for _, j := range []jobs.Job[jobs.None]{
		jobs.Space{Space: far},
		jobs.Move{Interface: name, To: far},
		jobs.Configure{Space: far, Interface: name, Up: true, MTU: 1500, Addresses: []string{farIP + "/24"}},
		jobs.WaitInterface{Space: far, Interface: name, Running: true},
		jobs.WaitInterface{Interface: h.near, Running: true},
	} {
		if _, err := do(ctx, h, j); err != nil {
			return fmt.Errorf("%s: %w", j.Name(), err)
		}
	}
	l, err := do(ctx, h, jobs.Link{Space: far, Interface: name})
	if err == nil && (!l.Up || l.Mbps != 1000 || !l.Full) {
		err = fmt.Errorf("the link is %+v", l)
	}
	if err != nil {
		return err
	}
	const pings = 5
	p, err := do(ctx, h, jobs.Ping{To: farIP, Size: 1000, Count: pings})
	if err == nil && p.Answered != pings {
		err = fmt.Errorf("%d of %d pings were answered", p.Answered, pings)
	}
	if err != nil {
		return err
	}
	s, err := do(ctx, h, jobs.Statistics{Space: far, Interface: name})
	if err != nil {
		return err
	}
	for counter, least := range map[string]uint64{"rx_pkt_n": pings, "tx_pkt_n": pings} {
		if s[counter] < least {
			return fmt.Errorf("the driver counts %s %d, and there were %d pings", counter, s[counter], pings)
		}
	}
	for _, counter := range []string{"rx_length", "rx_crc_errors", "overflow_error", "fatal_bus_error_irq"} {
		if v, ok := s[counter]; !ok || v != 0 {
			return fmt.Errorf("the driver counts %s %d (there: %v)", counter, v, ok)
		}
	}
	note.Printf(ctx, "link 1000/full, ping %d/%d, %d frames received and %d sent", p.Answered, pings, s["rx_pkt_n"], s["tx_pkt_n"])
	return nil
}
