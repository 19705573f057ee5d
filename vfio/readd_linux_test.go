package vfio_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

const (
	sleeper    = "0000:03:00.0"
	sleeperDir = "sys/bus/pci/devices/" + sleeper
	autoprobe  = "sys/bus/pci/drivers_autoprobe"
)

// sleepy is a card whose kernel driver leaves its runtime power management off.
func sleepy(t *testing.T, k *vfiotest.Kernel) *vfiotest.Device {
	p := card(sleeper, 7)
	p.Driver, p.PMOff = p.Native, true
	return addPCI(t, k, p)
}

func attribute(t *testing.T, k vfio.Kernel, name string) string {
	t.Helper()
	b, err := fs.ReadFile(k.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestBindAsleep: a function that its driver leaves with its runtime power management off is
// found anew, so that it can be opened; it goes back as always.
func TestBindAsleep(t *testing.T) {
	for _, probe := range []string{"1", "0"} {
		for _, cfg := range []vfiotest.Config{{Type1: true}, {IOMMUFD: true}} {
			k := newKernel(t, cfg)
			d := sleepy(t, k)
			other := addPCI(t, k, card("0000:04:00.0", 8))
			must(t, k.WriteFile(autoprobe, probe))
			b, err := vfio.Bind(t.Context(), k, sleeper)
			if err != nil {
				t.Fatal(err)
			}
			if b.Info.Driver != "vfio-pci" || b.Info.Override != "vfio-pci" || d.Driver() != "vfio-pci" || other.Driver() != "vfio-pci" {
				t.Errorf("%+v", b.Info)
			}
			must(t, open(t, k, sleeper).Close())
			must(t, b.Restore())
			if d.Driver() != "dwmac-motorcomm" || attribute(t, k, sleeperDir+"/driver_override") != "(null)" {
				t.Errorf("it is with %q afterwards", d.Driver())
			}
			if got := attribute(t, k, autoprobe); got != probe {
				t.Errorf("drivers_autoprobe is %s afterwards, and was %s", got, probe)
			}
		}
	}
}

// unbound takes the card from its driver without Bind, as scripts do; with vfio it goes to
// VFIO.
func unbound(t *testing.T, k *vfiotest.Kernel, vfio bool) {
	t.Helper()
	must(t, k.WriteFile(sleeperDir+"/driver/unbind", sleeper))
	if vfio {
		must(t, k.WriteFile(sleeperDir+"/driver_override", "vfio-pci"))
		must(t, k.WriteFile("sys/bus/pci/drivers_probe", sleeper))
	}
}

// TestOpenAsleep: one that somebody else took from that driver says what to do, and so does
// Explain, and that helps.
func TestOpenAsleep(t *testing.T) {
	for _, with := range []bool{false, true} {
		for _, cfg := range []vfiotest.Config{{Type1: true}, {IOMMUFD: true}} {
			k := newKernel(t, cfg)
			d := sleepy(t, k)
			unbound(t, k, with)
			const remedy = "stmmacctl bind pci:" + sleeper
			if with {
				_, err := vfio.Open(t.Context(), sleeper, vfio.WithKernel(k))
				mustFail(t, err, unix.EACCES, "runtime power management", remedy)
			}
			r, err := vfio.Explain(k, sleeper)
			if err != nil {
				t.Fatal(err)
			}
			said := false
			for _, f := range r.Findings {
				said = said || f.Check == "power" && f.Severity == vfio.Failure && strings.Contains(f.Remedy, remedy)
			}
			if !said {
				t.Errorf("Explain says nothing of it: %+v", r.Findings)
			}
			b, err := vfio.Bind(t.Context(), k, sleeper)
			if err != nil {
				t.Fatal(err)
			}
			must(t, open(t, k, sleeper).Close())
			must(t, b.Restore())
			// Who had it with VFIO has it so still.
			if want := map[bool]string{false: "", true: "vfio-pci"}[with]; d.Driver() != want {
				t.Errorf("it is with %q afterwards, want %q", d.Driver(), want)
			}
		}
	}
}

// TestBindAsleepFails: what cannot be done is said, and drivers are looked for again.
func TestBindAsleepFails(t *testing.T) {
	for _, c := range []struct {
		after int // writes that succeed
		what  string
	}{{1, "drivers_autoprobe"}, {2, "remove"}, {3, "rescan"}, {5, "driver_override"}} {
		what := c.what
		k := newKernel(t, vfiotest.Config{})
		d := sleepy(t, k)
		unbound(t, k, false)
		for range c.after {
			k.FailNext("write", nil)
		}
		k.FailNext("write", unix.EPERM)
		_, err := vfio.Bind(t.Context(), k, sleeper)
		mustFail(t, err, os.ErrPermission, what)
		if got := attribute(t, k, autoprobe); got != "1" {
			t.Errorf("%s: drivers_autoprobe is %s afterwards", what, got)
		}
		if d.Driver() == "vfio-pci" {
			t.Errorf("%s: it is with VFIO", what)
		}
	}
	k := newKernel(t, vfiotest.Config{})
	sleepy(t, k)
	unbound(t, k, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := vfio.Bind(ctx, k, sleeper); !errors.Is(err, ctx.Err()) {
		t.Errorf("behind the end: %v", err)
	}
}
