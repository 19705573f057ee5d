package qtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/hwtest/rig/qemu"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

var _ stmmac.Device = (*Device)(nil)

// fakeEnv makes the test program a QEMU of a kind.
const fakeEnv = "GOSTMMAC_FAKE_QEMU"

func TestMain(m *testing.M) {
	if kind := os.Getenv(fakeEnv); kind != "" {
		os.Exit(fakeQEMU(kind))
	}
	os.Exit(m.Run())
}

// fakeQEMU has registers that keep what is written, and three that do something: 0x1004
// sends the frame whose address is in 0x1010 and length in 0x1014 and raises the
// interrupt, 0x1018 lowers it, and 0x8 ends the process.
func fakeQEMU(kind string) int {
	if kind == "exit" {
		fmt.Fprintln(os.Stderr, "unsupported machine type")
		return 3
	}
	control, ram, wire := os.NewFile(fdControl, "qtest"), os.NewFile(fdRAM, "ram"), fdWire
	go fakeMonitor(os.NewFile(fdMonitor, "monitor"), kind)
	regs := map[uint64]uint64{}
	const base = regBase + regStride
	if kind != "old" {
		regs[base+regVersion] = wantVersion
	}
	for in := bufio.NewScanner(control); in.Scan(); {
		var addr, v uint64
		switch {
		case kind == "silent":
			continue
		case strings.HasPrefix(in.Text(), "irq_intercept_out"):
			if in.Text() != "irq_intercept_out /machine/soc/gmac[1] sysbus-irq" || kind == "deaf" {
				fmt.Fprintln(control, "FAIL Unknown device")
				continue
			}
		case scan(in.Text(), "readl 0x%x", &addr):
			fmt.Fprintf(control, "OK 0x%016x\n", regs[addr])
			continue
		case scan(in.Text(), "writel 0x%x 0x%x", &addr, &v):
			regs[addr] = v
			switch addr - base {
			case 0x8:
				fmt.Fprintln(os.Stderr, "aborted")
				return 4
			case 0x1004:
				frame := make([]byte, regs[base+0x1014])
				if _, err := ram.ReadAt(frame, int64(regs[base+0x1010])); err != nil {
					return 5
				}
				if err := unix.Sendto(wire, frame, 0, nil); err != nil {
					return 6
				}
				fmt.Fprintln(control, "IRQ raise 0")
			case 0x1018:
				fmt.Fprintln(control, "IRQ lower 0")
			}
		default:
			fmt.Fprintln(control, "ERR")
			continue
		}
		fmt.Fprintln(control, "OK")
	}
	return 0
}

// fakeMonitor obeys commands, tells an event before each answer, and has only one cable
// to pull.
func fakeMonitor(f *os.File, kind string) {
	greeting := `{"QMP": {"version": {}, "capabilities": []}}`
	if kind == "rude" {
		greeting = `{"return": {}}`
	}
	fmt.Fprintln(f, greeting)
	for in := json.NewDecoder(f); ; {
		var c struct {
			Execute   string         `json:"execute"`
			Arguments map[string]any `json:"arguments"`
		}
		if in.Decode(&c) != nil {
			return
		}
		fmt.Fprintln(f, `{"event": "RTC_CHANGE", "data": {}}`)
		switch {
		case c.Execute == "set_link" && kind == "babbles":
			fmt.Fprintln(f, `[]`)
		case c.Execute == "set_link" && kind == "monitor ends":
			f.Close()
			return
		case c.Execute == "set_link" && c.Arguments["name"] != "n1", kind == "nocable" && c.Execute == "set_link":
			fmt.Fprintln(f, `{"error": {"class": "DeviceNotFound", "desc": "Device not found"}}`)
		case c.Execute == "system_reset":
			fmt.Fprintln(f, `{"return": {}} {"event": "RESET"}`)
		default:
			fmt.Fprintln(f, `{"return": {}}`)
		}
	}
}

func scan(text, format string, v ...any) bool {
	_, err := fmt.Sscanf(text, format, v...)
	return err == nil
}

func fake(kind string) Config {
	return Config{Command: []string{os.Args[0]}, Env: []string{fakeEnv + "=" + kind}, NIC: 1, RAM: 128 * mib}
}

// over says whether the process is no more, and was waited for.
func over(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestMachine(t *testing.T) {
	m, err := Start(t.Context(), fake("ok"))
	if err != nil {
		t.Fatal(err)
	}
	pid, d := m.Pid(), m.Device()
	r, err := d.Region(0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	mem, at, err := d.AllocDMA(5000, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i := range mem {
		mem[i] = byte(i * 3)
	}
	for _, n := range []int{1, 60, 1514, 5000} {
		r.Store32(0x1010, uint32(at))
		r.Store32(0x1014, uint32(n))
		r.Store32(0x1004, 1)
		frame, err := m.Wire().Recv(t.Context())
		if err != nil || !bytes.Equal(frame, mem[:n]) {
			t.Fatalf("%d bytes are %d: %v", n, len(frame), err)
		}
		if got := fired(t, v); got != 1 {
			t.Errorf("fired %d times", got)
		}
		r.Store32(0x1018, 0)
		if err := v.Unmask(); err != nil || fired(t, v) != 0 {
			t.Errorf("fired while low: %v", err)
		}
	}
	if got := r.Load32(regVersion); got != wantVersion || r.Len() != regSize {
		t.Errorf("version %#x of %d bytes", got, r.Len())
	}
	for _, off := range []uint32{regSize, regVersion + 1, regVersion + 2, mmio.AllOnes} {
		r.Store32(off, 1)
		if got := r.Load32(off); got != mmio.AllOnes {
			t.Errorf("register %#x reads %#x", off, got)
		}
	}
	for name, err := range map[string]error{
		"region 1":    second(d.Region(1)),
		"interrupt 1": second(d.Interrupt(1)),
		"map":         second(d.MapDMA(mem)),
	} {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "npcm845-evb/gmac1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(m.SetCable(false), m.SetCable(true), d.SetCable(true), d.Reset(t.Context())); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Reset(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a reset of which nobody waits for the end: %v", err)
	}
	if d.NumInterrupts() != 1 || !d.Coherent() || !d.PinsDMA() {
		t.Error("what the device says of itself")
	}

	if err := errors.Join(d.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	if !over(pid) {
		t.Error("the process is still there")
	}
	if got := r.Load32(regVersion); got != mmio.AllOnes {
		t.Errorf("a register reads %#x after Close", got)
	}
	r.Store32(0, 1)
	mem[0]++ // still mapped
	if err := d.UnmapDMA(at, len(mem)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"wait":      second(v.Wait(t.Context())),
		"unmask":    v.Unmask(),
		"interrupt": second(d.Interrupt(0)),
		"allocate":  third(d.AllocDMA(1, 0)),
		"receive":   second(m.Wire().Recv(t.Context())),
		"send":      m.Wire().Send(t.Context(), []byte{1}),
		"cable":     m.SetCable(true),
		"reset":     d.Reset(t.Context()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// TestMonitor: QEMU's control socket says what it should not.
func TestMonitor(t *testing.T) {
	if _, err := Start(t.Context(), fake("rude")); !errors.Is(err, qemu.ErrProtocol) {
		t.Errorf("no greeting: %v", err)
	}
	for kind, want := range map[string]error{"nocable": errors.ErrUnsupported, "babbles": ErrGone, "monitor ends": ErrGone} {
		m, err := Start(t.Context(), fake(kind))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.SetCable(false); !errors.Is(err, want) {
			t.Errorf("%s: %v", kind, err)
		}
		// A refusal is no end, and after anything else nothing is known.
		if err := m.Device().Reset(t.Context()); errors.Is(err, ErrGone) != (want == ErrGone) {
			t.Errorf("%s: reset behind it: %v", kind, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// TestDies: QEMU ends while everything waits.
func TestDies(t *testing.T) {
	c := fake("ok")
	c.Log = filepath.Join(t.TempDir(), "log")
	m, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Device().Region(0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Device().Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan error)
	go func() { ends <- second(v.Wait(t.Context())) }()
	go func() { ends <- second(m.Wire().Recv(t.Context())) }()
	r.Store32(8, 1)
	for range 2 {
		var e *Error
		if err := <-ends; !errors.Is(err, ErrGone) || !errors.As(err, &e) || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "aborted") {
			t.Error(err)
		}
	}
	if got := r.Load32(regVersion); got != mmio.AllOnes {
		t.Errorf("a register reads %#x", got)
	}
	if err := m.Wire().Send(t.Context(), []byte{1}); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if log, err := os.ReadFile(c.Log); err != nil || string(log) != "aborted\n" {
		t.Errorf("log %q, %v", log, err)
	}
}

// TestKilled: somebody else ends QEMU.
func TestKilled(t *testing.T) {
	m, err := Start(t.Context(), fake("ok"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Device().Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(m.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Wait(t.Context()); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestDoesNotStart(t *testing.T) {
	for kind, want := range map[string]struct {
		err  error
		text string
	}{
		"exit": {ErrGone, "unsupported machine type"},
		"old":  {errors.ErrUnsupported, "QEMU 11"},
		"deaf": {errors.ErrUnsupported, "Unknown device"},
	} {
		_, err := Start(t.Context(), fake(kind))
		var e *Error
		if !errors.Is(err, want.err) || !errors.As(err, &e) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c := fake("ok")
	c.Command = []string{filepath.Join(t.TempDir(), "no qemu")}
	if _, err := Start(t.Context(), c); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "no qemu") {
		t.Error(err)
	}
	c = fake("ok")
	c.Log = filepath.Join(t.TempDir(), "none", "log")
	if _, err := Start(t.Context(), c); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestStartIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := Start(ctx, fake("silent")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for { // the log is made before the process
			if _, err := os.Stat(log); err == nil {
				cancel()
				return
			}
		}
	}()
	c := fake("silent")
	c.Log = log
	if _, err := Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWireWaits: a call on the wire ends with its context, and the next one works.
func TestWireWaits(t *testing.T) {
	m, err := Start(t.Context(), fake("ok"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- second(m.Wire().Recv(ctx)) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The fake takes no frame, so the kernel's queue becomes full.
	ctx, cancel = context.WithCancel(t.Context())
	sent := make(chan struct{}, 1)
	go func() {
		var err error
		for err == nil {
			err = m.Wire().Send(ctx, make([]byte, 60000))
			select {
			case sent <- struct{}{}:
			default:
			}
		}
		done <- err
	}()
	<-sent
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, n := range []int{0, MaxFrame + 1} {
		if err := m.Wire().Send(t.Context(), make([]byte, n)); !errors.Is(err, ErrConfig) {
			t.Errorf("a frame of %d bytes: %v", n, err)
		}
	}
	r, err := m.Device().Region(0)
	if err != nil {
		t.Fatal(err)
	}
	r.Store32(0x1010, lowestDMA)
	r.Store32(0x1014, 64)
	r.Store32(0x1004, 1)
	if f, err := m.Wire().Recv(t.Context()); err != nil || len(f) != 64 {
		t.Errorf("%d bytes, %v", len(f), err)
	}
}
