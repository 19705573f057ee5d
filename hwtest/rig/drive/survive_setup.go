package drive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

// newLists makes the driver rebuild its rings, at other addresses, in all ways in which it
// does that, and holds that it resets the MAC before each.
func newLists(ctx context.Context, b *board) error {
	var mu sync.Mutex
	running, wrong := true, 0 // since Open
	lists := map[mmio.Access]bool{}
	changed := 0
	defer b.dev.see(func(a mmio.Access) {
		if !a.Store {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case a.Off == regBusMode && a.Val&busSWR != 0:
			running = false
		case a.Off == regOperation && a.Val&(opSR|opST) != 0:
			running = true
		case a.Off == regRxList || a.Off == regTxList:
			if lists[a] = true; running {
				wrong++
			}
			changed++
		}
	})()
	sizes := []int{b.slots, 16, 512, 2, 1024, b.slots}
	for i, n := range sizes {
		b.slots = n
		if err := errors.Join(b.mac.SetRings(ctx, n, n), WaitUp(ctx, b.mac)); err != nil {
			return fmt.Errorf("rings of %d: %w", n, err)
		}
		if err := exchange(ctx, b, 200); err != nil {
			return fmt.Errorf("rings of %d: %w", n, err)
		}
		if err := errors.Join(b.mac.SetMTU(ctx, 1500-i), WaitUp(ctx, b.mac)); err != nil {
			return fmt.Errorf("MTU %d: %w", 1500-i, err)
		}
		if err := exchange(ctx, b, 200); err != nil {
			return fmt.Errorf("MTU %d: %w", 1500-i, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if wrong > 0 || len(lists) < 4 {
		return fmt.Errorf("%d of %d addresses of lists were stored without a reset before, and %d differ", wrong, changed, len(lists))
	}
	note.Printf(ctx, "%d stores of %d addresses, each behind a reset", changed, len(lists))
	return nil
}

// flushStays sets FTF, which then stays, under the driver: neither a change nor Close waits
// for its end. The driver itself never sets it.
func flushStays(ctx context.Context, b *board) error {
	regs, err := b.regs()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	flushed := 0
	defer b.dev.see(func(a mmio.Access) {
		// A driver that keeps the bits that it does not mean to change stores it back.
		if a.Store && a.Off == regOperation && a.Val&opFTF != 0 && regs.Load32(regOperation)&opFTF == 0 {
			mu.Lock()
			defer mu.Unlock()
			flushed++
		}
	})()
	set := func() error {
		regs.Store32(regOperation, regs.Load32(regOperation)|opFTF)
		if v := regs.Load32(regOperation); v&opFTF == 0 {
			return fmt.Errorf("Operation_Mode reads %#x: FTF has cleared itself, and the model has changed", v)
		}
		return exchange(ctx, b, 100)
	}
	for range 5 {
		if err := set(); err != nil {
			return err
		}
		if err := errors.Join(b.mac.SetMTU(ctx, 1500), WaitUp(ctx, b.mac)); err != nil {
			return err
		}
		if err := set(); err != nil {
			return err
		}
		if err := b.again(ctx); err != nil {
			return err
		}
		if err := exchange(ctx, b, 100); err != nil {
			return err
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if flushed > 0 {
		return fmt.Errorf("the driver set FTF %d times", flushed)
	}
	note.Printf(ctx, "10 times, the driver never sets it")
	return nil
}

// again closes the MAC and opens it again.
func (b *board) again(ctx context.Context, opts ...stmmac.Option) error {
	if err := b.mac.Close(); err != nil {
		return err
	}
	m, err := b.open(ctx, opts...)
	if err != nil {
		return err
	}
	b.mac = m
	return WaitUp(ctx, m)
}

// setsDFF clears DFF, which the first frame sets again, under the driver.
func setsDFF(ctx context.Context, b *board) error {
	regs, err := b.regs()
	if err != nil {
		return err
	}
	for range 5 {
		regs.Store32(regOperation, regs.Load32(regOperation)&^opDFF)
		if v := regs.Load32(regOperation); v&opDFF != 0 {
			return fmt.Errorf("Operation_Mode reads %#x: DFF was not cleared", v)
		}
		if err := exchange(ctx, b, 100); err != nil {
			return err
		}
		if v := regs.Load32(regOperation); v&opDFF == 0 {
			return fmt.Errorf("Operation_Mode reads %#x: no frame has set DFF, and the model has changed", v)
		}
		if err := errors.Join(b.mac.SetMTU(ctx, 1500), WaitUp(ctx, b.mac)); err != nil {
			return err
		}
		if err := exchange(ctx, b, 100); err != nil {
			return err
		}
	}
	return nil
}

// noAddress opens a MAC whose registers have no address after a reset: it gets a random one,
// which a later opening without a reset finds, and the one that is asked for.
func noAddress(ctx context.Context, b *board) error {
	regs, err := b.regs()
	if err != nil {
		return err
	}
	held := func() net.HardwareAddr {
		hi, lo := regs.Load32(regMACAddrHigh), regs.Load32(regMACAddrLow)
		return net.HardwareAddr{byte(lo), byte(lo >> 8), byte(lo >> 16), byte(lo >> 24), byte(hi), byte(hi >> 8)}
	}
	// fresh opens a MAC that was reset.
	fresh := func(opts ...stmmac.Option) (net.HardwareAddr, error) {
		if err := b.mac.Close(); err != nil {
			return nil, err
		}
		regs.Store32(regBusMode, busSWR)
		if a := held(); !bytes.Equal(a, net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) {
			return nil, fmt.Errorf("after the reset the MAC has the address %v, and the model has changed", a)
		}
		if err := b.again(ctx, opts...); err != nil {
			return nil, err
		}
		a := b.mac.HardwareAddr()
		if !bytes.Equal(a, held()) {
			return nil, fmt.Errorf("the MAC has the address %v, and its registers %v", a, held())
		}
		return a, exchange(ctx, b, 20)
	}
	seen := map[string]bool{}
	const times = 5
	for range times {
		a, err := fresh()
		if err != nil {
			return err
		}
		if len(a) != 6 || a[0]&3 != 2 {
			return fmt.Errorf("the MAC was given the address %v, which is no locally administered one of a station", a)
		}
		seen[a.String()] = true
		if err := b.again(ctx); err != nil {
			return err
		}
		if again := b.mac.HardwareAddr(); !bytes.Equal(again, a) {
			return fmt.Errorf("the address was %v, and without a reset in between it is %v", a, again)
		}
	}
	if len(seen) != times {
		return fmt.Errorf("%d random addresses are only %d", times, len(seen))
	}
	want := net.HardwareAddr{2, 0, 0, 0xaa, 0xbb, 0xcc}
	a, err := fresh(stmmac.WithHardwareAddr(want))
	if err == nil && !bytes.Equal(a, want) {
		err = fmt.Errorf("the MAC has the address %v, want %v", a, want)
	}
	if err == nil {
		note.Printf(ctx, "%d random addresses, and the one asked for", times)
	}
	return err
}

// version says which QEMU this is. One that has deviations 14 and 15 is an error: nothing
// that the driver sends or reads with it can be relied on.
func (b *board) version(ctx context.Context) error {
	c := b.machine.Config()
	cmd := exec.CommandContext(ctx, c.Command[0], append(c.Command[1:], "--version")...)
	cmd.Env = append(os.Environ(), c.Env...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("ask QEMU for its version: %w", err)
	}
	v, err := parseVersion(string(out))
	if err != nil {
		return err
	}
	if v.before(11, 0, 0) {
		return fmt.Errorf("QEMU %v is older than 11: go run ./hwtest/rig setup brings a newer one", v)
	}
	note.Printf(ctx, "QEMU %v, which does not have this", v)
	return nil
}

// version is a version of QEMU.
type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v version) before(major, minor, micro int) bool {
	for i, w := range [...]int{major, minor, micro} {
		if v[i] != w {
			return v[i] < w
		}
	}
	return false
}

// parseVersion reads what QEMU answers to --version.
func parseVersion(s string) (v version, err error) {
	if _, err := fmt.Sscanf(s, "QEMU emulator version %d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return v, fmt.Errorf("QEMU's version is %q: %w", s, err)
	}
	return v, nil
}

// behindDMA is the first register that the model does not have.
const behindDMA = 0x1060

// registersEnd makes the driver do all that reads registers, and holds that it knows where
// they end.
func registersEnd(ctx context.Context, b *board) error {
	if err := b.version(ctx); err != nil {
		return err
	}
	var mu sync.Mutex
	accesses, highest := 0, uint32(0)
	defer b.dev.see(func(a mmio.Access) {
		mu.Lock()
		defer mu.Unlock()
		accesses++
		highest = max(highest, a.Off)
	})()
	if err := b.again(ctx); err != nil {
		return err
	}
	dumped := 0
	for r := range b.mac.Dump() {
		if r.Off >= behindDMA {
			return fmt.Errorf("the dump has register %#x", r.Off)
		}
		dumped++
	}
	counters := 0
	for range b.mac.Counters() {
		counters++
	}
	_, err := b.mac.ReadMDIO(0, 2)
	err = errors.Join(err, b.mac.SetPromiscuous(true), b.mac.JoinGroup(net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}), b.mac.SetMTU(ctx, 1400))
	err = errors.Join(err, WaitUp(ctx, b.mac), exchange(ctx, b, 100))
	if err != nil {
		return err
	}
	if err := b.again(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	if highest >= behindDMA || dumped == 0 || counters == 0 || accesses < 100 {
		return fmt.Errorf("%d accesses, the highest at %#x, %d registers in the dump, %d counters", accesses, highest, dumped, counters)
	}
	note.Printf(ctx, "%d accesses, none above %#x, %d registers in the dump", accesses, highest, dumped)
	return nil
}
