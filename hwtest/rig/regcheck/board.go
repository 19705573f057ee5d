package regcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Wire is the cable of the MAC.
type Wire interface {
	Send(ctx context.Context, frame []byte) error
	Recv(ctx context.Context) ([]byte, error)
}

// Board is a MAC under test. One test runs on it at a time.
type Board struct {
	Device stmmac.Device
	Wire   Wire

	regs  mmio.Region
	spans []span
}

type span struct {
	at uint64
	n  int
}

// Test is one test.
type Test struct {
	Name string
	run  func(ctx context.Context, b *Board) error
}

// Run resets the MAC, runs the test and resets it again, so that nothing is written to
// the memory that the test frees.
func (t Test) Run(ctx context.Context, b *Board) (err error) {
	if b.regs, err = b.Device.Region(0); err != nil {
		return err
	}
	if err := b.reset(ctx); err != nil {
		return err
	}
	err = t.run(ctx, b)
	err = errors.Join(err, b.reset(ctx))
	for _, s := range b.spans {
		err = errors.Join(err, b.Device.UnmapDMA(s.at, s.n))
	}
	b.spans = nil
	return err
}

// alloc returns memory with an address of 32 bits.
func (b *Board) alloc(n int) ([]byte, uint32, error) {
	mem, at, err := b.Device.AllocDMA(n, 0)
	if err != nil {
		return nil, 0, err
	}
	b.spans = append(b.spans, span{at, n})
	if at+uint64(n) > 1<<32 {
		return nil, 0, fmt.Errorf("memory at %#x: the MAC has addresses of 32 bits", at)
	}
	return mem, uint32(at), nil
}

// pause is one turn of a loop that waits: it reads a register, so that the model comes to
// run, and ends with ctx and with the device.
func (b *Board) pause(ctx context.Context) error {
	if b.regs.Load32(macVersion) == mmio.AllOnes {
		return errors.New("the MAC does not answer any more")
	}
	return ctx.Err()
}

// poll waits until the bits of mask in a register have the value want.
func (b *Board) poll(ctx context.Context, off, mask, want uint32) error {
	for {
		v := b.regs.Load32(off)
		if v&mask == want && v != mmio.AllOnes {
			return nil
		}
		if err := b.pause(ctx); err != nil {
			return fmt.Errorf("register %#x reads %#x, waiting for %#x in %#x: %w", off, v, want, mask, err)
		}
	}
}

// reset is the software reset of the MAC.
func (b *Board) reset(ctx context.Context) error {
	b.regs.Store32(dmaBusMode, busSWR)
	return b.poll(ctx, dmaBusMode, busSWR, 0)
}

// start starts the engines whose descriptors are given. The receiver goes on before its
// engine: the model holds frames until the engine starts and does not look again.
func (b *Board) start(rx, tx *descs) {
	config, op := uint32(configDM), uint32(opTSF|opRSF)
	if rx != nil {
		b.regs.Store32(dmaRxBase, rx.bus)
		config, op = config|configRE, op|opSR
	}
	if tx != nil {
		b.regs.Store32(dmaTxBase, tx.bus)
		config, op = config|configTE, op|opST
	}
	b.regs.Store32(macConfig, config)
	b.regs.Store32(dmaOperation, op)
}

// reads compares a register.
func (b *Board) reads(off, want uint32) error {
	if got := b.regs.Load32(off); got != want {
		return fmt.Errorf("register %#x reads %#x instead of %#x", off, got, want)
	}
	return nil
}

// fill makes a frame of n bytes that is unlike that of any other seed.
func fill(n, seed int) []byte {
	f := make([]byte, n)
	for i := range f {
		f[i] = byte(i*7 + i>>8*13 + seed*31 + seed>>8*17)
	}
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}) // EtherType: local experiments
	return f
}

// same compares a frame with what was sent.
func same(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("a frame of %d bytes arrived as %d, byte %d is %#x instead of %#x", len(want), len(got), i, got[i], want[i])
		}
	}
	return fmt.Errorf("a frame of %d bytes arrived as %d", len(want), len(got))
}
