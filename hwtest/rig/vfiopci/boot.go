package vfiopci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Machine is what a boot needs.
type Machine struct {
	Tree     *debian.Tree
	Kernel   *kernel.Kernel
	Dir      string // a folder for the logs of this boot, which is there
	Programs *Programs
}

// Host is a guest that runs, with its cards.
type Host struct {
	*cards.Host
	boot     *Boot
	programs *Programs
	// vfio and mac are the modules of VFIO, and those of the MAC.
	vfio, mac []kernel.Module
	ends      [2]*socket // of the cables of the generators
	audited   []int      // violations of each card that were looked at

	mu      sync.Mutex // guards what follows
	log     *os.File
	waiting []waiter
}

// waiter waits for a line of a program.
type waiter struct {
	line string
	came chan struct{}
}

// vfioModules are those of VFIO, and kernelDriver that of the MAC.
var vfioModules = []string{"vfio-pci", "vfio_iommu_type1"}

const kernelDriver = "dwmac-motorcomm"

// modules are all that the guest needs.
func (b *Boot) modules() []string {
	if b.full {
		return append(vfioModules[:len(vfioModules):len(vfioModules)], kernelDriver)
	}
	return vfioModules
}

// Start boots the guest. No module is loaded then. The caller closes it.
func (b *Boot) Start(ctx context.Context, m Machine) (_ *Host, err error) {
	h := &Host{boot: b, programs: m.Programs}
	all, ends := b.cards()
	h.ends = ends
	if h.log, err = os.Create(filepath.Join(m.Dir, "programs.log")); err != nil {
		return nil, err
	}
	h.Host, err = cards.Start(ctx, cards.Config{
		Guest: guest.Config{
			Tree: m.Tree, Kernel: m.Kernel, Dir: m.Dir, Init: m.Programs.init, Programs: m.Programs.bin, IOMMU: b.iommu, Log: h.said,
			// Without an IOMMU memory for devices is of huge pages.
			CommandLine: "hugepages=48",
		},
		Cards: all, Sets: b.sets, Modules: b.modules(),
	})
	if err != nil {
		return nil, errors.Join(err, h.log.Close())
	}
	h.audited = make([]int, len(h.Cards))
	if h.vfio, err = m.Kernel.Load(b.sets, vfioModules...); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.mac = slices.DeleteFunc(slices.Clone(h.Modules), func(m kernel.Module) bool { return slices.Contains(h.vfio, m) })
	for _, k := range kinds() {
		h.Join(k.card, k.card+1)
	}
	return h, nil
}

// Close ends the guest.
func (h *Host) Close() error { return errors.Join(h.Host.Close(), h.log.Close()) }

// said takes a line of a program.
func (h *Host) said(_, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintln(h.log, line)
	h.waiting = slices.DeleteFunc(h.waiting, func(w waiter) bool {
		if w.line == line {
			close(w.came)
		}
		return w.line == line
	})
}

// await returns a channel that is closed when a program with a tag has written a line.
func (h *Host) await(tag, line string) <-chan struct{} {
	w := waiter{tag + ": " + line, make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, w)
	return w.came
}

// do does a job in the guest.
func do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return cards.Do(ctx, h.Host, j)
}

// program runs a program of the guest to its end and returns what it wrote to standard
// output; the rest is in the log.
func (h *Host) program(ctx context.Context, as *jobs.User, name string, args ...string) (jobs.ProgramEnd, error) {
	return do(ctx, h, jobs.Program{Tag: name, Path: "/bin/" + name, Args: args, As: as, Keep: true, Dir: "/"})
}

// value runs a program that prints JSON and succeeds.
func (h *Host) value(ctx context.Context, as *jobs.User, v any, name string, args ...string) error {
	end, err := h.program(ctx, as, name, args...)
	if err != nil {
		return err
	}
	if end.Code != 0 {
		return fmt.Errorf("%s %s: exit status %d, signal %d: %s%s", name, strings.Join(args, " "), end.Code, end.Signal, end.Output, h.tail(name))
	}
	return decode(end.Output, v)
}

// refused runs station and returns why it failed.
func (h *Host) refused(ctx context.Context, as *jobs.User, args ...string) (*said.Failure, error) {
	end, err := h.program(ctx, as, stationBin, args...)
	if err != nil {
		return nil, err
	}
	if end.Code != 1 {
		return nil, fmt.Errorf("station %s: exit status %d instead of a failure: %s", strings.Join(args, " "), end.Code, end.Output)
	}
	f := new(said.Failure)
	return f, decode(end.Output, f)
}

func decode(text string, v any) error {
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("it printed %q: %w", text, err)
	}
	return nil
}

// tail is what a program said last.
func (h *Host) tail(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := os.ReadFile(h.log.Name())
	if err != nil {
		return err.Error()
	}
	const most = 10
	var lines []string
	for l := range strings.Lines(string(b)) {
		if strings.HasPrefix(l, name+": ") {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	return "\n" + strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// violations are those of a card since the last call: the driver broke a rule of the device.
func (h *Host) violations(card int) []sim.Violation {
	all := h.Cards[card].Model().Audit()
	fresh := all[min(h.audited[card], len(all)):]
	h.audited[card] = len(all)
	return fresh
}

// audit is the error of the violations of all cards that our driver has.
func (h *Host) audit() error {
	var errs []error
	for card := range ours {
		for _, v := range h.violations(card) {
			errs = append(errs, fmt.Errorf("the driver broke a rule of the card %s: %v", cards.Place(card), v))
		}
	}
	return errors.Join(errs...)
}
