package jobs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// System asks what runs: the kernel and its modules.
type System struct{ returns[SystemInfo] }

// SystemInfo is the result of System.
type SystemInfo struct {
	Version     string   // /proc/version
	CommandLine string   // of the kernel
	Modules     []string // those that are loaded, sorted
}

// Name implements Job.
func (System) Name() string { return "system" }

func (System) run(run) (any, error) {
	version, err1 := os.ReadFile("/proc/version")
	line, err2 := os.ReadFile("/proc/cmdline")
	modules, err3 := os.ReadFile("/proc/modules")
	if errors.Is(err3, os.ErrNotExist) {
		err3 = nil // a kernel that takes no modules
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	i := SystemInfo{Version: strings.TrimSpace(string(version)), CommandLine: strings.TrimSpace(string(line))}
	for l := range strings.Lines(string(modules)) {
		name, _, _ := strings.Cut(l, " ")
		i.Modules = append(i.Modules, name)
	}
	slices.Sort(i.Modules)
	return i, nil
}

// PowerOff ends the guest, so an answer only comes when it could not.
type PowerOff struct{ returns[None] }

// Name implements Job.
func (PowerOff) Name() string { return "power off" }

func (PowerOff) run(r run) (any, error) {
	if r.w.PowerOff == nil {
		return nil, fmt.Errorf("this world does not end: %w", errors.ErrUnsupported)
	}
	return None{}, r.w.PowerOff()
}
