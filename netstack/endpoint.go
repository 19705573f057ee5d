package netstack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

var _ stack.LinkEndpoint = (*Endpoint)(nil)

// Endpoint is a MAC as gVisor's stack sees it: a [stack.LinkEndpoint] for
// Ethernet. Receiving has a goroutine of its own while a stack is attached. Its
// methods may be called by several goroutines.
//
// It offers no offload: gVisor verifies and computes all checksums.
type Endpoint struct {
	nic   NIC
	rx    *stmmac.RxQueue
	tx    *stmmac.SharedTx
	pool  *pagepool.Pool
	log   zerolog.Logger
	after func(time.Duration, func()) (stop func() bool)

	addr  atomic.Pointer[tcpip.LinkAddress]
	limit atomic.Uint32 // what SetMTU set, or MaxUint32

	mu      sync.Mutex
	to      *receiver // nil while no stack is attached
	last    *receiver // the one that was started last; it may have ended
	closed  bool
	onClose func()

	// senders is held for reading by those who send, so that Close knows when
	// the last of them is out. waits ends when they must not sleep any more.
	senders  sync.RWMutex
	sendable bool // guarded by senders
	waits    context.Context
	endWaits context.CancelCauseFunc
	batches  sync.Pool     // of *[txBatch]*pagepool.Buf
	turn     chan struct{} // holds one token: whoever has it waits for buffers
	freed    chan struct{} // the pool's answer to who has the token
	stalled  atomic.Bool   // a wait ended without progress, and nothing was sent since

	failure atomic.Pointer[error]
	failed  chan struct{} // closed when there is one
	c       counters
}

// NewEndpoint returns an endpoint for a MAC with one receive queue. A MAC with
// several is refused with an error that is errors.ErrUnsupported, because nobody
// would serve the others. The MAC stays open when the endpoint is closed, and is
// closed after it.
//
// The stack receives what the MAC's filter lets in: IPv6 needs the multicasts of
// its neighbour discovery, so the MAC is opened with stmmac.WithAllMulticast.
func NewEndpoint(n NIC, opts ...Option) (*Endpoint, error) {
	if rx, _ := n.NumQueues(); rx != 1 {
		return nil, fmt.Errorf("netstack: a MAC with %d receive queues: %w; open it with one", rx, errors.ErrUnsupported)
	}
	if a := n.HardwareAddr(); len(a) != header.EthernetAddressSize {
		return nil, fmt.Errorf("netstack: hardware address %q: %w", a, os.ErrInvalid)
	}
	e := &Endpoint{
		nic: n, rx: n.Rx(0), tx: n.Tx(0).Shared(), pool: n.Pool(),
		after: wallAfterFunc, sendable: true,
		turn: make(chan struct{}, 1), freed: make(chan struct{}, 1), failed: make(chan struct{}),
	}
	e.batches.New = func() any { return new([txBatch]*pagepool.Buf) }
	e.waits, e.endWaits = context.WithCancelCause(context.Background())
	e.limit.Store(math.MaxUint32)
	for _, o := range opts {
		o(e)
	}
	addr := tcpip.LinkAddress(n.HardwareAddr())
	e.addr.Store(&addr)
	return e, nil
}

// MTU implements [stack.LinkEndpoint]: the longest IP packet in bytes. It
// follows that of the MAC, below what SetMTU allowed.
func (e *Endpoint) MTU() uint32 { return min(uint32(max(e.nic.MTU(), 0)), e.limit.Load()) }

// SetMTU implements [stack.LinkEndpoint]. It lowers the MTU below that of the
// MAC, for this stack alone, or raises it to that of the MAC at most: from then on
// the endpoint has the MAC's, also when that changes. Less than 68 bytes, the
// least of IPv4 (RFC 791), is refused: nothing changes, and the refusal is
// logged.
func (e *Endpoint) SetMTU(mtu uint32) {
	most := uint32(max(e.nic.MTU(), 0))
	switch {
	case mtu < header.IPv4MinimumMTU:
		e.log.Warn().Uint32("mtu", mtu).Msg("refused an MTU below that of IPv4")
		return
	case mtu > most:
		e.log.Warn().Uint32("mtu", mtu).Uint32("mac", most).Msg("the MTU is limited by that of the MAC")
		mtu = math.MaxUint32
	case mtu == most:
		mtu = math.MaxUint32
	}
	e.limit.Store(mtu)
}

// MaxHeaderLength implements [stack.LinkEndpoint].
func (e *Endpoint) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// LinkAddress implements [stack.LinkEndpoint]. It is that of the MAC when the
// endpoint was made, or what SetLinkAddress took.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress { return *e.addr.Load() }

// SetLinkAddress implements [stack.LinkEndpoint]. It takes the address that the
// MAC has now, so that the stack follows a change of it. Another is refused and
// logged: the MAC would not let in what is sent to it.
func (e *Endpoint) SetLinkAddress(addr tcpip.LinkAddress) {
	if mac := tcpip.LinkAddress(e.nic.HardwareAddr()); addr != mac {
		e.log.Warn().Stringer("addr", addr).Stringer("mac", mac).Msg("refused an address that the MAC does not have")
		return
	}
	e.addr.Store(&addr)
}

// Capabilities implements [stack.LinkEndpoint]: neighbours are to be resolved,
// and no checksum is computed or verified here. (Receive offload is a promise for
// every packet, also those that no MAC verifies; with transmit offload gVisor
// sends fragments without a checksum.)
func (e *Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityResolutionRequired
}

// ARPHardwareType implements [stack.LinkEndpoint].
func (e *Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader implements [stack.LinkEndpoint].
func (e *Endpoint) AddHeader(pkt *stack.PacketBuffer) {
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: pkt.EgressRoute.LocalLinkAddress,
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseHeader implements [stack.LinkEndpoint].
func (e *Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	return ok
}

// Attach implements [stack.LinkEndpoint]: it starts to receive for a stack, in
// place of the one before if there is one. With nil it stops, and returns when
// the receive queue is not used any more. A packet that is inside the stack then
// is not waited for, because the stack calls Attach with a lock held that this
// packet may need; Close waits for it.
func (e *Endpoint) Attach(d stack.NetworkDispatcher) {
	e.mu.Lock()
	old := e.to
	e.to = nil
	if d != nil && !e.closed {
		e.to = newReceiver(e, d, e.last)
		e.last = e.to
		go e.to.run()
	}
	e.mu.Unlock()
	if old != nil {
		old.stop()
	}
}

// IsAttached implements [stack.LinkEndpoint].
func (e *Endpoint) IsAttached() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to != nil
}

// Wait implements [stack.LinkEndpoint]: it returns when the receive queue is not
// used any more, which Attach(nil) or Close bring about. Like Attach it waits for
// no packet that is inside the stack.
func (e *Endpoint) Wait() {
	e.mu.Lock()
	r := e.last
	e.mu.Unlock()
	if r != nil {
		r.quiet()
	}
}

// SetOnCloseAction implements [stack.LinkEndpoint].
func (e *Endpoint) SetOnCloseAction(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onClose = f
}

// Close implements [stack.LinkEndpoint]. It ends everybody who waits to send,
// with an error, stops receiving and returns when no goroutine of the endpoint
// and nobody who sends is left. It is safe to call twice. It must not be called
// from inside the stack, that is by a handler of a received packet. The MAC stays
// open.
func (e *Endpoint) Close() {
	e.endWaits(errClosed)
	e.senders.Lock()
	e.sendable = false
	e.senders.Unlock()

	e.mu.Lock()
	r := e.last
	e.to, e.closed = nil, true
	action := e.onClose
	e.onClose = nil
	e.mu.Unlock()
	if r != nil {
		r.stop()
		<-r.done
	}
	if action != nil {
		action()
	}
}

// Failed is closed when Err has something to say.
func (e *Endpoint) Failed() <-chan struct{} { return e.failed }

// Err says why receiving ended although nobody stopped it, or nil: the MAC was
// closed or failed.
func (e *Endpoint) Err() error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// fail notes why receiving ended.
func (e *Endpoint) fail(err error) {
	if e.failure.CompareAndSwap(nil, &err) {
		close(e.failed)
		e.log.Error().Err(err).Msg("receiving has ended")
	}
}
