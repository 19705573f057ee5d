package stmmac

import (
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// Option is an option of [Open].
type Option func(*options)

type options struct {
	Config
	program Program
}

// defaults are the options of a MAC for which nothing is said.
func defaults() options {
	return options{Config: Config{
		RxQueues: 1, TxQueues: 1, RxRing: 512, TxRing: 512,
		MTU:          1500,
		PHY:          &PHY{Addr: AnyPHY},
		SelfTest:     true,
		RxChecksum:   true,
		TxChecksum:   true,
		VLANInsert:   true,
		NetIPAlign:   pagepool.NetIPAlign,
		BufSize:      2048,
		ResetTimeout: time.Second,
		StopTimeout:  100 * time.Millisecond,
		Recovery:     Recovery{Limit: 4},
		Clock:        core.NewWallClock(),
	}}
}

// WithConfig changes any part of the configuration; it sees what the options
// before it set.
func WithConfig(f func(*Config)) Option { return func(o *options) { f(&o.Config) } }

// WithGeneration says which generation the device is. It is required, here or
// from the bus that opened the device: the device does not tell.
func WithGeneration(g Generation) Option { return func(o *options) { o.Generation = g } }

// WithName sets how errors and logs call the device.
func WithName(name string) Option { return func(o *options) { o.Name = name } }

// WithQueues sets the numbers of receive and transmit queues, 1 to 8 each and
// at most what the device has. The default is one of each.
func WithQueues(rx, tx int) Option {
	return func(o *options) { o.RxQueues, o.TxQueues = rx, tx }
}

// WithRings sets the numbers of descriptors in each ring, 2 to 1024. One of
// them is always unused, but for a transmit ring of a GMAC 3.x. The default is 512.
func WithRings(rx, tx int) Option {
	return func(o *options) { o.RxRing, o.TxRing = rx, tx }
}

// WithMTU sets the longest payload of a frame in bytes, 46 to 9000; frames may
// have two VLAN tags beside it, except that the device counts frames of more
// than 9018 bytes with FCS, 9022 with a tag, as giants, which are dropped. The
// default is 1500.
func WithMTU(mtu int) Option { return func(o *options) { o.MTU = mtu } }

// WithPool makes the MAC use buffers of p, which other MACs may use too: then
// frames move between them without a copy. Without it the MAC makes a pool of
// its own.
func WithPool(p *pagepool.Pool) Option { return func(o *options) { o.Pool = p } }

// WithBufSize sets the size in bytes of the buffers of the MAC's own pool. The
// default is 2048.
func WithBufSize(n int) Option { return func(o *options) { o.BufSize = n } }

// WithHardwareAddr sets the MAC's address. Without it the MAC keeps the one in
// its registers, or gets a random one if that is none.
func WithHardwareAddr(a net.HardwareAddr) Option {
	return func(o *options) { o.HardwareAddr = a }
}

// WithPHY says which PHY the MAC has and what it is told to do. The default is
// the PHY that answers at the lowest address, which negotiates all that it and the
// MAC have. It needs the CSR clock, see [WithCSRClock].
func WithPHY(p PHY) Option { return func(o *options) { o.PHY = &p } }

// WithLink says that the link is l, and no PHY is looked after: for a MAC that is
// wired to another one, or a PHY that somebody else set up.
func WithLink(l Link) Option { return func(o *options) { o.Link, o.PHY = l, nil } }

// WithCSRClock says how fast the clock of the registers is, in Hz: no register
// tells, and the management interface to the PHY is driven from it.
func WithCSRClock(hz uint64) Option { return func(o *options) { o.CSRClock = hz } }

// WithPromiscuous lets all frames in.
func WithPromiscuous() Option { return func(o *options) { o.Promiscuous = true } }

// WithAllMulticast lets all multicast frames in.
func WithAllMulticast() Option { return func(o *options) { o.AllMulticast = true } }

// WithChecksums says whether the device checks the checksums of received frames
// ([pagepool.RxCsumGood]) and inserts those of sent ones ([pagepool.TxCsum]),
// where it can; the default is that it does both. Devices that do it wrong get
// false: then the driver computes what is asked for.
func WithChecksums(rx, tx bool) Option {
	return func(o *options) { o.RxChecksum, o.TxChecksum = rx, tx }
}

// WithNetIPAlign overrides [pagepool.NetIPAlign]: bytes, 0 to 15.
func WithNetIPAlign(n int) Option { return func(o *options) { o.NetIPAlign = n } }

// WithProgram runs p on every received frame.
func WithProgram(p Program) Option { return func(o *options) { o.program = p } }

// WithTxCompletions makes Send free nothing: every finished frame is handed
// back by [TxQueue.Reap].
func WithTxCompletions() Option { return func(o *options) { o.KeepTx = true } }

// WithCoalesce says how events share interrupts.
func WithCoalesce(c Coalesce) Option { return func(o *options) { o.Coalesce = c } }

// WithRecovery says what becomes of the MAC after a fault. The default is that it
// is rebuilt four times within ten seconds, and the fifth fault takes it down.
func WithRecovery(r Recovery) Option { return func(o *options) { o.Recovery = r } }

// WithLogger makes the MAC log events that are no packets. The zero Logger,
// which is the default, is silent.
func WithLogger(l zerolog.Logger) Option { return func(o *options) { o.Logger = l } }

// WithClock sets the source of time.
func WithClock(c Clock) Option { return func(o *options) { o.Clock = c } }
