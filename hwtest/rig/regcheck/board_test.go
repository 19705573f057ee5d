package regcheck

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

// cacheEnv names the cache folder that "rig setup" filled.
const cacheEnv = "GOSTMMAC_RIG_CACHE"

// start starts QEMU's board, or skips.
func start(t *testing.T, machine string, nic int) *qtest.Machine {
	t.Helper()
	dir := os.Getenv(cacheEnv)
	if dir == "" {
		t.Skip(cacheEnv + " names no cache folder with QEMU; go run ./hwtest/rig setup fills one")
	}
	tree, err := debian.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	command, env := tree.QEMU()
	m, err := qtest.Start(t.Context(), qtest.Config{Command: command, Env: env, Machine: machine, NIC: nic})
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

// TestOnQEMU runs the list on each MAC of QEMU's boards.
func TestOnQEMU(t *testing.T) {
	for machine, nics := range map[string]int{qtest.NPCM845: 4, qtest.NPCM750: 2} {
		for nic := range nics {
			m := start(t, machine, nic)
			b := &Board{Device: m.Device(), Wire: m.Wire()}
			for _, test := range append(Tests(), Deviations()...) {
				if err := test.Run(t.Context(), b); err != nil {
					t.Errorf("%s, MAC %d: %s: %v", machine, nic, test.Name, err)
				}
			}
		}
	}
}

// flip is a wire that changes a bit of each frame.
type flip struct{ Wire }

func (f flip) Send(ctx context.Context, frame []byte) error {
	frame = slices.Clone(frame)
	frame[len(frame)-1] ^= 1
	return f.Wire.Send(ctx, frame)
}

func (f flip) Recv(ctx context.Context) ([]byte, error) {
	frame, err := f.Wire.Recv(ctx)
	if err == nil {
		frame[len(frame)-1] ^= 1
	}
	return frame, err
}

// altered is a device of which a register reads wrong bits, or whose interrupt fires when
// it should not.
type altered struct {
	stmmac.Device
	off, bits uint32
	v         mmio.Interrupt
}

func (a altered) Region(i int) (mmio.Region, error) {
	r, err := a.Device.Region(i)
	return alteredRegion{r, a.off, a.bits}, err
}

func (a altered) Interrupt(i int) (mmio.Interrupt, error) {
	if a.v != nil {
		return a.v, nil
	}
	return a.Device.Interrupt(i)
}

type alteredRegion struct {
	mmio.Region
	off, bits uint32
}

func (r alteredRegion) Load32(off uint32) uint32 {
	v := r.Region.Load32(off)
	if off == r.off {
		v ^= r.bits
	}
	return v
}

// always is an interrupt that always fires.
type always struct{}

func (always) Wait(context.Context) (uint64, error) { return 1, nil }
func (always) Unmask() error                        { return nil }
func (always) Close() error                         { return nil }

// TestFindsFaults: each test fails on a MAC that does what it tests in another way.
func TestFindsFaults(t *testing.T) {
	m := start(t, qtest.NPCM845, 0)
	d, w := m.Device(), m.Wire()
	faults := map[string]*Board{
		"resetValues": {Device: altered{Device: d, off: hwFeature, bits: 1}, Wire: w},
		"phy":         {Device: altered{Device: d, off: macGMIIDat, bits: 1}, Wire: w},
		"interrupt":   {Device: altered{Device: d, v: always{}}, Wire: w},
		"wire":        {Device: d, Wire: flip{w}},
	}
	for _, test := range Tests() {
		failed := false
		for name, b := range faults {
			if err := test.Run(t.Context(), b); err != nil {
				failed = true
				if errors.Is(err, context.Canceled) {
					t.Errorf("%s with a fault of the %s: %v", test.Name, name, err)
				}
			}
		}
		if !failed {
			t.Errorf("%s passes with every fault", test.Name)
		}
	}
}

// TestChecksum: RFC 1071 has the example.
func TestChecksum(t *testing.T) {
	if got := onesSum(0, []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); got != 0x2_ddf0 {
		t.Errorf("sum %#x", got)
	}
	if got := complement(0x2_ddf0); got != 0x220d {
		t.Errorf("checksum %#x", got)
	}
	without, with := datagram(19, 1)
	if got := complement(onesSum(0, with[14:34])); got != 0 {
		t.Errorf("the header sums to %#x", got)
	}
	udp := with[34:]
	if got := complement(onesSum(onesSum(17+uint32(len(udp)), with[26:34]), udp)); got != 0 {
		t.Errorf("the datagram sums to %#x", got)
	}
	if len(without) != len(with) || without[24] != 0 || without[40] != 0 {
		t.Error("checksums are filled in already")
	}
}
