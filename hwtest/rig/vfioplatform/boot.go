package vfioplatform

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// Machine is what a boot needs.
type Machine struct {
	Tree   *debian.Tree
	Kernel *kernel.Kernel // for arm64
	Dir    string         // a folder for programs and logs, which is there
	// Skips is the file with the hardware tests that QEMU's GMAC cannot do.
	Skips string
}

// Host is a guest that runs.
type Host struct {
	guest *guest.Guest
	// drivers are the modules of the kernel's driver of the MAC, vfio those of VFIO.
	drivers, vfio []kernel.Module
	near          string        // the kernel's interface of the first GMAC
	ready         chan struct{} // a job is ready for what it waits for

	mu      sync.Mutex // guards what follows
	program *program   // the one that runs, nil for none
}

// The two GMACs: the first one stays with the kernel.
const (
	nearMAC = "02:00:00:00:00:01"
	farMAC  = "02:00:00:00:00:02"
	device  = "f0804000.ethernet"
	// address is that of the second, as all programs take it.
	address = "platform:" + device + ",csr=125000000,iommu=noiommu"
	nearIP  = "10.77.0.1"
	farIP   = "10.77.0.2"
)

// hugePages are set apart for the driver, 2 MiB each.
const hugePages = 32

// arch is the architecture of the guest, in Debian's and Go's words.
const arch = "arm64"

// programs are those of this module that run in the guest, by name.
var programs = map[string]string{
	"stmmacctl": "github.com/gostmmac/gostmmac/examples/stmmacctl",
	"echo":      "github.com/gostmmac/gostmmac/examples/echo",
	"station":   "github.com/gostmmac/gostmmac/hwtest/rig/vfioplatform/station",
}

const (
	hardwareTests = "github.com/gostmmac/gostmmac/hwtest"
	hardwareName  = "hwtest"
	skipsName     = "skips.txt"
)

// Build builds the programs in the folder of the machine, which takes the go command and
// the module's source.
func (m Machine) Build(ctx context.Context) error {
	for name, pkg := range programs {
		if err := guest.Build(ctx, arch, filepath.Join(m.Dir, name), pkg); err != nil {
			return err
		}
	}
	return guest.BuildTest(ctx, arch, filepath.Join(m.Dir, hardwareName), hardwareTests, "-tags", "hwtest", "-ldflags=-s -w")
}

// Start boots the guest, with the kernel's driver on both GMACs and without VFIO. The programs
// were built. The caller closes the guest.
func Start(ctx context.Context, m Machine) (_ *Host, err error) {
	h := &Host{ready: make(chan struct{}, 1)}
	if h.drivers, err = m.Kernel.Load(nil, "dwmac-generic", "8021q"); err != nil {
		return nil, err
	}
	if h.vfio, err = m.Kernel.Load([]string{kernel.VFIO}, "vfio-platform"); err != nil {
		return nil, err
	}
	all := slices.Clone(h.drivers)
	for _, v := range h.vfio {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	files := map[string]string{hardwareName: filepath.Join(m.Dir, hardwareName), skipsName: m.Skips}
	for name := range programs {
		files[name] = filepath.Join(m.Dir, name)
	}
	h.guest, err = guest.Boot(ctx, guest.Config{
		Tree: m.Tree, Kernel: m.Kernel, Dir: m.Dir, Modules: all, Programs: files, Args: guest.BackToBack(), Log: h.log,
		CommandLine: fmt.Sprintf("hugepagesz=2M hugepages=%d", hugePages),
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.guest.Load(ctx, h.drivers, nil); err != nil {
		return nil, err
	}
	if h.near, err = h.interfaceOf(ctx, nearMAC); err != nil {
		return nil, err
	}
	return h, h.setNear(ctx, 1500)
}

// log takes the lines of jobs.
func (h *Host) log(job, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case job == (jobs.Program{}).Name() && h.program != nil:
		h.program.say(line)
	case job == (jobs.Reflect{}).Name() && line == jobs.Ready:
		h.ready <- struct{}{} // one at a time is
	}
}

// interfaceOf is the interface with a MAC address.
func (h *Host) interfaceOf(ctx context.Context, mac string) (string, error) {
	all, err := do(ctx, h, jobs.Interfaces{})
	if err != nil {
		return "", err
	}
	for _, i := range all {
		if i.HardwareAddr == mac {
			return i.Name, nil
		}
	}
	return "", fmt.Errorf("no interface has the address %s: %+v", mac, all)
}

// setNear brings the kernel's end of the cable up with an MTU and its address.
func (h *Host) setNear(ctx context.Context, mtu int) error {
	_, err := do(ctx, h, jobs.Configure{Interface: h.near, Down: true, Up: true, MTU: mtu})
	if err != nil {
		return err
	}
	i, err := do(ctx, h, jobs.Interfaces{})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(i, func(i jobs.Interface) bool { return i.Name == h.near })
	if at >= 0 && !slices.Contains(i[at].Addresses, nearIP+"/24") {
		if _, err := do(ctx, h, jobs.Configure{Interface: h.near, Up: true, Addresses: []string{nearIP + "/24"}}); err != nil {
			return err
		}
	}
	_, err = do(ctx, h, jobs.WaitInterface{Interface: h.near, Running: true})
	return err
}

// Close ends the guest. It returns what the guest's kernel said that tells of a bug.
func (h *Host) Close() error {
	err := h.guest.Close()
	for _, line := range h.guest.Warnings() {
		err = errors.Join(err, fmt.Errorf("the kernel of the guest says: %s", line))
	}
	return err
}

// do does a job in the guest.
func do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return guest.Do(ctx, h.guest, j)
}

// write writes to a file of the guest.
func (h *Host) write(ctx context.Context, file, text string) error {
	_, err := do(ctx, h, jobs.WriteFile{Path: file, Text: text})
	return err
}
