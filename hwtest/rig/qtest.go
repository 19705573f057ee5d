package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/drive"
	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/hwtest/rig/regcheck"
	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
	"github.com/gostmmac/gostmmac/hwtest/rig/stack"
	"github.com/gostmmac/gostmmac/hwtest/rig/trace"
)

// qtestTest is a test of the qtest rig. It runs on a machine that others use before and
// after it, one at a time, and leaves the MAC stopped.
type qtestTest struct {
	name string
	run  func(ctx context.Context, m *qtest.Machine) error
}

// qtestTests is the list for one machine.
func qtestTests() []qtestTest {
	var all []qtestTest
	for _, list := range []struct {
		prefix string
		tests  []regcheck.Test
	}{{"registers: ", regcheck.Tests()}, {"deviation: ", regcheck.Deviations()}} {
		for _, t := range list.tests {
			all = append(all, qtestTest{list.prefix + t.Name, func(ctx context.Context, m *qtest.Machine) error {
				return t.Run(ctx, &regcheck.Board{Device: m.Device(), Wire: m.Wire()})
			}})
		}
	}
	for _, t := range slices.Concat(drive.Tests(), trace.Tests()) {
		all = append(all, qtestTest{"driver: " + t.Name, t.Run})
	}
	for _, t := range drive.Survivals() {
		all = append(all, qtestTest{"driver survives: " + t.Name, t.Run})
	}
	return append(all, qtestTest{"netstack: address and ping", stack.Ping})
}

// qtestRig runs the list on the last MAC of each machine, whose number is not 0, and so
// the address of the registers not the first; then the stack, on both machines at once.
func qtestRig(ctx context.Context, e env, r *report) {
	command, environ := e.tree.QEMU()
	var hw *hardware
	built := r.test(ctx, "build the hardware tests", func(context.Context) (err error) {
		hw, err = buildHardware(ctx, e.logs)
		return err
	})
	type board struct {
		name string
		*qtest.Machine
	}
	var boards []board // those that started
	all := []struct {
		machine string
		nic     int
	}{{qtest.NPCM845, 3}, {qtest.NPCM750, 1}}
	for _, c := range all {
		name := fmt.Sprintf("%s/gmac%d: ", c.machine, c.nic)
		var m *qtest.Machine
		started := r.test(ctx, name+"start", func(ctx context.Context) (err error) {
			m, err = qtest.Start(ctx, qtest.Config{Command: command, Env: environ, Machine: c.machine, NIC: c.nic,
				Log: filepath.Join(e.logs, "qemu-"+c.machine+".log")})
			return err
		})
		for _, t := range qtestTests() {
			r.test(ctx, name+t.name, func(ctx context.Context) error {
				if !started {
					return errNotStarted
				}
				return t.run(ctx, m)
			})
		}
		if started {
			boards = append(boards, board{name, m})
		}
		// With a QEMU of its own, which it starts again and again.
		r.test(ctx, name+"the list of hardware tests", func(context.Context) error {
			switch {
			case !built:
				return errNotBuilt
			case !started:
				return errNotStarted
			}
			device := fmt.Sprintf("%s:%s,nic=%d,cache=%s", scheme.Qtest, c.machine, c.nic, e.cache)
			return hw.run(ctx, r, name+"hardware: ", device, "qtest", "hwtest-"+c.machine+".log")
		})
	}
	r.test(ctx, "both: netstack: TCP download of 10 MiB from one to the other", func(ctx context.Context) error {
		if len(boards) < len(all) {
			return errNotStarted
		}
		return stack.Download(ctx, boards[0].Machine, boards[1].Machine)
	})
	for _, b := range boards {
		r.test(context.WithoutCancel(ctx), b.name+"end", func(context.Context) error { return b.Close() })
	}
}

var (
	errNotStarted = errors.New("the machine did not start")
	errNotBuilt   = errors.New("the hardware tests were not built")
)
