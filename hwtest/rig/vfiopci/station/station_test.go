package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/vfio"
)

// TestExchange sends frames between two models.
func TestExchange(t *testing.T) {
	const addr = "sim:gmac4,wire=pair:x"
	var out, stderr strings.Builder
	if code := run(t.Context(), []string{"exchange", "-frames", "40", addr, addr}, &out, &stderr); code != good {
		t.Fatalf("code %d: %s %s", code, out.String(), stderr.String())
	}
	var e said.Exchange
	if err := json.Unmarshal([]byte(out.String()), &e); err != nil || e.Frames != 80 || e.Bytes < 80*shortest || e.Backend != "" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestFrames: the frames of a test are of many sizes, and no two are alike.
func TestFrames(t *testing.T) {
	sizes, seen := map[int]bool{}, map[string]bool{}
	for _, f := range batch([]byte{1, 2, 3, 4, 5, 6}, []byte{7}, 0, window) {
		sizes[len(f)], seen[string(f)] = true, true
	}
	for n := range 2000 {
		if l := len(frame(nil, nil, n)); l < shortest || l > longest {
			t.Fatalf("frame %d has %d bytes", n, l)
		}
	}
	if len(sizes) != window || len(seen) != window || len(batch(nil, nil, 3, 5)) != 2 {
		t.Errorf("%d sizes of %d frames", len(sizes), len(seen))
	}
}

// TestWatch: memory of a device that nobody drives stays as it is.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		_, _ = io.ReadAtLeast(r, make([]byte, 100), len(said.Watching))
		cancel()
	}()
	found, err := watch(ctx, []string{"sim:gmac4", "sim:gmac4"}, w)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || found.Bytes != 2*watched || found.Changed != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := watch(ctx, []string{"sim:gmac4", "sim:none"}, io.Discard); err == nil {
		t.Error("a device that there is not")
	}
	// What is written is found.
	w2 := new(said.Watch)
	mem := bytes.Repeat([]byte{pattern}, 100)
	inspect(w2, mem, 0x1000)
	mem[7], mem[99] = 0, 1
	inspect(w2, mem, 0x2000)
	inspect(w2, mem[:50], 0x3000)
	if want := (said.Watch{Bytes: 250, Changed: 3, At: 0x2007}); *w2 != want {
		t.Errorf("%+v, want %+v", *w2, want)
	}
}

// TestFault: the memory of a model that is receiving is taken from it, and the driver says
// so.
func TestFault(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	const addr = "sim:gmac4,audit=off,wire=pair:y"
	f, err := fault(ctx, addr, addr)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || !f.Fatal || f.Frames == 0 || f.Rings == 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestInterrupts(t *testing.T) {
	const text = `           CPU0       CPU1
  1:          9          0   IO-APIC   1-edge      i8042
 24:          5          2   PCI-MSI-0000:00:01.0   0-edge      vfio-msix[0](0000:00:01.0)
 25:          0          1   IR-PCI-MSIX-0000:00:01.0   4-edge      vfio-msix[4](0000:00:01.0)
 26:          3          0   PCI-MSI-0000:00:02.0   0-edge      vfio-msi[0](0000:00:02.0)
 16:        100          0   IO-APIC  16-fasteoi   vfio-intx(0000:00:03.0), vfio-intx(0000:00:04.0)
NMI:          7          0   Non-maskable interrupts
`
	got, err := parseInterrupts(text)
	want := map[string]map[string]uint64{"msix": {"0000:00:01.0": 8}, "msi": {"0000:00:02.0": 3}, "intx": {"0000:00:03.0": 100, "0000:00:04.0": 100}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if _, err := parseInterrupts(" 24: 99999999999999999999 PCI-MSI vfio-msi[0](0000:00:02.0)\n"); err == nil {
		t.Error("a count of too many digits")
	}
}

// TestFailure: an error of VFIO says what to do when it went through others.
func TestFailure(t *testing.T) {
	err := fmt.Errorf("a: %w", &vfio.Error{Op: "open", Dev: "0000:00:01.0", Err: errors.Join(
		&vfio.Error{Call: "open /dev/vfio/1", Err: fs.ErrPermission, Remedy: "be root"})})
	want := said.Failure{Text: err.Error(), Permission: true, Device: "0000:00:01.0", Call: "open /dev/vfio/1", Remedy: "be root"}
	if d := cmp.Diff(want, failure(err)); d != "" {
		t.Error(d)
	}
	if f := failure(vfio.ErrMemlock); !f.Memlock || f.Permission || f.Call != "" {
		t.Errorf("%+v", f)
	}
	for _, args := range [][]string{nil, {"walk"}, {"exchange", "sim:gmac4"}, {"exchange", "-frames", "0", "a", "b"}, {"watch"}, {"fault", "a"}, {"exchange", "-x"}} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code != wrong {
			t.Errorf("%q: code %d", args, code)
		}
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"exchange", "pci:0000:99:00.0", "pci:0000:99:01.0"}, &out, io.Discard); code != failed || !strings.Contains(out.String(), `"Text"`) {
		t.Errorf("a device that there is not: code %d, %s", code, out.String())
	}
}
