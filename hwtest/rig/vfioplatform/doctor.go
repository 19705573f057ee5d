package vfioplatform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// finding is one of stmmacctl doctor -json.
type finding struct{ Severity, Check, Text, Remedy string }

// lack is a failure that doctor has to find, and a part of the remedy that it has to name.
type lack struct{ check, remedy string }

// doctor runs stmmacctl doctor as a user. It must find these failures and no others, and its
// exit status says whether there are some.
func (h *Host) doctor(ctx context.Context, user uint32, want ...lack) error {
	code := 0
	if len(want) > 0 {
		code = 1
	}
	lines, err := h.runAs(ctx, user, code, "stmmacctl", "-json", "doctor", address)
	if err != nil {
		return err
	}
	return examine(lines, want)
}

// examine compares the failures that doctor has found with those that it had to find.
func examine(lines []string, want []lack) error {
	var report struct{ Findings []finding }
	// Behind the object there may be what it says on standard error.
	if err := json.NewDecoder(strings.NewReader(strings.Join(lines, "\n"))).Decode(&report); err != nil {
		return fmt.Errorf("what doctor says: %w: %q", err, lines)
	}
	var errs []error
	found := slices.DeleteFunc(slices.Clone(report.Findings), func(f finding) bool { return f.Severity != "failure" })
	for _, w := range want {
		i := slices.IndexFunc(found, func(f finding) bool { return f.Check == w.check })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("doctor has not found that %s is a failure", w.check))
		case !strings.Contains(found[i].Remedy, w.remedy):
			errs = append(errs, fmt.Errorf("doctor does not name %q for %s: %q", w.remedy, w.check, found[i].Remedy))
		}
		if i >= 0 {
			found = slices.Delete(found, i, i+1)
		}
	}
	for _, f := range found {
		errs = append(errs, fmt.Errorf("doctor finds that %s is a failure too: %s", f.Check, f.Text))
	}
	return errors.Join(errs...)
}

// What doctor names, piece by piece.
const (
	modeOn     = "echo 1 | sudo tee /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
	mode       = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
	reload     = "modprobe -r vfio-platform && sudo modprobe vfio-platform reset_required=0"
	giveIt     = "stmmacctl bind platform:" + device
	hugePagesN = "/proc/sys/vm/nr_hugepages"
)

// Drivers of the second GMAC.
const (
	kernelDriver = "stmmaceth"
	vfioDriver   = "vfio-platform"
)

// isWith wants the device to be with a driver.
func (h *Host) isWith(ctx context.Context, driver string) error {
	l, err := do(ctx, h, jobs.ReadLink{Path: "/sys/bus/platform/devices/" + device + "/driver"})
	if err == nil && filepath.Base(l) != driver {
		err = fmt.Errorf("%s is with the driver %s and not with %s", device, filepath.Base(l), driver)
	}
	return err
}

// refuses wants stmmacctl bind to fail with a text, and to leave the device with the kernel.
func (h *Host) refuses(ctx context.Context, user uint32, text string) error {
	lines, err := h.runAs(ctx, user, 1, "stmmacctl", "bind", address)
	if err == nil && !strings.Contains(strings.Join(lines, "\n"), text) {
		err = fmt.Errorf("stmmacctl bind does not say %q: %q", text, lines)
	}
	return errors.Join(err, h.isWith(ctx, kernelDriver))
}

// nobody is a user without rights.
const nobody = 65534

// withoutVFIO: nothing of VFIO is there.
func withoutVFIO(ctx context.Context, h *Host) error {
	return errors.Join(
		h.doctor(ctx, 0, lack{"vfio", "modprobe vfio-platform reset_required=0"}, lack{"vfio-platform", "modprobe vfio-platform reset_required=0"},
			lack{"iommu", "modprobe vfio enable_unsafe_noiommu_mode=1"}, lack{"driver", giveIt}, lack{"group", "enable_unsafe_noiommu_mode=1"}),
		h.refuses(ctx, 0, "load it: `sudo modprobe vfio-platform reset_required=0`"))
}

// asLoaded: the modules are loaded as modprobe does it, without parameters.
func asLoaded(ctx context.Context, h *Host) error {
	if err := h.guest.Load(ctx, h.vfio, nil); err != nil {
		return err
	}
	return errors.Join(
		h.doctor(ctx, 0, lack{"iommu", modeOn}, lack{"driver", giveIt}, lack{"group", modeOn}, lack{"reset", reload}),
		h.refuses(ctx, 0, reload))
}

// modeOff: vfio-platform takes a device without a reset, and noiommu mode is off.
func modeOff(ctx context.Context, h *Host) error {
	if _, err := do(ctx, h, jobs.Unload{Module: "vfio_platform"}); err != nil {
		return err
	}
	// It is the last, as all others are for it.
	if err := h.guest.Load(ctx, h.vfio[len(h.vfio)-1:], map[string]string{"vfio_platform": "reset_required=0"}); err != nil {
		return err
	}
	return errors.Join(
		h.doctor(ctx, 0, lack{"iommu", modeOn}, lack{"driver", giveIt}, lack{"group", modeOn}),
		h.refuses(ctx, 0, "noiommu mode is off"))
}

// unbound: only the driver is another one.
func unbound(ctx context.Context, h *Host) error {
	if err := h.write(ctx, mode, "1"); err != nil {
		return err
	}
	return errors.Join(
		h.doctor(ctx, 0, lack{"driver", giveIt}),
		h.doctor(ctx, nobody, lack{"driver", giveIt}, lack{"noiommu", "sudo"}),
		h.refuses(ctx, nobody, "do it as root"))
}

// bound: stmmacctl gives the device to VFIO, and all is well.
func bound(ctx context.Context, h *Host) error {
	lines, err := h.run(ctx, 0, "stmmacctl", "bind", address)
	if err != nil {
		return err
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"platform:" + device + ": with vfio-platform, opened by /dev/vfio/noiommu-0", "noiommu mode"} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("stmmacctl bind does not say %q: %q", want, text)
		}
	}
	return errors.Join(h.isWith(ctx, vfioDriver), h.doctor(ctx, 0), h.works(ctx))
}

// works wants stmmacctl to see the link of the device.
func (h *Host) works(ctx context.Context) error {
	lines, err := h.run(ctx, 0, "stmmacctl", "stats", address)
	if err == nil && !strings.Contains(strings.Join(lines, "\n"), "link 1000 Mbit/s full duplex") {
		err = fmt.Errorf("there is no link: %q", lines)
	}
	return err
}

// notRoot: a user has neither the node nor the rights.
func notRoot(ctx context.Context, h *Host) error {
	err := h.doctor(ctx, nobody, lack{"noiommu", "sudo"}, lack{"node", "udevadm"})
	lines, failed := h.runAs(ctx, nobody, 2, "stmmacctl", "stats", address)
	if text := strings.Join(lines, "\n"); failed == nil && !strings.Contains(text, "run as root") {
		failed = fmt.Errorf("stmmacctl stats of a user does not say what to do: %q", text)
	}
	return errors.Join(err, failed)
}

// noHugePages: nothing is set apart for the device.
func noHugePages(ctx context.Context, h *Host) error {
	if err := h.write(ctx, hugePagesN, "0"); err != nil {
		return err
	}
	err := h.doctor(ctx, 0, lack{"hugepages", "sysctl vm.nr_hugepages"})
	lines, failed := h.run(ctx, 2, "stmmacctl", "stats", address)
	if text := strings.Join(lines, "\n"); failed == nil && !strings.Contains(text, "sysctl vm.nr_hugepages") {
		failed = fmt.Errorf("stmmacctl stats without huge pages does not say what to do: %q", text)
	}
	err = errors.Join(err, failed, h.write(ctx, hugePagesN, fmt.Sprint(hugePages)))
	if err != nil {
		return err
	}
	note.Printf(ctx, "%d pages are set apart again", hugePages)
	return errors.Join(h.doctor(ctx, 0), h.works(ctx))
}

// given: stmmacctl gives the device back to the kernel and takes it again.
func given(ctx context.Context, h *Host) error {
	for range 2 {
		if _, err := h.run(ctx, 0, "stmmacctl", "unbind", address); err != nil {
			return err
		}
		if err := errors.Join(h.isWith(ctx, kernelDriver), h.doctor(ctx, 0, lack{"driver", giveIt})); err != nil {
			return err
		}
		// By its name in the network, too.
		name, err := h.interfaceOf(ctx, farMAC)
		if err != nil {
			return err
		}
		if _, err := h.run(ctx, 0, "stmmacctl", "bind", name); err != nil {
			return err
		}
		if err := h.isWith(ctx, vfioDriver); err != nil {
			return err
		}
	}
	return h.works(ctx)
}

// inUse: a device that a process drives is not taken away, and doctor names the process.
func inUse(ctx context.Context, h *Host) error {
	p := h.start(ctx, 0, "station", traffic{mtu: 1500}.args("reflect")...)
	if _, err := p.await(ctx, jobs.Ready); err != nil {
		return err
	}
	beside := func(args ...string) (jobs.ProgramEnd, error) {
		return do(ctx, h, jobs.Program{Path: "/bin/stmmacctl", Args: args, Keep: true})
	}
	r, err := beside("-json", "doctor", address)
	if err == nil && (r.Code != 1 || !strings.Contains(r.Output, "/dev/vfio/noiommu-0 is in use") || !strings.Contains(r.Output, "(station)")) {
		err = fmt.Errorf("doctor does not say who has the device: %+v", r)
	}
	taken, failed := beside("unbind", address)
	if failed == nil && taken.Code != 1 {
		failed = fmt.Errorf("unbind of a device in use: exit status %d", taken.Code)
	}
	return errors.Join(err, failed, h.isWith(ctx, vfioDriver), p.stop(ctx))
}
