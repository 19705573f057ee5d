package netstack

import (
	"context"
	"runtime/pprof"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gostmmac/gostmmac/pagepool"
)

// rxBatch is how many frames are taken off the ring and copied at a time. The
// buffers of a batch are back in the pool before its first packet is delivered.
const rxBatch = 64

// receiver receives for one dispatcher, on a goroutine of its own.
type receiver struct {
	e      *Endpoint
	to     stack.NetworkDispatcher
	before *receiver // has to be out of the queue first; nil if there was none
	done   chan struct{}

	ctx    context.Context // ends when no more is to be received
	cancel context.CancelFunc
	queue  sync.Mutex // held by the goroutine except while it is inside the stack

	bufs [rxBatch]*pagepool.Buf
	pkts [rxBatch]*stack.PacketBuffer
}

func newReceiver(e *Endpoint, d stack.NetworkDispatcher, before *receiver) *receiver {
	r := &receiver{e: e, to: d, before: before, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// stop keeps the goroutine from using the queue and from delivering any further
// packet. One that is inside the stack is not waited for.
func (r *receiver) stop() {
	r.cancel()
	r.quiet()
}

// quiet returns when the goroutine is not in the queue. After stop it does not
// come back there.
func (r *receiver) quiet() {
	select {
	case <-r.ctx.Done():
	case <-r.done:
	}
	r.queue.Lock()
	defer r.queue.Unlock()
}

func (r *receiver) run() {
	defer close(r.done)
	defer r.cancel()
	if r.before != nil {
		// A queue belongs to one goroutine at a time.
		r.before.quiet()
		r.before = nil
	}
	labels := pprof.Labels("nic", r.e.LinkAddress().String(), "queue", "rx0")
	pprof.Do(r.ctx, labels, func(context.Context) {
		for {
			n, err := r.receive()
			if err != nil {
				if r.ctx.Err() == nil {
					r.e.fail(err)
				}
				return
			}
			r.deliver(n)
		}
	})
}

// receive waits for frames and copies a batch of them into packets.
func (r *receiver) receive() (int, error) {
	r.queue.Lock()
	defer r.queue.Unlock()
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		n := r.e.rx.Recv(r.bufs[:])
		if n == 0 {
			if err := r.e.rx.Wait(r.ctx); err != nil {
				return 0, err
			}
			continue
		}
		k := r.copy(r.bufs[:n])
		// At once, so that the ring has them while the stack is at work.
		r.e.pool.FreeBatch(r.bufs[:n])
		if k > 0 {
			return k, nil
		}
	}
}

// copy makes packets of the frames that are for the stack and returns how many.
func (r *receiver) copy(bufs []*pagepool.Buf) int {
	c := &r.e.c
	own := *r.e.addr.Load()
	n, bytes := 0, 0
	for _, b := range bufs {
		size := b.FrameLen()
		bytes += size
		switch {
		case b.Flags&pagepool.RxCsumBad != 0:
			c.rxChecksum.Add(1)
			continue
		case b.Flags&(pagepool.VLANTag|pagepool.InnerVLANTag) != 0:
			c.rxVLAN.Add(1)
			continue
		}
		v := buffer.NewView(size)
		for p := b; p != nil; p = p.Next() {
			v.Write(p.Bytes())
		}
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
		if why := classify(pkt, own); why != rxDeliver {
			pkt.DecRef()
			if why == rxShort {
				c.rxShort.Add(1)
			} else {
				c.rxOtherHost.Add(1)
			}
			continue
		}
		r.pkts[n] = pkt
		n++
	}
	c.rxPackets.Add(uint64(len(bufs)))
	c.rxBytes.Add(uint64(bytes))
	return n
}

// rxVerdict says what becomes of a frame.
type rxVerdict int

const (
	rxDeliver rxVerdict = iota
	rxShort             // no whole Ethernet header
	rxOther             // to the address of somebody else
)

// classify takes the Ethernet header off a packet and notes to whom it was sent.
func classify(pkt *stack.PacketBuffer, own tcpip.LinkAddress) rxVerdict {
	h, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	if !ok {
		return rxShort
	}
	eth := header.Ethernet(h)
	pkt.NetworkProtocolNumber = eth.Type()
	switch dst := h[:header.EthernetAddressSize]; {
	case string(dst) == string(own):
		pkt.PktType = tcpip.PacketHost
	case string(dst) == string(header.EthernetBroadcastAddress):
		pkt.PktType = tcpip.PacketBroadcast
	case dst[0]&1 != 0:
		pkt.PktType = tcpip.PacketMulticast
	default:
		// The filter let it in for another reason. IP does not look at it.
		return rxOther
	}
	return rxDeliver
}

// deliver gives the first n packets to the stack. What was not delivered when
// the receiver was stopped is dropped.
func (r *receiver) deliver(n int) {
	for i, pkt := range r.pkts[:n] {
		r.pkts[i] = nil
		if r.ctx.Err() == nil {
			r.to.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
			r.e.c.rxDelivered.Add(1)
		} else {
			r.e.c.rxDetached.Add(1)
		}
		pkt.DecRef()
	}
}
