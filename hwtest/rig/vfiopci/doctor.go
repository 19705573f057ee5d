package vfiopci

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/vfio"
)

// doctor runs stmmacctl doctor for a card. It wants failures of these checks and of no
// others, each with what to do about it; with none the exit status is 0.
func (h *Host) doctor(ctx context.Context, as *jobs.User, card int, want ...string) (*vfio.Report, error) {
	end, err := h.program(ctx, as, controlBin, "-json", "doctor", "pci:"+cards.Place(card))
	if err != nil {
		return nil, err
	}
	r := new(vfio.Report)
	if err := decode(end.Output, r); err != nil {
		return nil, err
	}
	failed := map[string]bool{}
	var texts []string
	for _, f := range r.Findings {
		if f.Severity != vfio.Failure {
			continue
		}
		failed[f.Check] = true
		texts = append(texts, f.Text)
		if f.Remedy == "" {
			err = errors.Join(err, fmt.Errorf("it does not say what to do about %s: %s", f.Check, f.Text))
		}
	}
	got := slices.Sorted(maps.Keys(failed))
	slices.Sort(want)
	if !slices.Equal(got, want) || end.Code == 0 != (len(want) == 0) {
		err = errors.Join(err, fmt.Errorf("doctor finds %q missing, want %q; exit status %d: %s", got, want, end.Code, strings.Join(texts, "; ")))
	}
	if len(want) == 0 {
		note.Printf(ctx, "nothing is missing")
	} else {
		note.Printf(ctx, "missing: %s", strings.Join(want, ", "))
	}
	return r, err
}

// warned says that a report warns of something, with what to do.
func warned(r *vfio.Report, check string) error {
	for _, f := range r.Findings {
		if f.Check == check && f.Severity == vfio.Warning && f.Remedy != "" {
			return nil
		}
	}
	return fmt.Errorf("doctor does not warn of %s: %+v", check, r.Findings)
}

// noVFIO is the machine before any module is loaded.
func noVFIO(ctx context.Context, h *Host) error {
	missing := []string{"vfio", "vfio-pci", "driver"}
	if !h.boot.iommu {
		missing = append(missing, "iommu", "group")
	}
	if _, err := h.doctor(ctx, nil, msix, missing...); err != nil {
		return err
	}
	end, err := h.program(ctx, nil, controlBin, "bind", "pci:"+cards.Place(msix))
	if err == nil && (end.Code == 0 || !strings.Contains(h.tail(controlBin), "modprobe vfio-pci")) {
		err = fmt.Errorf("bind without vfio-pci: exit status %d: %s", end.Code, h.tail(controlBin))
	}
	return err
}

// noDriver loads the modules: the cards are with no driver yet.
func noDriver(ctx context.Context, h *Host) error {
	if err := h.Guest.Load(ctx, h.vfio, nil); err != nil {
		return err
	}
	missing := []string{"driver"}
	if !h.boot.iommu {
		missing = append(missing, "iommu", "group")
	}
	_, err := h.doctor(ctx, nil, msix, missing...)
	return err
}

// noIOMMU is a machine without one before the mode without an IOMMU is switched on, and
// switches it on.
func noIOMMU(ctx context.Context, h *Host) error {
	end, err := h.program(ctx, nil, controlBin, "bind", "pci:"+cards.Place(msix))
	if err != nil {
		return err
	}
	if end.Code == 0 || !strings.Contains(h.tail(controlBin), "noiommu") {
		return fmt.Errorf("bind without an IOMMU: exit status %d: %s", end.Code, h.tail(controlBin))
	}
	if _, err := do(ctx, h, jobs.WriteFile{Path: "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", Text: "1"}); err != nil {
		return err
	}
	r, err := h.doctor(ctx, nil, msix, "driver")
	if err != nil {
		return err
	}
	return warned(r, "noiommu")
}

// bind gives the cards to VFIO: nothing is missing then.
func bind(ctx context.Context, h *Host) error {
	for card := range ours {
		if err := h.bind(ctx, card); err != nil {
			return err
		}
	}
	for _, card := range []int{msix, msi, intx} {
		if _, err := h.doctor(ctx, nil, card); err != nil {
			return err
		}
	}
	return nil
}

// bind gives a card to VFIO.
func (h *Host) bind(ctx context.Context, card int) error {
	var b struct{ Driver, Node string }
	if err := h.value(ctx, nil, &b, controlBin, "-json", "bind", "pci:"+cards.Place(card)); err != nil {
		return err
	}
	if b.Driver != "vfio-pci" {
		return fmt.Errorf("%s is with %q", cards.Place(card), b.Driver)
	}
	return nil
}
