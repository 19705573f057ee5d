package stmmac

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/checksum"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

const (
	// selfTestTime is how long the frames of the self-test may take to come back;
	// they take some microseconds.
	selfTestTime = 20 * time.Millisecond
	selfTestPoll = 20 * time.Microsecond
)

// selfTest sends frames through the loopback of the MAC to see whether its checksum
// engines do what its features say: there are devices on which they do not. An
// engine that fails is left alone from then on, and the driver does its work. The
// MAC is reset behind the test, so that no count and no frame of it is left.
func (m *MAC) selfTest(ctx context.Context) error {
	tx := m.cfg.TxChecksum && m.feat.TxChecksum && m.hw.TxOffloads().MaxCsum > 0
	rx := m.cfg.RxChecksum && m.feat.RxChecksum
	if !m.cfg.SelfTest || !tx && !rx {
		return nil
	}
	m.hw.SetLoopback(true)
	m.looped = true
	if err := m.setLink(); err != nil {
		return err
	}
	if _, err := m.hw.SetFilter(core.Filter{Promiscuous: true}); err != nil {
		return err
	}
	txErr, rxErr := m.tryChecksums(ctx, tx, rx)
	m.looped = false
	if err := ctx.Err(); err != nil {
		return err
	}
	for what, err := range map[string]error{"transmit": txErr, "receive": rxErr} {
		if err != nil {
			m.log().Warn().Err(err).Str("engine", what).Msg("checksum engine failed the self-test: the driver does its work")
		}
	}
	m.cfg.TxChecksum = m.cfg.TxChecksum && txErr == nil
	m.cfg.RxChecksum = m.cfg.RxChecksum && rxErr == nil
	m.halt()
	defer m.unhalt()
	if err := m.takeDown(ctx); err != nil {
		return err
	}
	m.hw.ForgetCounters()
	for _, q := range m.rx {
		q.forget()
	}
	for _, q := range m.tx {
		q.ring.Forget()
	}
	return m.restart(ctx)
}

// trial is a frame of the self-test.
type trial struct {
	frame []byte // as it is to arrive
	bad   bool   // its checksum is wrong, and none is asked for
}

// trials are four frames whose checksums are asked for, if tx says so, and one
// whose checksum is wrong, if rx does.
func (m *MAC) trials(rx bool) []trial {
	head := append(bytes.Clone(m.addr), m.addr...)
	v4 := func(proto byte, l4 []byte) []byte {
		ip := []byte{0x45, 0, 0, byte(20 + len(l4)), 0, 1, 0, 0, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
		return append(append(append(bytes.Clone(head), 0x08, 0x00), ip...), l4...)
	}
	v6 := func(proto byte, l4 []byte) []byte {
		ip := make([]byte, 40)
		ip[0], ip[5], ip[6], ip[7] = 0x60, byte(len(l4)), proto, 64
		copy(ip[8:], []byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})
		copy(ip[24:], []byte{0x20, 0x01, 0x0d, 0xb8, 15: 2})
		return append(append(append(bytes.Clone(head), 0x86, 0xdd), ip...), l4...)
	}
	l4 := func(n int, set ...byte) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(7*i + n)
		}
		copy(p, set)
		return p
	}
	const udp, tcp = 17, 6
	udpHead := func(n int) []byte { return []byte{0x11, 0x11, 0x22, 0x22, 0, byte(n)} }
	list := []trial{
		{frame: v4(udp, l4(61, udpHead(61)...))},
		{frame: v4(tcp, l4(60))},
		{frame: v6(udp, l4(70, udpHead(70)...))},
		{frame: v6(tcp, l4(85))},
	}
	if rx {
		list = append(list, trial{frame: v4(udp, l4(63, udpHead(63)...)), bad: true})
	}
	return list
}

// tryChecksums sends the trials and looks at what comes back. A transmit error
// says that not every frame came back with right checksums, a receive error that
// not every verdict of the device is right.
func (m *MAC) tryChecksums(ctx context.Context, tx, rx bool) (txErr, rxErr error) {
	list := m.trials(rx)
	pool := m.Pool()
	// One at a time: the rings may be as short as one frame.
	for i, t := range list {
		b, err := pool.Alloc()
		if err != nil {
			return err, err
		}
		b.SetData(t.frame)
		p, _ := checksum.Parse(b)
		p.Fill(b)
		want := bytes.Clone(b.Bytes()) // what is to arrive
		switch {
		case t.bad:
			want[len(want)-1] ^= 1
			copy(b.Bytes(), want)
		case tx:
			copy(b.Bytes(), t.frame) // the fields hold what they held
			p.Spoil(b)
			b.Flags |= pagepool.TxCsum
		}
		if n, err := m.tx[0].ring.Send([]*pagepool.Buf{b}); n != 1 {
			pool.Free(b)
			return fmt.Errorf("frame %d of %d was not taken (%v)", i+1, len(list), err), nil
		}
		if b = m.awaitFrame(ctx); b == nil {
			err := fmt.Errorf("frame %d of %d did not come back within %v", i+1, len(list), selfTestTime)
			return err, err
		}
		got := make([]byte, b.FrameLen())
		b.CopyTo(got)
		flags := b.Flags
		pool.Free(b)
		m.awaitSent(ctx)
		same := bytes.Equal(got, want)
		if tx && !t.bad && !same && txErr == nil {
			txErr = fmt.Errorf("frame %d of %d came back with another checksum", i+1, len(list))
		}
		verdict := pagepool.RxCsumGood
		if t.bad || !same {
			verdict = pagepool.RxCsumBad
		}
		if got := flags & (pagepool.RxCsumGood | pagepool.RxCsumBad); rx && got != verdict && rxErr == nil {
			rxErr = fmt.Errorf("frame %d of %d came back with verdict %#x, want %#x", i+1, len(list), got, verdict)
		}
	}
	return txErr, rxErr
}

// awaitFrame takes the next frame from whatever receive queue it comes to, or is
// nil when that takes too long.
func (m *MAC) awaitFrame(ctx context.Context) *pagepool.Buf {
	var one [1]*pagepool.Buf
	for deadline := m.cfg.Clock.Now() + selfTestTime; ; {
		for _, q := range m.rx {
			if q.ring.Recv(one[:]) == 1 {
				return one[0]
			}
		}
		if m.cfg.Clock.Now() >= deadline || m.cfg.Clock.Sleep(ctx, selfTestPoll) != nil {
			return nil
		}
	}
}

// awaitSent waits until the descriptor of the frame that came back is free too.
func (m *MAC) awaitSent(ctx context.Context) {
	r := m.tx[0].ring
	for deadline := m.cfg.Clock.Now() + selfTestTime; r.Reap(nil) == 0 && m.cfg.Clock.Now() < deadline; {
		if m.cfg.Clock.Sleep(ctx, selfTestPoll) != nil {
			return
		}
	}
}
