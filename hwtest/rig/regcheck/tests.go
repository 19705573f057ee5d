package regcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Tests returns the tests, in the order in which they tell most.
func Tests() []Test {
	t := []Test{
		{"reset values", resetValues},
		{"software reset", softwareReset},
		{"phy id", phyID},
		{"phy addresses", phyAddresses},
		{"phy write", phyWrite},
	}
	for _, m := range []mode{ring, chain} {
		of := func(f func(context.Context, *Board, mode) error) func(context.Context, *Board) error {
			return func(ctx context.Context, b *Board) error { return f(ctx, b, m) }
		}
		t = append(t,
			Test{"transmit 60 to 1514 bytes, " + m.String(), of(transmit)},
			Test{"transmit 9000 bytes, " + m.String(), of(transmitLong)},
			Test{"transmit pieces of 100 bytes, " + m.String(), of(transmitPieces)},
			Test{"transmit with checksums, " + m.String(), of(transmitChecksums)},
			Test{"receive 60 to 1514 bytes, " + m.String(), of(receive)},
			Test{"receive 9000 bytes, " + m.String(), of(receiveLong)},
			Test{"receive what came before the start, " + m.String(), of(receiveHeld)},
			Test{"receive without a buffer, " + m.String(), of(receiveNone)},
			Test{"both ways, " + m.String(), of(bothWays)},
			Test{"transmit interrupt, " + m.String(), of(transmitInterrupt)},
			Test{"receive interrupt, " + m.String(), of(receiveInterrupt)},
		)
	}
	return t
}

func resetValues(_ context.Context, b *Board) error {
	var errs []error
	for _, r := range [][2]uint32{
		{macConfig, 0}, {macVersion, 0x1032}, {macLPITime, 0x03e8_0000}, {macAddr0Hi, 0x8000_ffff}, {macAddr0Lo, 0xffff_ffff}, {ptpControl, 0x2000},
		{dmaBusMode, 0x0002_0100}, {dmaStatus, 0}, {dmaOperation, 0}, {dmaIntEnable, 0}, {hwFeature, 0x100d_4f37},
	} {
		errs = append(errs, b.reads(r[0], r[1]))
	}
	return errors.Join(errs...)
}

func softwareReset(ctx context.Context, b *Board) error {
	changed := [][2]uint32{{macConfig, configDM | configTE}, {macAddr0Lo, 0x1234_5678}, {dmaIntEnable, intNIS | intRI}, {dmaRxBase, 0x10_0000}}
	for _, r := range changed {
		b.regs.Store32(r[0], r[1])
	}
	var errs []error
	for _, r := range changed {
		errs = append(errs, b.reads(r[0], r[1]))
	}
	errs = append(errs, b.reset(ctx), resetValues(ctx, b), b.reads(dmaRxBase, 0))
	return errors.Join(errs...)
}

// mdio does one transaction of clause 22.
func (b *Board) mdio(ctx context.Context, phy, reg, flags uint32) error {
	if err := b.poll(ctx, macGMIIAdr, gmiiBusy, 0); err != nil {
		return err
	}
	b.regs.Store32(macGMIIAdr, phy<<11|reg<<6|gmiiClock|flags|gmiiBusy)
	return b.poll(ctx, macGMIIAdr, gmiiBusy, 0)
}

func (b *Board) phyRead(ctx context.Context, phy, reg uint32) (uint16, error) {
	err := b.mdio(ctx, phy, reg, 0)
	return uint16(b.regs.Load32(macGMIIDat)), err
}

func (b *Board) phyIs(ctx context.Context, phy, reg uint32, want uint16) error {
	got, err := b.phyRead(ctx, phy, reg)
	if err == nil && got != want {
		err = fmt.Errorf("register %d of PHY %d reads %#x instead of %#x", reg, phy, got, want)
	}
	return err
}

func (b *Board) phyStore(ctx context.Context, phy, reg uint32, v uint16) error {
	b.regs.Store32(macGMIIDat, uint32(v))
	return b.mdio(ctx, phy, reg, gmiiWrite)
}

// phyID: QEMU's PHY has the number of a Broadcom BCM54612E.
func phyID(ctx context.Context, b *Board) error {
	return errors.Join(b.phyIs(ctx, 0, 2, 0x0362), b.phyIs(ctx, 0, 3, 0x5e6a))
}

// phyAddresses: nobody is at the other addresses, which read 0 here and not all ones.
func phyAddresses(ctx context.Context, b *Board) error {
	var errs []error
	for phy := uint32(1); phy < 32; phy++ {
		errs = append(errs, b.phyIs(ctx, phy, 2, 0))
	}
	return errors.Join(errs...)
}

// phyWrite: the PHY is not reset with the MAC.
func phyWrite(ctx context.Context, b *Board) error {
	const advertisement = 4
	old, err := b.phyRead(ctx, 0, advertisement)
	return errors.Join(err,
		b.phyStore(ctx, 0, advertisement, 0x0141), b.phyIs(ctx, 0, advertisement, 0x0141),
		b.reset(ctx), b.phyIs(ctx, 0, advertisement, 0x0141),
		b.phyStore(ctx, 0, advertisement, old), b.phyIs(ctx, 0, advertisement, old))
}

// transmitFrames sends frames, several for each doorbell, and compares what comes out.
func (b *Board) transmitFrames(ctx context.Context, m mode, frames [][]byte, per int, flags uint32, want [][]byte) error {
	const n, burst = 32, 4
	d, err := newDescs(b, m, n)
	if err != nil {
		return err
	}
	b.start(nil, d)
	at := 0
	for i := 0; i < len(frames); i += burst {
		some := frames[i:min(i+burst, len(frames))]
		from := at
		for _, f := range some {
			at = d.postTx(at, f, per, flags)
		}
		b.regs.Store32(dmaTxPoll, 1)
		for j := range some {
			got, err := b.Wire.Recv(ctx)
			if err != nil {
				return fmt.Errorf("frame %d: %w", i+j, err)
			}
			if err := same(got, want[i+j]); err != nil {
				return fmt.Errorf("frame %d: %w", i+j, err)
			}
		}
		if err := d.sent(ctx, from, at); err != nil {
			return err
		}
	}
	return nil
}

// everySize is a frame of each size from 60 bytes to the longest without a tag.
func everySize() (frames [][]byte) {
	for n := 60; n <= 1514; n++ {
		frames = append(frames, fill(n, n))
	}
	return frames
}

func transmit(ctx context.Context, b *Board, m mode) error {
	f := everySize()
	return b.transmitFrames(ctx, m, f, maxBuffer, 0, f)
}

func transmitLong(ctx context.Context, b *Board, m mode) error {
	f := [][]byte{fill(9000, 1), fill(60, 2), fill(9000, 3)}
	return b.transmitFrames(ctx, m, f, maxBuffer, 0, f)
}

func transmitPieces(ctx context.Context, b *Board, m mode) error {
	var f [][]byte
	for n := 60; n <= 700; n++ {
		f = append(f, fill(n, n))
	}
	return b.transmitFrames(ctx, m, f, 100, 0, f)
}

// receiveFrames sends frames to the MAC and compares what lies in memory.
func (b *Board) receiveFrames(ctx context.Context, m mode, frames [][]byte) error {
	// burst frames of the longest kind (five descriptors) leave one free.
	const n, burst = 32, 4
	d, err := newDescs(b, m, n)
	if err != nil {
		return err
	}
	for i := range n {
		d.postRx(i)
	}
	b.start(d, nil)
	at := 0
	for i := 0; i < len(frames); i += burst {
		some := frames[i:min(i+burst, len(frames))]
		for _, f := range some {
			if err := b.Wire.Send(ctx, f); err != nil {
				return err
			}
		}
		if at, err = d.take(ctx, at, some); err != nil {
			return fmt.Errorf("frames from %d on: %w", i, err)
		}
	}
	if status := b.regs.Load32(dmaStatus); status&intRU != 0 {
		return fmt.Errorf("status %#x: a frame found no descriptor", status)
	}
	return nil
}

// take waits for frames from descriptor i on, compares them and gives the descriptors back.
func (d *descs) take(ctx context.Context, i int, frames [][]byte) (next int, err error) {
	for _, want := range frames {
		got, next, err := d.received(ctx, i)
		if err != nil {
			return i, err
		}
		if err := same(got, want); err != nil {
			return i, err
		}
		for ; i != next; i = (i + 1) % d.n {
			if !slices.Equal(d.buffer(i)[maxBuffer:], make([]byte, bufferStride-maxBuffer)) {
				return i, fmt.Errorf("the MAC wrote behind the end of buffer %d", i)
			}
			d.postRx(i)
		}
	}
	return i, nil
}

func receive(ctx context.Context, b *Board, m mode) error {
	return b.receiveFrames(ctx, m, everySize())
}

func receiveLong(ctx context.Context, b *Board, m mode) error {
	var f [][]byte
	for i := range 20 {
		f = append(f, fill(9000-i, i), fill(60+i, 100+i))
	}
	return b.receiveFrames(ctx, m, f)
}

// receiveHeld: the cable holds what comes before the receiver runs.
func receiveHeld(ctx context.Context, b *Board, m mode) error {
	d, err := newDescs(b, m, 8)
	if err != nil {
		return err
	}
	frames := [][]byte{fill(100, 1), fill(1000, 2), fill(1514, 3)}
	for _, f := range frames {
		if err := b.Wire.Send(ctx, f); err != nil {
			return err
		}
	}
	for i := range d.n {
		d.postRx(i)
	}
	if err := b.pause(ctx); err != nil {
		return err
	}
	if !d.owned(0) {
		return errors.New("a frame was received before the start")
	}
	b.start(d, nil)
	_, err = d.take(ctx, 0, frames)
	return err
}

// receiveNone: a frame that finds no descriptor is dropped and says so; the next one that
// finds one is received.
func receiveNone(ctx context.Context, b *Board, m mode) error {
	d, err := newDescs(b, m, 4)
	if err != nil {
		return err
	}
	d.body(0, maxBuffer, rxRER, rxRCH)
	b.start(d, nil)
	if err := b.Wire.Send(ctx, fill(200, 1)); err != nil {
		return err
	}
	if err := b.poll(ctx, dmaStatus, intRU, intRU); err != nil {
		return err
	}
	for i := range d.n {
		d.postRx(i)
	}
	b.regs.Store32(dmaStatus, intRU|intRI|intAIS|intNIS)
	want := [][]byte{fill(300, 2)}
	if err := b.Wire.Send(ctx, want[0]); err != nil {
		return err
	}
	_, err = d.take(ctx, 0, want)
	return err
}

// bothWays: the engines run at the same time.
func bothWays(ctx context.Context, b *Board, m mode) error {
	rx, err := newDescs(b, m, 16)
	if err != nil {
		return err
	}
	tx, err := newDescs(b, m, 16)
	if err != nil {
		return err
	}
	for i := range rx.n {
		rx.postRx(i)
	}
	b.start(rx, tx)
	r, t := 0, 0
	for i := range 200 {
		in, out := fill(60+i*7, 2*i), fill(1460-i*7, 2*i+1)
		if err := b.Wire.Send(ctx, in); err != nil {
			return err
		}
		end := tx.postTx(t, out, maxBuffer, 0)
		b.regs.Store32(dmaTxPoll, 1)
		got, err := b.Wire.Recv(ctx)
		if err == nil {
			err = same(got, out)
		}
		if err == nil {
			err = tx.sent(ctx, t, end)
		}
		if err == nil {
			r, err = rx.take(ctx, r, [][]byte{in})
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		t = end
	}
	return nil
}
