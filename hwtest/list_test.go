//go:build hwtest

package hwtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// test is a hardware test: its name, what it needs, and what it does.
type test struct {
	name  string
	needs []need
	run   func(r *rig)
}

// need is something without which a test is skipped.
type need struct {
	what   string // for -list
	reason func(e *environment) string
}

// core is a feature of the device, by its feature registers or its description.
func core(what string, has func(e *environment) bool) need {
	return need{what, func(e *environment) string {
		if has(e) {
			return ""
		}
		return "the core has no " + what
	}}
}

// feature is a feature of the core by its feature registers.
func feature(what string, has func(f *stmmac.Features) bool) need {
	return core(what, func(e *environment) bool { return has(&e.features) })
}

// can is an ability of the peer.
func can(a peer.Ability) need {
	return need{"a peer with an " + string(a), func(e *environment) string {
		if e.peer.Can(a) {
			return ""
		}
		return "the peer has no " + string(a)
	}}
}

// process is one that can be killed without harm: it is not this one, and its device
// cannot reach memory that it has left.
func process() need {
	return need{"a process to kill", func(e *environment) string {
		if e.isProcess() || !e.protected() {
			return "no process to kill"
		}
		return ""
	}}
}

// firstOfGMAC4 is the version of the first core with descriptors of GMAC4.
const firstOfGMAC4 = 0x40

// driven is a feature that the driver uses on a core from GMAC4 on, and not on GMAC 3.x.
func driven(what string) need {
	return need{what, func(e *environment) string {
		if e.features.Version >= firstOfGMAC4 {
			return ""
		}
		return "the driver has no " + what + " of GMAC 3.x yet"
	}}
}

func phyNeed() need { return core("PHY", func(e *environment) bool { return e.phy }) }

func mdioNeed() need {
	return feature("management interface", func(f *stmmac.Features) bool { return f.MDIO })
}

func mmcNeed() need { return feature("counters", func(f *stmmac.Features) bool { return f.MMC }) }

// missing are the tests of Linux's self-tests and of further features for which the
// driver has no code. A core that lacks the feature is the first reason.
func missing() (list []test) {
	always := func(*stmmac.Features) bool { return true }
	for _, m := range []struct {
		name, what string
		has        func(f *stmmac.Features) bool
		judge      limit
	}{
		{"eee", "EEE", func(f *stmmac.Features) bool { return f.EEE }, energy},
		{"rss", "RSS", always, rss},
		{"flexible-parser", "flexible receive parser", func(f *stmmac.Features) bool { return f.FlexibleParser }, ""},
		{"sa-insertion-descriptor", "source address insertion by descriptor", func(f *stmmac.Features) bool { return f.AddressInsert }, ""},
		{"sa-replacement-descriptor", "source address replacement by descriptor", func(f *stmmac.Features) bool { return f.AddressInsert }, ""},
		{"sa-insertion-register", "source address insertion by register", func(f *stmmac.Features) bool { return f.AddressInsert }, ""},
		{"sa-replacement-register", "source address replacement by register", func(f *stmmac.Features) bool { return f.AddressInsert }, ""},
		{"vlan/filter-svlan", "S-VLAN filter", func(f *stmmac.Features) bool { return f.DoubleVLAN }, ""},
		{"vlan/filter-svlan-perfect", "perfect S-VLAN filter", func(f *stmmac.Features) bool { return f.DoubleVLAN }, ""},
		{"l3/destination", "L3 destination filter", l3l4, ""},
		{"l3/source", "L3 source filter", l3l4, ""},
		{"l4/destination-tcp", "L4 destination filter for TCP", l3l4, ""},
		{"l4/source-tcp", "L4 source filter for TCP", l3l4, ""},
		{"l4/destination-udp", "L4 destination filter for UDP", l3l4, ""},
		{"l4/source-udp", "L4 source filter for UDP", l3l4, ""},
		{"arp-offload", "ARP offload", func(f *stmmac.Features) bool { return f.ARPOffload }, ""},
		{"split-header", "split header", func(f *stmmac.Features) bool { return f.SplitHeader }, ""},
		{"launch-time", "time based scheduling", func(f *stmmac.Features) bool { return f.TimeBasedScheduling }, ""},
		{"tso", "TSO", func(f *stmmac.Features) bool { return f.TSO }, ""},
		{"ptp/timestamps", "timestamps", func(f *stmmac.Features) bool { return f.Timestamps }, ""},
		{"ptp/pps", "PPS output", func(f *stmmac.Features) bool { return f.PPSOutputs > 0 }, ""},
		{"ptp/aux-snapshots", "auxiliary snapshots", func(f *stmmac.Features) bool { return f.AuxSnapshots > 0 }, ""},
		{"tc/cbs", "credit based shaper", func(f *stmmac.Features) bool { return f.AV }, ""},
		{"tc/est", "EST", func(f *stmmac.Features) bool { return f.EST }, ""},
		{"tc/preemption", "frame preemption", func(f *stmmac.Features) bool { return f.FramePreemption }, ""},
		{"wake/magic", "wake by magic packet", func(f *stmmac.Features) bool { return f.WakeMagic }, wakeUp},
		{"wake/frame", "wake by frame filter", func(f *stmmac.Features) bool { return f.WakeFrame }, wakeUp},
		{"safety", "safety features", func(f *stmmac.Features) bool { return f.SafetyFeatures > 0 }, ""},
		{"pcs", "PCS", func(f *stmmac.Features) bool { return f.PCS }, ""},
	} {
		driver := need{"a driver with " + m.what, func(*environment) string { return "the driver has no " + m.what + " yet" }}
		needs := []need{feature(m.what, m.has)}
		if m.judge != "" {
			needs = append(needs, modelled(m.judge))
		}
		list = append(list, test{m.name, append(needs, driver), nil})
	}
	return list
}

func l3l4(f *stmmac.Features) bool { return f.L3L4Filters > 0 }

// list are all tests, in the order in which they run.
func list() []test {
	return slices.Concat(identifyTests(), phyTests(), linkTests(), frameTests(), ringTests(), vectorTests(), moderationTests(),
		jumboTests(), filterTests(), vlanTests(), checksumTests(), counterTests(), mtuTests(), restartTests(), killTests(), missing())
}

func printList(w io.Writer) {
	for _, t := range list() {
		var needs []string
		for _, n := range t.needs {
			needs = append(needs, n.what)
		}
		fmt.Fprintf(w, "%-34s %s\n", t.name, strings.Join(needs, "; "))
	}
}

// TestHardware runs the list.
func TestHardware(t *testing.T) {
	f := &given
	rep, err := newReport(f)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rep.finish(); err != nil {
			t.Error(err)
		}
	}()
	e, err := newEnvironment(interruptible(t), f)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error("give the device back: ", err)
		}
	}()
	all := true
	for _, x := range list() {
		if e.ctx.Err() != nil {
			t.Error("the run was ended: ", context.Cause(e.ctx))
			break
		}
		res, ran := e.run(t, x)
		if !ran {
			all = false
			continue
		}
		if err := rep.add(res); err != nil {
			t.Error(err)
		}
	}
	if all && !t.Failed() {
		if err := checkSkips(f, rep.skips()); err != nil {
			t.Error(err)
		}
	}
}

// run runs a test, or skips it for the first need that is not there. It does not run
// where go test -run names others.
func (e *environment) run(t *testing.T, x test) (res result, ran bool) {
	res = result{Name: x.name, Result: "passed"}
	start := time.Now()
	s := &shared{figures: map[string]any{}}
	var skipped bool
	ok := t.Run(x.name, func(t *testing.T) {
		ran = true
		defer func() { skipped = t.Skipped() }()
		// A test that panics must not keep the device from going back.
		defer func() {
			if p := recover(); p != nil {
				s.reason = fmt.Sprint("panic: ", p)
				t.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		if e.handle == nil { // the test before could not open it again
			if err := e.open(); err != nil {
				s.reason = err.Error()
				t.Fatal(err)
			}
		}
		for _, n := range x.needs {
			if s.reason = n.reason(e); s.reason != "" {
				t.Skip(s.reason)
			}
		}
		r := &rig{T: t, env: e, shared: s}
		defer r.close()
		x.run(r)
	})
	res.Seconds, res.Figures, res.Reason = time.Since(start).Round(time.Millisecond).Seconds(), s.figures, s.reason
	switch {
	case !ok:
		res.Result = "failed"
	case skipped:
		res.Result = "skipped"
	}
	return res, ran
}

// checkSkips compares the tests that were skipped with those that are to be. For the
// simulated device of each generation with all that the model has they are known, and for
// the GMACs of QEMU.
func checkSkips(f *flags, got string) error {
	name := f.skips
	if name == "" {
		a, err := bus.Parse(f.device)
		switch {
		case err != nil:
			return err
		case a.Scheme == "sim" && len(a.Params) == 0 && f.peer == "sim":
			name = a.Location
		case a.Scheme == scheme.Qtest && f.peer == "qtest":
			name = "qtest"
		default:
			return nil
		}
		name = filepath.Join("skips", name+".txt")
	}
	if f.update {
		return os.WriteFile(name, []byte(got), 0o666)
	}
	want, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if d := cmp.Diff(string(want), got); d != "" {
		return fmt.Errorf("other tests were skipped than %s says (-want +got):\n%s", name, d)
	}
	return nil
}
