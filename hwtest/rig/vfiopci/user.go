package vfiopci

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
)

// Somebody without privileges, and limits of locked memory: of which a MAC does not have
// enough, and of which two have.
const (
	uid, gid     = 1000, 1000
	tooLittle    = 64 << 10
	enough       = 256 << 20
	ownerAndSome = 0o660
)

// user drives two cards without any privilege: with the rights of a group and room for
// locked memory, and first without each of these.
func user(ctx context.Context, h *Host) error {
	const card, frames = msix, 64
	somebody := &jobs.User{UID: uid, GID: gid, Memlock: enough}
	f, err := h.refused(ctx, somebody, h.stationArgs(card, frames)...)
	if err != nil {
		return err
	}
	if !f.Permission || f.Device != cards.Place(card) || !strings.HasPrefix(f.Call, "open /dev/") || f.Remedy == "" {
		return fmt.Errorf("without the rights: %+v", f)
	}
	note.Printf(ctx, "without rights: %s: %s", f.Call, f.Remedy)
	for _, node := range h.nodes(ctx, card) {
		// The last one completes them.
		if _, err := h.doctor(ctx, somebody, card, "node"); err != nil {
			return err
		}
		if _, err := do(ctx, h, jobs.Permit{Path: node, GID: gid, Mode: ownerAndSome}); err != nil {
			return err
		}
	}
	limited := &jobs.User{UID: uid, GID: gid, Memlock: tooLittle}
	if f, err = h.refused(ctx, limited, h.stationArgs(card, frames)...); err != nil {
		return err
	}
	if !f.Memlock || f.Remedy == "" {
		return fmt.Errorf("with %d bytes of locked memory: %+v", tooLittle, f)
	}
	note.Printf(ctx, "with %d KiB of locked memory: %s", tooLittle>>10, f.Remedy)
	r, err := h.doctor(ctx, limited, card)
	if err == nil {
		err = warned(r, "memlock")
	}
	if err != nil {
		return err
	}
	if _, err := h.doctor(ctx, somebody, card); err != nil {
		return err
	}
	var e said.Exchange
	if err := h.station(ctx, somebody, &e, card, frames); err != nil {
		return err
	}
	note.Printf(ctx, "%d frames by user %d", e.Frames, uid)
	return h.audit()
}

// nodes are the device nodes that two cards are opened by, the ones of the first card last.
func (h *Host) nodes(ctx context.Context, card int) (all []string) {
	for _, one := range []int{card + 1, card} {
		dir := "/sys/bus/pci/devices/" + cards.Place(one)
		if h.boot.backend != "iommufd" {
			group, err := do(ctx, h, jobs.ReadLink{Path: dir + "/iommu_group"})
			if err != nil {
				continue // opening the card tells
			}
			all = append(all, "/dev/vfio/"+path.Base(group))
			continue
		}
		names, err := do(ctx, h, jobs.List{Path: dir + "/vfio-dev"})
		if err != nil {
			continue // the same
		}
		for _, n := range names {
			all = append(all, "/dev/vfio/devices/"+n)
		}
	}
	if h.boot.backend == "iommufd" {
		// Without it those of the cards are of no use.
		all = append(all, "/dev/iommu")
	}
	return all
}
