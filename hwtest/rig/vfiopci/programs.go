package vfiopci

import (
	"context"
	"path/filepath"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
)

const (
	module = "github.com/gostmmac/gostmmac"
	goarch = "amd64" // of the guests
)

// Programs are what the guests run.
type Programs struct {
	init  string
	bin   map[string]string // files by the names that guests have for them
	skips string            // the file with the hardware tests that are left out
}

// Names of programs in a guest.
const stationBin, forwarderBin, controlBin, hwtestBin = "station", "forwarder", "stmmacctl", "hwtest"

// Build builds them in a folder, which takes the go command and a checkout of the module, of
// which source is the folder hwtest.
func Build(ctx context.Context, dir, source string) (*Programs, error) {
	p := &Programs{init: filepath.Join(dir, "init"), bin: map[string]string{}, skips: filepath.Join(source, "skips", "vfio-pci.txt")}
	if err := guest.Build(ctx, goarch, p.init, module+"/hwtest/rig/guest/init"); err != nil {
		return nil, err
	}
	for name, pkg := range map[string]string{stationBin: "/hwtest/rig/vfiopci/station", forwarderBin: "/examples/forwarder", controlBin: "/examples/stmmacctl"} {
		p.bin[name] = filepath.Join(dir, name)
		if err := guest.Build(ctx, goarch, p.bin[name], module+pkg); err != nil {
			return nil, err
		}
	}
	p.bin[hwtestBin] = filepath.Join(dir, hwtestBin)
	return p, guest.BuildTest(ctx, goarch, p.bin[hwtestBin], module+"/hwtest", "-tags", "hwtest", "-ldflags=-s -w")
}
