package stmmac

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// trials are frames of four kinds whose checksums are asked for, if there is a
// transmit engine, then longer ones up to the longest, and one whose checksum is
// wrong, if there is a receive engine. A short MTU leaves out what is longer.
func (m *MAC) trials(tx, rx bool) []trial {
	head := append(bytes.Clone(m.addr), m.addr...)
	v4 := func(proto byte, l4 []byte) []byte {
		n := 20 + len(l4)
		ip := []byte{0x45, 0, byte(n >> 8), byte(n), 0, 1, 0, 0, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
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
	udpHead := func(n int) []byte { return []byte{0x11, 0x11, 0x22, 0x22, byte(n >> 8), byte(n)} }
	longest := m.longestTrial(tx)
	list := []trial{
		{frame: v4(udp, l4(61, udpHead(61)...))},
		{frame: v4(tcp, l4(60))},
		{frame: v6(udp, l4(70, udpHead(70)...))},
		{frame: v6(tcp, l4(85))},
	}
	list = slices.DeleteFunc(list, func(t trial) bool { return len(t.frame) > longest })
	const v4Head = core.EthHeaderLen + 20
	if tx {
		for _, n := range longTrials(longest) {
			n -= v4Head
			list = append(list, trial{frame: v4(udp, l4(n, udpHead(n)...))})
		}
	}
	if rx {
		n := min(63, longest-v4Head)
		list = append(list, trial{frame: v4(udp, l4(n, udpHead(n)...)), bad: true})
	}
	return list
}

// longestTrial is the length of the longest frame that is no giant, is short enough
// for the rings and, if it is tried, for the transmit engine.
func (m *MAC) longestTrial(tx bool) int {
	n := min(core.MaxFrameLen(m.cfg.MTU)-core.FCSLen, m.hw.Limits().MaxMTU+core.EthHeaderLen,
		(min(m.cfg.RxRing, m.cfg.TxRing)-1)*m.rx[0].ring.Layout().First/2)
	if tx {
		n = min(n, m.hw.TxOffloads().MaxCsum)
	}
	return n
}

// longTrials are the lengths of longer trials: there are engines that leave out
// what is longer than their FIFO without a word. The first is that of the longest
// frame of the standard MTU, since what goes wrong may be jumbo frames alone.
func longTrials(longest int) []int {
	if standard := core.EthHeaderLen + 1500; longest > standard {
		return []int{standard, longest}
	}
	return []int{longest}
}

// tryChecksums sends the trials and looks at what comes back. A transmit error
// says that not every frame came back with right checksums, a receive error that
// not every verdict of the device is right.
func (m *MAC) tryChecksums(ctx context.Context, tx, rx bool) (txErr, rxErr error) {
	list := m.trials(tx, rx)
	for i, t := range list {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("frame %d of %d, of %d bytes, %w", i+1, len(list), len(t.frame), fmt.Errorf(format, args...))
		}
		b, err := m.Pool().AllocFrame(t.frame, m.hw.Limits().MaxTxBuf)
		if err != nil {
			err = fail("found no buffer: %w", err)
			return err, err
		}
		p, _ := checksum.Parse(b)
		p.Fill(b)
		b.CopyTo(t.frame)
		switch {
		case t.bad:
			last := b
			for last.Chained() {
				last = last.Next()
			}
			last.Bytes()[last.Len()-1] ^= 1
			t.frame[len(t.frame)-1] ^= 1
		case tx && txErr == nil:
			p.Spoil(b)
			b.Flags |= pagepool.TxCsum
		}
		got, flags, err := m.loopBack(ctx, b)
		if err != nil {
			err = fail("did not come back: %w", err)
			return err, err
		}
		same := bytes.Equal(got, t.frame)
		switch {
		case same && tx && txErr == nil && !t.bad:
			m.csumTried = max(m.csumTried, len(t.frame))
		case !same && txErr == nil:
			txErr = fail("came back changed")
			if m.csumTried >= core.EthHeaderLen+1500 {
				m.log().Warn().Err(txErr).Int("most", m.csumTried).Msg("transmit checksum engine is left alone with longer frames")
				txErr = nil
			}
		}
		want := pagepool.RxCsumGood
		if t.bad || !same {
			want = pagepool.RxCsumBad
		}
		if verdict := flags & (pagepool.RxCsumGood | pagepool.RxCsumBad); rx && verdict != want && rxErr == nil {
			rxErr = fail("came back with verdict %#x, want %#x", verdict, want)
		}
	}
	return txErr, rxErr
}

// loopBack sends a frame and returns what comes back, to whatever receive queue,
// and its flags.
func (m *MAC) loopBack(ctx context.Context, b *pagepool.Buf) (frame []byte, flags pagepool.Flags, err error) {
	deadline := m.cfg.Clock.Now() + selfTestTime
	late := func() bool { return m.cfg.Clock.Now() >= deadline }
	again := func(late bool) error {
		if late {
			return fmt.Errorf("nothing happened within %v", selfTestTime)
		}
		return m.cfg.Clock.Sleep(ctx, selfTestPoll)
	}
	one := [1]*pagepool.Buf{b}
	tx := m.tx[0].ring
	for n := 0; ; {
		now := late()
		if n, err = tx.Send(one[:]); n == 1 {
			break
		}
		tx.Reap(nil) // the ring may be short
		if err == nil {
			err = again(now)
		}
		if err != nil {
			m.Pool().Free(b)
			return nil, 0, err
		}
	}
	for {
		now := late()
		for _, q := range m.rx {
			if q.ring.Recv(one[:]) == 1 {
				frame = make([]byte, one[0].FrameLen())
				one[0].CopyTo(frame)
				flags = one[0].Flags
				m.Pool().Free(one[0])
				return frame, flags, nil
			}
		}
		if err := again(now); err != nil {
			return nil, 0, err
		}
	}
}
