package qtest_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/mmio"
)

// board starts QEMU's board, or skips.
func board(t testing.TB, c qtest.Config) *qtest.Machine {
	t.Helper()
	dir := os.Getenv("GOSTMMAC_RIG_CACHE")
	if dir == "" {
		t.Skip("GOSTMMAC_RIG_CACHE names no cache folder with QEMU; go run ./hwtest/rig setup fills one")
	}
	tree, err := debian.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Command, c.Env = tree.QEMU()
	m, err := qtest.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestQEMU: sizes of RAM, and QEMU's end.
func TestQEMU(t *testing.T) {
	for _, machine := range []string{qtest.NPCM845, qtest.NPCM750} {
		for _, ram := range []int64{128 << 20, 256 << 20, 512 << 20, 1024 << 20} {
			m := board(t, qtest.Config{Machine: machine, RAM: ram})
			r, err := m.Device().Region(0)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Load32(0x20); got != 0x1032 {
				t.Errorf("%s with %d MiB: version %#x", machine, ram>>20, got)
			}
			v, err := m.Device().Interrupt(0)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(m.Pid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Wait(context.Background()); !errors.Is(err, qtest.ErrGone) {
				t.Errorf("waiting for an interrupt: %v", err)
			}
			if got := r.Load32(0x20); got != mmio.AllOnes {
				t.Errorf("a register reads %#x", got)
			}
		}
	}
}

// BenchmarkLoad is a round trip to QEMU.
func BenchmarkLoad(b *testing.B) {
	m := board(b, qtest.Config{})
	r, err := m.Device().Region(0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r.Load32(0x20) != 0x1032 {
			b.Fatal("gone")
		}
	}
}
