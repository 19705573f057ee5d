package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/peer"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", usage, "-listen"},
		{"-listen 127.0.0.1:0", usage, "one of"},
		{"-listen 127.0.0.1:0 -iface a -dev sim:gmac4", usage, "one of"},
		{"-listen 127.0.0.1:0 -dev sim:gmac4 more", usage, "one of"},
		{"-nonsense", usage, "nonsense"},
		{"-h", ok, "-iface"},
		{"-listen 127.0.0.1:0 -dev sim:none", failed, "sim:none"},
		{"-listen 127.0.0.1:0 -iface no-such-interface", failed, "no-such-interface"},
		{"-listen nowhere -dev sim:gmac4", failed, "nowhere"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit status %d, want %d: %s", c.args, code, c.code, &stderr)
		}
	}
}

// TestServe serves a simulated device and ends.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { code <- run(ctx, strings.Fields("-listen 127.0.0.1:0 -dev sim:gmac4"), w, &stderr) }()
	b := make([]byte, 200)
	n, err := r.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_, addr, found := strings.Cut(strings.TrimSpace(string(b[:n])), "served at ")
	if !found {
		t.Fatalf("%q", b[:n])
	}
	p, err := peer.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if p.MTU() != 9000 || !p.Can(peer.Jumbo) || !p.Can(peer.Separate) {
		t.Errorf("MTU %d", p.MTU())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if c := <-code; c != ok {
		t.Errorf("exit status %d: %s", c, &stderr)
	}
}
