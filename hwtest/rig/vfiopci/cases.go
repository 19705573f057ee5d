package vfiopci

import (
	"context"
	"time"
)

// Case is what is done with a guest that was started, in the order of the list.
type Case struct {
	Name string
	Run  func(ctx context.Context, h *Host) error
}

// Guard is how long a case may take: far more than it needs.
const Guard = 5 * time.Minute

// part are the hardware tests of a boot that does not run all. A process is killed only where
// an IOMMU keeps its device from what it leaves behind.
const (
	part     = "(identify|phy|frames|rings|restart)/"
	partKill = "(identify|phy|frames|rings|restart|kill)/"
)

// queues are those of several queues.
const queues = "(queues|vectors|jumbo)/"

// Cases returns the list of a boot.
func (b *Boot) Cases() []Case {
	all := []Case{{"doctor without VFIO", noVFIO}, {"doctor without a driver", noDriver}}
	if !b.iommu {
		all = append(all, Case{"doctor without an IOMMU", noIOMMU})
	}
	all = append(all, Case{"bind", bind})
	for _, k := range kinds() {
		all = append(all, Case{k.name + ": frames both ways by interrupt", func(ctx context.Context, h *Host) error { return h.exchange(ctx, k) }})
	}
	tests := part
	switch {
	case b.full:
		tests = ""
	case b.iommu:
		tests = partKill
	}
	all = append(all, Case{"MSI-X: hardware tests", func(ctx context.Context, h *Host) error { return h.hardware(ctx, msix, tests) }})
	if b.full {
		all = append(all, Case{"MSI: hardware tests of queues", func(ctx context.Context, h *Host) error { return h.hardware(ctx, msi, queues) }})
	}
	all = append(all,
		Case{"forwarder in one domain", func(ctx context.Context, h *Host) error { return h.forward(ctx, false) }},
		Case{"forwarder in two domains", func(ctx context.Context, h *Host) error { return h.forward(ctx, true) }},
		Case{"kill -9 in mid-traffic", kill},
		Case{"forwarder after that", func(ctx context.Context, h *Host) error { return h.forward(ctx, false) }},
	)
	if b.iommu {
		all = append(all, Case{"a fault of the IOMMU", fault}, Case{"MSI-X: frames after that", func(ctx context.Context, h *Host) error { return h.exchange(ctx, kinds()[0]) }},
			Case{"an unprivileged user", user})
	}
	if b.full {
		all = append(all, Case{"from the kernel's driver and back", home})
	}
	return all
}
