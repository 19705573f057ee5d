package netstack

import (
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// NIC is what an [Endpoint] needs of a MAC. *[stmmac.MAC] satisfies it. While
// the endpoint lives, receive queue 0 belongs to it, and transmit queue 0 may be
// used by others through its [stmmac.TxQueue.Shared] only.
type NIC interface {
	HardwareAddr() net.HardwareAddr
	// MTU is the longest payload of a frame in bytes; it may change.
	MTU() int
	Link() stmmac.Link
	NumQueues() (rx, tx int)
	Rx(i int) *stmmac.RxQueue
	Tx(i int) *stmmac.TxQueue
	Pool() *pagepool.Pool
}

var _ NIC = (*stmmac.MAC)(nil)

// Option is an option of [NewEndpoint].
type Option func(*Endpoint)

// WithLogger makes the endpoint log events that are no packets. The zero Logger,
// which is the default, is silent.
func WithLogger(l zerolog.Logger) Option { return func(e *Endpoint) { e.log = l } }

// WithClock sets the source of time, by which the endpoint gives up sending to a
// device that does not move. The default is the clock of the machine.
func WithClock(c stmmac.Clock) Option { return func(e *Endpoint) { e.after = c.AfterFunc } }

// wallAfterFunc is [stmmac.Clock.AfterFunc] of the machine's clock.
func wallAfterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
