package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fakeEnv makes the test program one with hardware tests of a kind.
const fakeEnv = "GOSTMMAC_FAKE_HWTEST"

func TestMain(m *testing.M) {
	if kind := os.Getenv(fakeEnv); kind != "" {
		os.Exit(fakeHardware(kind))
	}
	os.Exit(m.Run())
}

// fakeHardware prints results as the hardware tests do.
func fakeHardware(kind string) int {
	if !slices.Contains(os.Args, "device of the test") || !slices.Contains(os.Args, "peer of the test") {
		return 5
	}
	fmt.Println(`{"name":"one","result":"passed","seconds":0.5,"figures":{"frames":2}}`)
	fmt.Println(`{"name":"two","result":"skipped","reason":"the judge has no clock","seconds":0}`)
	switch kind {
	case "fails":
		fmt.Println(`--- FAIL: TestHardware`)
		fmt.Println(`{"name":"three","result":"failed","reason":"it is late","seconds":1}`)
		fmt.Println("FAIL")
		return 1
	case "skips for nothing":
		fmt.Println(`{"name":"four","result":"skipped","reason":"the driver has no time"}`)
	case "skips others":
		fmt.Fprintln(os.Stderr, "other tests were skipped")
		return 1
	case "waits":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println(`{"name":"ready","result":"passed"}`)
		<-c
		fmt.Fprintln(os.Stderr, "given back")
		return 1
	}
	fmt.Println("PASS")
	return 0
}

func TestHardware(t *testing.T) {
	for _, c := range []struct {
		kind   string
		counts string
		err    string // part of it
	}{
		{"good", "1 passed, 0 failed, 1 skipped", ""},
		{"fails", "1 passed, 1 failed, 1 skipped", ""},
		{"skips for nothing", "1 passed, 1 failed, 1 skipped", ""},
		{"skips others", "1 passed, 0 failed, 1 skipped", "did not end well"},
		{"waits", "2 passed, 0 failed, 1 skipped", "did not end well"},
	} {
		t.Setenv(fakeEnv, c.kind)
		dir := t.TempDir()
		h := &hardware{program: os.Args[0], dir: dir, logs: dir}
		ctx, cancel := context.WithCancel(t.Context())
		var out strings.Builder
		w := io.Writer(&out)
		if c.kind == "waits" {
			w = io.MultiWriter(&out, when{"board: ready", cancel})
		}
		r, err := newReport(w, filepath.Join(dir, "report"))
		if err != nil {
			t.Fatal(err)
		}
		err = h.run(ctx, r, "board: ", "device of the test", "peer of the test", "log")
		cancel()
		if c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.kind, err)
		}
		if err := r.end(); errors.Is(err, errTests) != strings.Contains(c.counts, " 1 failed") {
			t.Errorf("%s: %v", c.kind, err)
		}
		for _, want := range []string{"ok    board: one (500ms)", "skip  board: two: the judge has no clock\n", c.counts} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: there is no %q in\n%s", c.kind, want, out.String())
			}
		}
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil || !strings.Contains(string(log), `"name":"one"`) || c.kind == "waits" && !strings.Contains(string(log), "given back") {
			t.Errorf("%s: %v, log %q", c.kind, err, log)
		}
	}
}

// when calls f when a text is written.
type when struct {
	text string
	f    func()
}

func (w when) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.text) {
		w.f()
	}
	return len(b), nil
}
