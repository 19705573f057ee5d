package regcheck

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gostmmac/gostmmac/barrier"
)

// Bits and registers that only the deviations need.
const (
	configLM = 1 << 12 // loopback in the MAC

	dmaRxPoll = 0x1008
	dmaMissed = 0x1020
	opDFF     = 1 << 24 // frames of a flushed FIFO stay
	opFTF     = 1 << 20 // flush the transmit FIFO

	mmcTxFrames = 0x0118 // good and bad
	mmcRxFrames = 0x0180

	rxDIC = 1 << 31 // no interrupt from this descriptor

	// behindDMA is the first register that the model does not have.
	behindDMA = 0x1060
	// unmapped is an address at which no machine has memory.
	unmapped = 0xe000_0000
)

// Deviations returns tests of what QEMU's model does otherwise than the databook says. A
// driver must survive them, and a test of the driver must not take them for faults of it. One
// that fails says that QEMU has changed.
func Deviations() []Test {
	return []Test{
		{"poll demand flushes no held frame", heldFrames},
		{"clearing RU flushes held frames", heldFramesRU},
		{"the start drops the first held frame while the receiver is off", heldFrameDropped},
		{"transmit without TE and ST", transmitWithoutTE},
		{"a new list address is ignored until the reset", baseStays},
		{"FTF does not clear itself", ftfStays},
		{"DFF is set by the first frame", dffSet},
		{"a frame that is cut marks the CPU's descriptor", cutFrame},
		{"a receive buffer that is not there holds nothing", noRxBuffer},
		{"a transmit buffer that is not there stops the engine", noTxBuffer},
		{"the check sequence is none", noCheckSequence},
		{"no padding", noPadding},
		{"no loopback in the MAC", noLoopback},
		{"no address filter", noFilter},
		{"no counters", noCounters},
		{"no missed frames", noMissed},
		{"DIC never interrupts", noWatchdog},
		{"no register behind the DMA's", noRegister},
	}
}

// settle gives the model many turns of its loop.
func (b *Board) settle(ctx context.Context) error {
	for range 100 {
		if err := b.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// idle says whether a descriptor still belongs to the device after a while.
func (d *descs) idle(ctx context.Context, i int, what string) error {
	if err := d.b.settle(ctx); err != nil {
		return err
	}
	if !d.owned(i) {
		return fmt.Errorf("%s: descriptor %d was given back with %#x", what, i, barrier.LoadOwn(d.own(i)))
	}
	return nil
}

// receiver makes n descriptors that belong to the device.
func (b *Board) receiver(m mode, n int) (*descs, error) {
	d, err := newDescs(b, m, n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		d.postRx(i)
	}
	return d, nil
}

// held leaves a frame in the cable, with the engine started before the receiver.
func (b *Board) held(ctx context.Context) (*descs, []byte, error) {
	d, err := b.receiver(ring, 8)
	if err != nil {
		return nil, nil, err
	}
	f := fill(100, 1)
	b.regs.Store32(dmaRxBase, d.bus)
	b.regs.Store32(dmaOperation, opSR|opRSF)
	if err := errors.Join(b.Wire.Send(ctx, f), d.idle(ctx, 0, "receiver off")); err != nil {
		return nil, nil, err
	}
	b.regs.Store32(macConfig, configRE|configDM)
	return d, f, d.idle(ctx, 0, "receiver on")
}

func heldFrames(ctx context.Context, b *Board) error {
	d, f, err := b.held(ctx)
	if err != nil {
		return err
	}
	b.regs.Store32(dmaRxPoll, 1)
	if err := d.idle(ctx, 0, "poll demand"); err != nil {
		return err
	}
	b.regs.Store32(dmaOperation, opSR|opRSF)
	_, err = d.take(ctx, 0, [][]byte{f})
	return err
}

func heldFramesRU(ctx context.Context, b *Board) error {
	d, f, err := b.held(ctx)
	if err != nil {
		return err
	}
	b.regs.Store32(dmaStatus, intRU)
	_, err = d.take(ctx, 0, [][]byte{f})
	return err
}

// heldFrameDropped: the order is that of a driver that starts the DMA before it turns the
// receiver on. The frames behind the first one stay in the cable.
func heldFrameDropped(ctx context.Context, b *Board) error {
	d, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	b.regs.Store32(dmaRxBase, d.bus)
	b.regs.Store32(dmaOperation, opSR|opRSF)
	first, second := fill(100, 1), fill(100, 2)
	if err := errors.Join(b.Wire.Send(ctx, first), d.idle(ctx, 0, "receiver off")); err != nil {
		return err
	}
	b.regs.Store32(dmaOperation, opSR|opRSF)
	b.regs.Store32(macConfig, configRE|configDM)
	b.regs.Store32(dmaOperation, opSR|opRSF)
	if err := errors.Join(d.idle(ctx, 0, "started while the receiver was off"), b.Wire.Send(ctx, second)); err != nil {
		return err
	}
	_, err = d.take(ctx, 0, [][]byte{second})
	return err
}

func transmitWithoutTE(ctx context.Context, b *Board) error {
	d, err := newDescs(b, ring, 4)
	if err != nil {
		return err
	}
	b.regs.Store32(dmaTxBase, d.bus)
	f := fill(100, 1)
	end := d.postTx(0, f, maxBuffer, 0)
	if err := d.idle(ctx, 0, "no poll demand"); err != nil {
		return err
	}
	b.regs.Store32(dmaTxPoll, 1)
	got, err := b.Wire.Recv(ctx)
	if err != nil {
		return err
	}
	return errors.Join(same(got, f), d.sent(ctx, 0, end))
}

func baseStays(ctx context.Context, b *Board) error {
	first, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	second, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	b.start(first, nil)
	one, two := [][]byte{fill(100, 1)}, [][]byte{fill(100, 2)}
	if err := b.Wire.Send(ctx, one[0]); err != nil {
		return err
	}
	next, err := first.take(ctx, 0, one)
	if err != nil {
		return err
	}
	b.regs.Store32(dmaOperation, 0)
	b.start(second, nil)
	if err := b.Wire.Send(ctx, two[0]); err != nil {
		return err
	}
	if _, err = first.take(ctx, next, two); err != nil {
		return err
	}
	return second.idle(ctx, 0, "the second list")
}

func ftfStays(ctx context.Context, b *Board) error {
	b.regs.Store32(dmaOperation, opFTF)
	if err := b.settle(ctx); err != nil {
		return err
	}
	return b.reads(dmaOperation, opFTF)
}

func dffSet(ctx context.Context, b *Board) error {
	d, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	b.start(d, nil)
	f := [][]byte{fill(100, 1)}
	err = errors.Join(b.reads(dmaOperation, opSR|opTSF|opRSF), b.Wire.Send(ctx, f[0]))
	if err == nil {
		_, err = d.take(ctx, 0, f)
	}
	return errors.Join(err, b.reads(dmaOperation, opSR|opTSF|opRSF|opDFF))
}

func cutFrame(ctx context.Context, b *Board) error {
	d, err := newDescs(b, ring, 4)
	if err != nil {
		return err
	}
	d.postRx(0)
	d.body(1, maxBuffer, rxRER, rxRCH)
	b.start(d, nil)
	if err := b.Wire.Send(ctx, fill(3000, 1)); err != nil {
		return err
	}
	// It is told as a frame that was received, and not as a lack of descriptors.
	if err := b.poll(ctx, dmaStatus, intRI, intRI); err != nil {
		return err
	}
	if err := errors.Join(b.settle(ctx), b.poll(ctx, dmaStatus, intRU, 0)); err != nil {
		return err
	}
	zero, one := barrier.LoadOwn(d.own(0)), barrier.LoadOwn(d.own(1))
	if zero&(descOwn|rxFS|rxLS|rxES) != rxFS || one != rxLS {
		return fmt.Errorf("the descriptors have %#x and %#x", zero, one)
	}
	return nil
}

func noRxBuffer(ctx context.Context, b *Board) error {
	d, err := newDescs(b, ring, 4)
	if err != nil {
		return err
	}
	d.body(0, maxBuffer, rxRER, rxRCH)
	d.word[2] = unmapped
	// orders the body before OWN
	barrier.DMARelease()
	barrier.StoreOwn(d.own(0), descOwn)
	b.start(d, nil)
	if err := b.Wire.Send(ctx, fill(100, 1)); err != nil {
		return err
	}
	for d.owned(0) {
		if err := b.pause(ctx); err != nil {
			return err
		}
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	if s := barrier.LoadOwn(d.own(0)); s>>16&0x3fff != 0 || s&rxES != 0 {
		return fmt.Errorf("the descriptor has %#x", s)
	}
	return nil
}

func noTxBuffer(ctx context.Context, b *Board) error {
	d, err := newDescs(b, ring, 4)
	if err != nil {
		return err
	}
	b.start(nil, d)
	d.body(0, txFS|txLS|100, txTER, txTCH)
	d.word[2] = unmapped
	// orders the body before OWN
	barrier.DMAWrite()
	barrier.StoreOwn(d.own(0), descOwn)
	b.regs.Store32(dmaTxPoll, 1)
	const fatal = 1 << 13 // bus error
	err = d.idle(ctx, 0, "a buffer that is not there")
	if s := b.regs.Load32(dmaStatus); s&fatal != 0 {
		err = errors.Join(err, fmt.Errorf("status %#x: a bus error was reported", s))
	}
	return err
}

func noCheckSequence(ctx context.Context, b *Board) error {
	d, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	b.start(d, nil)
	long := make([]byte, 1514)
	for i := range long {
		long[i] = 0xaa
	}
	short := fill(64, 1)
	if err := errors.Join(b.Wire.Send(ctx, long), b.Wire.Send(ctx, short)); err != nil {
		return err
	}
	for i, f := range [][]byte{long, short} {
		got, _, err := d.received(ctx, i)
		if err == nil {
			err = same(got, f)
		}
		if err != nil {
			return err
		}
	}
	// IEEE 802.3 sends the check sequence with its first byte first.
	if got := binary.LittleEndian.Uint32(d.buffer(1)[len(short):]); got == crc32.ChecksumIEEE(short) {
		return fmt.Errorf("the check sequence %#x is right", got)
	}
	return nil
}

func noPadding(ctx context.Context, b *Board) error {
	f := [][]byte{fill(14, 1), fill(20, 2), fill(59, 3)}
	if err := b.transmitFrames(ctx, ring, f, maxBuffer, 0, f); err != nil {
		return err
	}
	if err := b.reset(ctx); err != nil {
		return err
	}
	return b.receiveFrames(ctx, ring, f)
}

func noLoopback(ctx context.Context, b *Board) error {
	rx, err := b.receiver(ring, 8)
	if err != nil {
		return err
	}
	tx, err := newDescs(b, ring, 8)
	if err != nil {
		return err
	}
	b.start(rx, tx)
	b.regs.Store32(macConfig, configRE|configTE|configDM|configLM)
	f := fill(100, 1)
	tx.postTx(0, f, maxBuffer, 0)
	b.regs.Store32(dmaTxPoll, 1)
	got, err := b.Wire.Recv(ctx)
	if err != nil {
		return err
	}
	return errors.Join(same(got, f), rx.idle(ctx, 0, "loopback"))
}

func noFilter(ctx context.Context, b *Board) error {
	b.regs.Store32(macAddr0Hi, 1<<31|0xffee)
	b.regs.Store32(macAddr0Lo, 0xddccbbaa)
	f := fill(100, 1) // to another address; promiscuous mode is off
	return b.receiveFrames(ctx, ring, [][]byte{f})
}

func noCounters(ctx context.Context, b *Board) error {
	err := bothWays(ctx, b, ring)
	return errors.Join(err, b.reads(mmcTxFrames, 0), b.reads(mmcRxFrames, 0))
}

func noMissed(ctx context.Context, b *Board) error {
	err := receiveNone(ctx, b, ring)
	return errors.Join(err, b.reads(dmaMissed, 0))
}

// noWatchdog: hardware tells of such a descriptor when the receive watchdog ends.
func noWatchdog(ctx context.Context, b *Board) error {
	const dmaWatchdog = 0x1024
	d, err := newDescs(b, ring, 8)
	if err != nil {
		return err
	}
	for i := range d.n {
		d.body(i, maxBuffer|rxDIC, rxRER, rxRCH)
		// orders the body before OWN
		barrier.DMARelease()
		barrier.StoreOwn(d.own(i), descOwn)
	}
	b.regs.Store32(dmaWatchdog, 1)
	b.start(d, nil)
	f := fill(100, 1)
	if err := b.Wire.Send(ctx, f); err != nil {
		return err
	}
	got, _, err := d.received(ctx, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(same(got, f), b.settle(ctx)); err != nil {
		return err
	}
	if s := b.regs.Load32(dmaStatus); s&intRI != 0 {
		return fmt.Errorf("status %#x: a receive interrupt", s)
	}
	return nil
}

func noRegister(_ context.Context, b *Board) error {
	var errs []error
	for off := uint32(behindDMA); off < b.regs.Len(); off += 0x20 {
		errs = append(errs, b.reads(off, 0))
	}
	return errors.Join(errs...)
}
