package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/channel"
	"github.com/gostmmac/gostmmac/internal/netns"
)

// guest is a world behind a channel, as a rig has it.
type guest struct {
	*channel.Client
	world *World
	mu    sync.Mutex
	lines []string
	said  chan string // also the lines, for who waits for one
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("guests run Linux")
	}
	w, err := NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- channel.Serve(context.Background(), there, w.Run) }()
	g := &guest{world: w, said: make(chan string, 1000)}
	g.Client = channel.NewClient(here, func(job, line string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lines = append(g.lines, job+": "+line)
		g.said <- line
	})
	t.Cleanup(func() {
		if err := errors.Join(here.Close(), <-served, w.Close()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// do runs a job of a guest.
func do[R any](ctx context.Context, g *guest, j Job[R]) (result R, err error) {
	err = g.Do(ctx, j.Name(), j, &result)
	return result, err
}

func must[R any](t *testing.T, g *guest, j Job[R]) R {
	t.Helper()
	r, err := do(testContext(t), g, j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testContext is a guard against a hang.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// cable makes the spaces a and b with the interfaces ea and eb, joined by a cable, up and
// with addresses.
func cable(t *testing.T, mtu int) *guest {
	t.Helper()
	netns.ForTest(t) // skips where there are no namespaces
	g := newGuest(t)
	must(t, g, Space{Space: "a"})
	must(t, g, Space{Space: "b"})
	if _, err := do(testContext(t), g, Pair{Space: "a", A: "ea", B: "eb"}); errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip("this kernel has no veth: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	must(t, g, Move{Space: "a", Interface: "eb", To: "b"})
	must(t, g, Configure{Space: "a", Interface: "ea", Up: true, MTU: mtu, HardwareAddr: "02:00:00:00:00:0a", Addresses: []string{"10.0.0.1/24"}})
	must(t, g, Configure{Space: "b", Interface: "eb", Up: true, MTU: mtu, HardwareAddr: "02:00:00:00:00:0b", Addresses: []string{"10.0.0.2/24"}})
	// What is sent before Linux has seen the link is dropped.
	must(t, g, WaitInterface{Space: "a", Interface: "ea", Running: true})
	must(t, g, WaitInterface{Space: "b", Interface: "eb", Running: true})
	return g
}

func TestSystem(t *testing.T) {
	g := newGuest(t)
	s := must(t, g, System{})
	if !strings.HasPrefix(s.Version, "Linux version ") || !slices.IsSorted(s.Modules) {
		t.Errorf("%+v", s)
	}
	if _, err := do(t.Context(), g, PowerOff{}); err == nil {
		t.Error("this machine was ended")
	}
	ended := false
	g.world.PowerOff = func() error { ended = true; return nil }
	if must(t, g, PowerOff{}); !ended {
		t.Error("not ended")
	}
}

func TestFiles(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(file, []byte("old and long"), 0o600), os.Symlink("f", filepath.Join(dir, "l"))); err != nil {
		t.Fatal(err)
	}
	must(t, g, WriteFile{Path: file, Text: "new\x00"})
	if b := must(t, g, ReadFile{Path: file}); string(b) != "new\x00" {
		t.Errorf("%q", b)
	}
	if l := must(t, g, List{Path: dir}); !slices.Equal(l, []string{"f", "l"}) {
		t.Errorf("%q", l)
	}
	if l := must(t, g, ReadLink{Path: filepath.Join(dir, "l")}); l != "f" {
		t.Error(l)
	}
	none := filepath.Join(dir, "none")
	_, read := do(t.Context(), g, ReadFile{Path: none})
	_, write := do(t.Context(), g, WriteFile{Path: none})
	_, list := do(t.Context(), g, List{Path: none})
	_, link := do(t.Context(), g, ReadLink{Path: none})
	_, load := do(t.Context(), g, Load{File: none})
	for what, err := range map[string]error{"read": read, "write": write, "list": list, "link": link, "load": load} {
		if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), none) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := do(t.Context(), g, Unload{Module: "gostmmac_none"}); err == nil || !strings.Contains(err.Error(), "unload gostmmac_none") {
		t.Errorf("unload: %v", err)
	}
}

func TestProgram(t *testing.T) {
	g := newGuest(t)
	p := must(t, g, Program{Path: "/bin/sh", Args: []string{"-c", `echo "$X"; echo two >&2; pwd; exit 3`}, Env: []string{"X=one"}, Dir: "/"})
	if p.Code != 3 || p.Output != "" {
		t.Errorf("%+v", p)
	}
	g.mu.Lock()
	if got := strings.Join(g.lines, "|"); got != "program: one|program: two|program: /" {
		t.Errorf("log %q", got)
	}
	g.mu.Unlock()
	p = must(t, g, Program{Path: "/bin/sh", Args: []string{"-c", `echo out; echo err >&2`}, Keep: true})
	if d := cmp.Diff(ProgramEnd{Output: "out\n"}, p); d != "" {
		t.Error(d)
	}
	if p := must(t, g, Program{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}}); p.Code != -1 || p.Signal != 9 {
		t.Errorf("killed: %+v", p)
	}
	if _, err := do(t.Context(), g, Program{Path: "/none"}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no program: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for line := range g.said {
			if line == "running" {
				cancel()
				return
			}
		}
	}()
	if _, err := do(ctx, g, Program{Path: "/bin/sh", Args: []string{"-c", "echo running; exec sleep 1000"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSignal: a program that runs has a name, by which it is ended.
func TestSignal(t *testing.T) {
	g := newGuest(t)
	type end struct {
		p   ProgramEnd
		err error
	}
	ended := make(chan end, 1)
	job := Program{Tag: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo running; exec sleep 1000"}}
	go func() {
		p, err := do(testContext(t), g, job)
		ended <- end{p, err}
	}()
	if line := <-g.said; line != "sleeper: running" {
		t.Errorf("it says %q", line)
	}
	if _, err := do(t.Context(), g, job); err == nil || !strings.Contains(err.Error(), "sleeper") {
		t.Errorf("a second of that name: %v", err)
	}
	must(t, g, Signal{Tag: "sleeper", Number: 9})
	if e := <-ended; e.err != nil || e.p.Signal != 9 || e.p.Code != -1 {
		t.Errorf("%+v, %v", e.p, e.err)
	}
	if err := only(do(t.Context(), g, Signal{Tag: "sleeper", Number: 9})); err == nil || !strings.Contains(err.Error(), "sleeper") {
		t.Errorf("a program that has ended: %v", err)
	}
}

// TestUser runs programs as somebody else, with a limit of locked memory, and gives a file to
// its group.
func TestUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root runs programs as somebody else")
	}
	g := newGuest(t)
	own := must(t, g, Program{Path: "/bin/sh", Args: []string{"-c", "ulimit -l"}, Keep: true}).Output
	p, err := do(testContext(t), g, Program{Path: "/bin/sh", Args: []string{"-c", "id -u; id -g; ulimit -l; ulimit -Hl"},
		As: &User{UID: 1000, GID: 1001, Memlock: 1 << 20}, Keep: true, Dir: "/"})
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this root may not: ", err)
	}
	if err != nil || p.Output != "1000\n1001\n1024\n1024\n" {
		t.Errorf("%+v, %v", p, err)
	}
	if p := must(t, g, Program{Path: "/bin/sh", Args: []string{"-c", "ulimit -l"}, Keep: true}); p.Output != own {
		t.Errorf("the limit was %q and is %q", own, p.Output)
	}
	dir, err := os.MkdirTemp("/tmp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	write := Program{Path: "/bin/sh", Args: []string{"-c", "echo x >" + file}, As: &User{UID: 1000, GID: 1001}, Dir: "/"}
	if p := must(t, g, write); p.Code == 0 {
		t.Error("somebody else wrote into a file of root")
	}
	must(t, g, Permit{Path: file, GID: 1001, Mode: 0o660})
	if p := must(t, g, write); p.Code != 0 {
		t.Errorf("the group of a file may not write: %+v", p)
	}
	if err := only(do(t.Context(), g, Permit{Path: file + "none"})); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no file: %v", err)
	}
}

func TestNetwork(t *testing.T) {
	g := cable(t, 1500)
	got := must(t, g, Interfaces{Space: "b"})
	i := slices.IndexFunc(got, func(i Interface) bool { return i.Name == "eb" })
	if i < 0 || got[i].HardwareAddr != "02:00:00:00:00:0b" || got[i].MTU != 1500 || !got[i].Up || !got[i].Running || !slices.Contains(got[i].Addresses, "10.0.0.2/24") {
		t.Errorf("%+v", got)
	}
	p := must(t, g, Ping{Space: "a", To: "10.0.0.2", Size: 1000, Count: 3})
	if p.Answered != 3 || p.Lost != 0 || p.Fastest > p.Slowest || p.Slowest == 0 {
		t.Errorf("%+v", p)
	}
	if p := must(t, g, Ping{Space: "a", To: "10.0.0.3", Count: 2, Patience: 1}); p.Answered != 0 || p.Lost != 2 {
		t.Errorf("nobody there: %+v", p)
	}
	if l := must(t, g, Link{Space: "a", Interface: "ea"}); !l.Up || !l.Full {
		t.Errorf("%+v", l)
	}
	if d := must(t, g, Driver{Space: "a", Interface: "ea"}); d.Name != "veth" {
		t.Errorf("%+v", d)
	}
	if s := must(t, g, Statistics{Space: "a", Interface: "ea"}); len(s) == 0 {
		t.Errorf("%+v", s)
	}
	must(t, g, SetFeatures{Space: "a", Interface: "ea", Features: map[string]bool{"tx-scatter-gather": false}})
	if f := must(t, g, Features{Space: "a", Interface: "ea"}); f["tx-scatter-gather"].Active || !f["tx-scatter-gather"].Available {
		t.Errorf("%+v", f)
	}
	for _, err := range []error{
		only(do(t.Context(), g, Pause{Space: "a", Interface: "ea"})), only(do(t.Context(), g, SetPause{Space: "a", Interface: "ea"})),
		only(do(t.Context(), g, Coalesce{Space: "a", Interface: "ea"})), only(do(t.Context(), g, SetCoalesce{Space: "a", Interface: "ea"})),
		only(do(t.Context(), g, SelfTest{Space: "a", Interface: "ea"})),
	} {
		if err == nil || !strings.Contains(err.Error(), "not supported") && !strings.Contains(err.Error(), errors.ErrUnsupported.Error()) {
			t.Errorf("what veth has not: %v", err)
		}
	}

	must(t, g, Join{Space: "b", Interface: "eb", Group: "33:33:00:00:00:99"})
	if err := only(do(t.Context(), g, Join{Space: "b", Interface: "eb", Group: "33:33:00:00:00:99"})); err == nil {
		t.Error("joined twice")
	}
	must(t, g, Leave{Space: "b", Interface: "eb", Group: "33:33:00:00:00:99"})
	if err := only(do(t.Context(), g, Leave{Space: "b", Interface: "eb", Group: "33:33:00:00:00:99"})); err == nil {
		t.Error("left twice")
	}
	must(t, g, Join{Space: "b", Interface: "eb", Group: "33:33:00:00:00:98"}) // for the end of the world

	must(t, g, Configure{Space: "b", Interface: "eb", Down: true})
	must(t, g, WaitInterface{Space: "a", Interface: "ea", Running: false})
	must(t, g, Delete{Space: "a", Interface: "ea"})
	must(t, g, WaitInterface{Space: "b", Interface: "eb", Running: false}) // it went too
}

// only is the error of a call with a result.
func only[R any](_ R, err error) error { return err }

func TestRefused(t *testing.T) {
	g := cable(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	for what, err := range map[string]error{
		"a job that is none":            g.Do(t.Context(), "none", struct{}{}, nil),
		"arguments of another job":      g.Do(t.Context(), "ping", Space{Space: "x"}, nil),
		"no arguments":                  g.Do(t.Context(), "ping", nil, nil),
		"a space that is there":         only(do(t.Context(), g, Space{Space: "a"})),
		"a space without a name":        only(do(t.Context(), g, Space{})),
		"no space":                      only(do(t.Context(), g, Interfaces{Space: "none"})),
		"to no space":                   only(do(t.Context(), g, Move{Space: "a", Interface: "ea", To: "none"})),
		"from no space":                 only(do(t.Context(), g, Move{Space: "none", Interface: "ea", To: "a"})),
		"no interface":                  only(do(t.Context(), g, Configure{Space: "a", Interface: "none", Up: true})),
		"no MAC address":                only(do(t.Context(), g, Configure{Space: "a", Interface: "ea", HardwareAddr: "x"})),
		"no IP address":                 only(do(t.Context(), g, Configure{Space: "a", Interface: "ea", Up: true, Addresses: []string{"10.0.0.1"}})),
		"an MTU of what stays as it is": only(do(t.Context(), g, Configure{Space: "a", Interface: "ea", MTU: 1400})),
		"a VLAN of none":                only(do(t.Context(), g, VLAN{Space: "a", Interface: "v", Parent: "none", ID: 5})),
		"ping a name":                   only(do(t.Context(), g, Ping{Space: "a", To: "localhost", Count: 1})),
		"ping no space":                 only(do(t.Context(), g, Ping{Space: "none", To: "10.0.0.2", Count: 1})),
		"ping without a route":          only(do(t.Context(), g, Ping{Space: "a", To: "99.0.0.2", Count: 1})),
		"a transfer to a name":          only(do(t.Context(), g, Transfer{Space: "a", Dial: "localhost:1"})),
		"a transfer to nobody":          only(do(ctx, g, Transfer{Space: "a", Dial: "10.0.0.2:9"})),
		"a transfer from no address":    only(do(t.Context(), g, Transfer{Space: "a", Listen: "10.0.0.9:9"})),
		"a transfer in no space":        only(do(t.Context(), g, Transfer{Space: "none", Dial: "10.0.0.2:9"})),
		"frames that are too short":     only(do(t.Context(), g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 13, Max: 20})),
		"fewer frames than none":        only(do(t.Context(), g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 14, Max: 20, Window: -1})),
		"frames to nobody":              only(do(t.Context(), g, Frames{Space: "a", Interface: "ea", To: "x", Min: 14, Max: 20})),
		"frames of no interface":        only(do(t.Context(), g, Frames{Space: "a", Interface: "none", To: "02:00:00:00:00:0b", Min: 14, Max: 20})),
		"frames that are too long":      only(do(t.Context(), g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 3000, Max: 3000})),
		"reflect nothing":               only(do(t.Context(), g, Reflect{Space: "a", Interface: "none"})),
		"join with nothing":             only(do(t.Context(), g, Join{Space: "a", Interface: "none", Group: "33:33:00:00:00:99"})),
		"join no group":                 only(do(t.Context(), g, Join{Space: "a", Interface: "ea", Group: "33"})),
		"the link of nothing":           only(do(t.Context(), g, Link{Space: "a", Interface: "none"})),
		"the rings of no space":         only(do(t.Context(), g, SetRings{Space: "none", Interface: "ea"})),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	_, err := do(ctx, g, WaitInterface{Space: "a", Interface: "none", Running: true})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTransfer(t *testing.T) {
	g := cable(t, 1500)
	const size = 1 << 20
	listened := make(chan error)
	go func() {
		_, err := do(testContext(t), g, Transfer{Space: "a", Listen: "10.0.0.1:5001", Send: size, Receive: 2 * size, Seed: 7})
		listened <- err
	}()
	r := must(t, g, Transfer{Space: "b", Dial: "10.0.0.1:5001", Send: 2 * size, Receive: size, Seed: 7})
	if err := <-listened; err != nil || r.Microseconds <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	// Ends that do not agree are both told.
	for what, c := range map[string]struct{ a, b Transfer }{
		"another seed": {Transfer{Send: size, Seed: 1}, Transfer{Receive: size, Seed: 2}},
		"too few":      {Transfer{Send: size - 1}, Transfer{Receive: size}},
		"too many":     {Transfer{Send: size}, Transfer{Receive: size - 1}},
	} {
		c.a.Space, c.b.Space, c.a.Listen, c.b.Dial = "a", "b", "10.0.0.1:5002", "10.0.0.1:5002"
		go func() {
			_, err := do(testContext(t), g, c.a)
			listened <- err
		}()
		_, err := do(testContext(t), g, c.b)
		if <-listened; err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestTransferEcho: what an echo server sends back is compared with what was sent.
func TestTransferEcho(t *testing.T) {
	g := cable(t, 1500)
	n, err := g.world.space("a")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		spoil func([]byte)
		want  string
	}{
		"good":     {func([]byte) {}, ""},
		"one byte": {func(b []byte) { b[0] ^= 1 }, "byte 0 is"},
	} {
		l, err := n.Listen("tcp", "10.0.0.1:5007")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			buf := make([]byte, 64<<10)
			for {
				k, err := conn.Read(buf)
				if err == nil {
					c.spoil(buf[:k])
					_, err = conn.Write(buf[:k])
				}
				if err != nil {
					served <- conn.Close()
					return
				}
			}
		}()
		const size = 1 << 20
		_, err = do(testContext(t), g, Transfer{Space: "b", Dial: "10.0.0.1:5007", Send: size, Receive: size, Seed: 9, Echo: true})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if err := errors.Join(<-served, l.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestTransferIsCancelled(t *testing.T) {
	g := cable(t, 1500)
	for _, j := range []Transfer{{Space: "a", Listen: "10.0.0.1:5003"}, {Space: "a", Dial: "10.0.0.2:5003"}} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, err := do(ctx, g, j); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	// The listener is gone in a while, so the port can be taken.
	must(t, g, Space{Space: "c"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	for _, j := range []Transfer{{Space: "a", Listen: "10.0.0.1:5004", Receive: 1 << 40, Send: 1}, {Space: "b", Dial: "10.0.0.1:5004", Send: 1 << 40, Receive: 1 << 40}} {
		go func() {
			_, err := do(ctx, g, j)
			done <- err
		}()
	}
	cancel()
	if a, b := <-done, <-done; !errors.Is(a, context.Canceled) || !errors.Is(b, context.Canceled) {
		t.Errorf("%v, %v", a, b)
	}
}

func TestFrames(t *testing.T) {
	g := cable(t, 9000)
	frames := Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 14, Max: 9018, Seed: 3}
	reflected := make(chan error)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		_, err := do(ctx, g, Reflect{Space: "b", Interface: "eb"})
		reflected <- err
	}()
	for line := range g.said {
		if line == Ready {
			break
		}
	}
	r := must(t, g, frames)
	if r.Frames != 9018-14+1 || r.Padded != 0 { // veth does not pad
		t.Errorf("%+v", r)
	}
	cancel()
	if err := <-reflected; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFramesLost: one that does not come back is named.
func TestFramesLost(t *testing.T) {
	g := cable(t, 1500)
	_, err := do(testContext(t), g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 70, Max: 80, Patience: 1})
	if err == nil || !strings.Contains(err.Error(), "the frame of 70 bytes, behind 0 others") || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("%v", err)
	}
}

// TestFramesCompare: each way in which an echo can be wrong is told.
func TestFramesCompare(t *testing.T) {
	netns.ForTest(t)
	g := cable(t, 1500)
	n, err := g.world.space("b")
	if err != nil {
		t.Fatal(err)
	}
	e, err := n.OpenEther("eb")
	if err != nil {
		t.Fatal(err)
	}
	spoil := make(chan func([]byte) []byte, 1)
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		buf := make([]byte, 4096)
		for {
			f, err := e.Recv(buf)
			if err != nil {
				return
			}
			if ours(f) {
				if err := e.Send((<-spoil)(mirrored(f))); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		<-echoed
	})
	for what, c := range map[string]struct {
		length int
		spoil  func([]byte) []byte
		want   string // of the error; "" for none
		padded int
	}{
		"good":                 {100, func(f []byte) []byte { return f }, "", 0},
		"the last byte":        {100, func(f []byte) []byte { f[99] ^= 1; return f }, "byte 99 came back as", 0},
		"one byte less":        {100, func(f []byte) []byte { return f[:99] }, "99 bytes came back", 0},
		"one byte more":        {100, func(f []byte) []byte { return append(f, 0) }, "101 bytes came back", 0},
		"the sender":           {100, func(f []byte) []byte { f[11] ^= 1; return f }, "byte 11 came back as", 0},
		"padded":               {20, func(f []byte) []byte { return append(f, make([]byte, 40)...) }, "", 1},
		"padded with others":   {20, func(f []byte) []byte { return append(f, append(make([]byte, 39), 1)...) }, "60 bytes came back", 0},
		"padded to too much":   {20, func(f []byte) []byte { return append(f, make([]byte, 44)...) }, "64 bytes came back", 0},
		"padded to too little": {20, func(f []byte) []byte { return append(f, make([]byte, 20)...) }, "40 bytes came back", 0},
	} {
		spoil <- c.spoil
		r, err := do(testContext(t), g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: c.length, Max: c.length})
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || r.Padded != c.padded {
			t.Fatalf("%s: %+v, %v", what, r, err)
		}
	}
}

// TestFramesWindow: as many are under way as may be, they may come back in any order, and the
// one that is wrong is named.
func TestFramesWindow(t *testing.T) {
	netns.ForTest(t)
	g := cable(t, 1500)
	n, err := g.world.space("b")
	if err != nil {
		t.Fatal(err)
	}
	e, err := n.OpenEther("eb")
	if err != nil {
		t.Fatal(err)
	}
	const most = 8
	var spoil atomic.Int64 // length of the frame that is spoilt
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		buf := make([]byte, 4096)
		var held [][]byte
		for {
			f, err := e.Recv(buf)
			if err != nil {
				return
			}
			if !ours(f) {
				continue
			}
			if held = append(held, mirrored(f)); len(held) < most/2 {
				continue
			}
			for _, f := range slices.Backward(held) {
				if int64(len(f)) == spoil.Load() {
					f[50] ^= 1
				}
				if err := e.Send(f); err != nil {
					t.Error(err)
				}
			}
			held = nil
		}
	}()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		<-echoed
	})
	frames := Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 100, Max: 179, Window: most}
	if r := must(t, g, frames); r.Frames != 80 {
		t.Errorf("%+v", r)
	}
	spoil.Store(120)
	if _, err := do(testContext(t), g, frames); err == nil || !strings.Contains(err.Error(), "the frame of 120 bytes") || !strings.Contains(err.Error(), "byte 50") {
		t.Errorf("a frame that is wrong: %v", err)
	}
	// Of fewer frames than are held none comes back.
	frames.Max, frames.Patience = 102, 1
	if _, err := do(testContext(t), g, frames); err == nil || !strings.Contains(err.Error(), "the frame of 100 bytes, behind 0 others") {
		t.Errorf("frames that do not come back: %v", err)
	}
}

func TestReflectCounts(t *testing.T) {
	g := cable(t, 1500)
	reflected := make(chan error)
	var r ReflectResult
	go func() {
		var err error
		r, err = do(testContext(t), g, Reflect{Space: "b", Interface: "eb", Count: 5})
		reflected <- err
	}()
	for line := range g.said {
		if line == Ready {
			break
		}
	}
	must(t, g, Frames{Space: "a", Interface: "ea", To: "02:00:00:00:00:0b", Min: 60, Max: 64})
	if err := <-reflected; err != nil || r.Frames != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPattern(t *testing.T) {
	read := func(seed, stream uint64, parts ...int) string {
		p := newPattern(seed, stream)
		var b []byte
		for _, n := range parts {
			part := make([]byte, n)
			if _, err := io.ReadFull(p, part); err != nil {
				t.Fatal(err)
			}
			b = append(b, part...)
		}
		return string(b)
	}
	whole := read(1, 1, 1000)
	if read(1, 1, 1, 7, 500, 492) != whole {
		t.Error("the parts differ from the whole")
	}
	for _, other := range []string{read(2, 1, 1000), read(1, 2, 1000), read(1<<32, 1, 1000)} {
		if other == whole {
			t.Error("two streams are one")
		}
	}
}

// TestNames: no two jobs have one name, and their arguments survive the line.
func TestNames(t *testing.T) {
	all := decoders()
	const count = 37 // of the calls of add in decoders
	if len(all) != count {
		t.Errorf("%d names of %d jobs: %q", len(all), count, slices.Sorted(maps.Keys(all)))
	}
	want := Ping{Space: "s", To: "10.0.0.2", Size: 1, Count: 2, Patience: 3}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := all["ping"](b)
	if d := cmp.Diff(runner(want), got, cmp.AllowUnexported(Ping{}, returns[PingResult]{})); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

// FuzzDecode: arguments make a job or an error, whatever they are.
func FuzzDecode(f *testing.F) {
	f.Add("ping", []byte(`{"To":"10.0.0.2","Count":-1}`))
	f.Add("frames", []byte(`{"Min":14,"Max":9999999999}`))
	all := decoders()
	f.Fuzz(func(t *testing.T, name string, args []byte) {
		if decode := all[name]; decode != nil {
			if j, err := decode(args); (j == nil) != (err != nil) {
				t.Errorf("%v, %v", j, err)
			}
		}
	})
}
