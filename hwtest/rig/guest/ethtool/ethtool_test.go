package ethtool

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// pair returns one end of a cable, whose other end is up.
func pair(t *testing.T) (*netns.NS, *Interface) {
	t.Helper()
	n := netns.ForTest(t)
	if err := n.Pair("here", "there"); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this kernel has no veth: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := n.Up("there", 0); err != nil {
		t.Fatal(err)
	}
	return n, open1(t, n, "here")
}

func open1(t *testing.T, n *netns.NS, name string) (i *Interface) {
	t.Helper()
	err := n.Do(func() (err error) {
		i, err = Open(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func TestPair(t *testing.T) {
	netns.CheckLeaks(t)
	n, i := pair(t)
	if d, err := i.Driver(); d.Name != "veth" || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if l, err := i.Link(); l.Up || err != nil {
		t.Errorf("down: %+v, %v", l, err)
	}
	if err := n.Up("here", 0); err != nil {
		t.Fatal(err)
	}
	// veth says 10 Gbit/s, full duplex.
	if l, err := i.Link(); l != (Link{Up: true, Mbps: 10000, Full: true}) || err != nil {
		t.Errorf("up: %+v, %v", l, err)
	}
	s, err := i.Statistics()
	if v := s["peer_ifindex"]; v == 0 || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	f, err := i.Features()
	if !f["tx-scatter-gather"].Active || !f["tx-scatter-gather"].Available || len(f) < 30 || f[""] != (Feature{}) || err != nil {
		t.Errorf("%v, %v", f, err)
	}
	for _, on := range []bool{false, true} {
		if err := i.SetFeatures(map[string]bool{"tx-scatter-gather": on, "tx-checksum-ip-generic": true}); err != nil {
			t.Fatal(err)
		}
		if f, err := i.Features(); f["tx-scatter-gather"].Active != on || !f["tx-checksum-ip-generic"].Active || err != nil {
			t.Errorf("%v: %v, %v", on, f, err)
		}
	}
	if err := i.SetFeatures(map[string]bool{"no-such": true}); err == nil || !strings.Contains(err.Error(), `"no-such"`) {
		t.Errorf("%v", err)
	}
	if err := i.SetFeatures(map[string]bool{"loopback": true}); err == nil || !strings.Contains(err.Error(), "loopback stayed false") {
		t.Errorf("what cannot be changed: %v", err)
	}
	_, coalesce := i.Coalesce()
	_, rings := i.Rings()
	_, pause := i.Pause()
	_, tests := i.SelfTest()
	for what, err := range map[string]error{"coalesce": coalesce, "rings": rings, "pause": pause, "tests": tests, "set coalesce": i.SetCoalesce(Coalesce{}),
		"set rings": i.SetRings(1, 1), "set pause": i.SetPause(Pause{Rx: true})} {
		// The veth of some kernels has rings that cannot be changed.
		if !errors.Is(err, errors.ErrUnsupported) && !strings.Contains(what, "rings") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := Open("x"); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
		return
	}
	for name, want := range map[string]string{"none": "no such device", "a-name-that-is-too-long": os.ErrInvalid.Error()} {
		i, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, link := i.Link()
		_, stats := i.Statistics()
		_, features := i.Features()
		_, driver := i.Driver()
		for _, err := range []error{link, stats, features, driver, i.SetFeatures(nil)} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v", err)
			}
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOutcomes(t *testing.T) {
	names := []string{"MAC Loopback", "MMC", "EEE"}
	for what, c := range map[string]struct {
		results []int64
		flags   uint32
		want    []Test
		err     error
	}{
		"good":    {[]int64{0, 0, 0}, testOffline, []Test{{names[0], 0}, {names[1], 0}, {names[2], 0}}, nil},
		"mixed":   {[]int64{0, -22, -95}, testOffline | testFailed, []Test{{names[0], 0}, {names[1], -22}, {names[2], -95}}, nil},
		"refused": {[]int64{0, 0, 0}, testFailed, nil, ErrNotRun},
	} {
		got, err := outcomes(names, c.results, c.flags)
		if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, d)
		}
	}
	all, err := outcomes(names, []int64{0, -22, -95}, testFailed)
	if err != nil || !all[0].Passed() || all[1].Passed() || all[1].Unsupported() || !all[2].Unsupported() ||
		slices.ContainsFunc(all, func(t Test) bool { return t.Passed() && t.Unsupported() }) {
		t.Errorf("%+v, %v", all, err)
	}
}
