package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/drive"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/internal/bringup"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Tests returns the tests.
func Tests() []drive.Test {
	return []drive.Test{{Name: "bring-up against that of the stock Linux driver, as QEMU saw it", Run: BringUp}}
}

// BringUp starts another machine like m that logs the accesses to its registers, brings its
// MAC up as the stock driver was configured, and compares what QEMU logged.
func BringUp(ctx context.Context, m *qtest.Machine) error {
	log, err := record(ctx, m.Config())
	if err != nil {
		return err
	}
	r, err := judge(log, bringup.GMACReasons())
	if err == nil {
		note.Printf(ctx, "%v", r)
	}
	return err
}

// judge compares a bring-up with that of the stock driver.
func judge(log []mmio.Access, why bringup.Reasons) (bringup.Result, error) {
	stock, err := bringup.LinuxGMAC()
	if err != nil {
		return bringup.Result{}, err
	}
	r := bringup.Compare(stock, log, bringup.GMACName, why)
	return r, r.Err()
}

// record brings the MAC of a machine up and returns what QEMU logged of it until then.
func record(ctx context.Context, c qtest.Config) (log []mmio.Access, err error) {
	dir, err := os.MkdirTemp("", "gostmmac-trace-")
	if err != nil {
		return nil, fmt.Errorf("make the folder for QEMU's log: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "log")
	c.Log = "" // that of the machine that it is like
	c.Args = append(c.Args, "-trace", "npcm_gmac_reg_*", "-D", file)
	m, err := qtest.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	mac, err := bringUp(ctx, m.Device())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mac.Close()) }()
	// QEMU writes an access to its log before it answers: what it has logged is all.
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read QEMU's log: %w", err)
	}
	return parse(string(text), c.Path())
}

// csrClock is a clock for which there is an MDC divider, in Hz: the model has no MDC.
const csrClock = 125_000_000

// bringUp opens the MAC as the stock driver was configured and returns when the link is up
// and the groups are joined.
func bringUp(ctx context.Context, d stmmac.Device, opts ...stmmac.Option) (*stmmac.MAC, error) {
	mac, err := stmmac.Open(ctx, d, slices.Concat(bringup.LinuxGMACOptions(), []stmmac.Option{stmmac.WithName("traced"), stmmac.WithCSRClock(csrClock)}, opts)...)
	if err != nil {
		return nil, err
	}
	err = drive.WaitUp(ctx, mac)
	for _, g := range bringup.LinuxGMACGroups() {
		err = errors.Join(err, mac.JoinGroup(g))
	}
	if err != nil {
		return nil, errors.Join(err, mac.Close())
	}
	return mac, nil
}
