package sim

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/barrier"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacRig is a driver of a GMAC at the level of registers: it does what it is told and no
// more. Its lists of n descriptors are rings, of one or two buffers for each descriptor, or
// chains whose descriptors lie in memory backwards.
type gmacRig struct {
	*rig
	chain         bool
	size, second  int      // bytes of the buffers of a receive descriptor
	txPiece       int      // bytes of a transmit buffer
	txTwo         bool     // both buffers of a transmit descriptor are used
	cic, txFlags  rg.TDES1 // of every frame
	rxFlags       rg.RDES1 // of every descriptor
	operation     rg.Operation
	configuration rg.Configuration
	pieces        []txPiece
}

// txPiece is how much of a frame a transmit descriptor has in its buffers.
type txPiece struct{ one, two int }

type gmacOption func(*gmacRig)

func newGMACRig(t testing.TB, o gmacOption, opts ...rigOption) *gmacRig {
	t.Helper()
	all := append([]rigOption{withConfig(func(c *Config) { c.Generation = GMAC })}, opts...)
	g := &gmacRig{rig: newRig(t, all...), size: 1984, txPiece: 2047, operation: rg.RSF | rg.TSF | rg.DFF, configuration: rg.DM}
	if o != nil {
		o(g)
	}
	return g
}

// setup programs everything but the start bits.
func (g *gmacRig) setup() {
	g.t.Helper()
	rg.BusModeReg.Store(g.r, rg.SWR)
	g.clock.Advance(resetTime)
	if rg.BusModeReg.Load(g.r)&rg.SWR != 0 {
		g.t.Fatal("the software reset does not end")
	}
	rg.BusModeReg.Store(g.r, rg.USP|rg.PBL.Of(8)|rg.RPBL.Of(8)|rg.DSL.Of(uint32(g.dsl)))
	rg.ReceiveListAddress.Store(g.r, g.descAddr(g.rxBase, 0))
	rg.TransmitListAddress.Store(g.r, g.descAddr(g.txBase, 0))
	g.setAddress(0, testMAC)
	rg.MACConfiguration.Store(g.r, g.configuration)
	rg.OperationModeReg.Store(g.r, g.operation)
	g.rxHead, g.rxTail, g.txHead, g.txTail = 0, 0, 0, 0
}

func (g *gmacRig) setAddress(i int, a [6]byte) {
	high, low := rg.AddressAt(i)
	high.Store(g.r, rg.AE|rg.AddressHigh(a[5])<<8|rg.AddressHigh(a[4]))
	low.Store(g.r, binary.LittleEndian.Uint32(a[:]))
}

func (g *gmacRig) run() {
	rg.MACConfiguration.Update(g.r, 0, rg.RE|rg.TE)
	rg.OperationModeReg.Update(g.r, 0, rg.SR)
	rg.OperationModeReg.Update(g.r, 0, rg.ST)
}

// open is setup, a full receive list and run.
func (g *gmacRig) open() {
	g.t.Helper()
	g.setup()
	g.post(g.n)
	g.run()
}

// place is where descriptor i lies, in descriptors.
func (g *gmacRig) place(i int) int {
	if g.chain {
		return g.n - 1 - i%g.n
	}
	return i % g.n
}

func (g *gmacRig) descAddr(base uint64, i int) uint32 {
	return uint32(base) + uint32(g.place(i)*g.stride())
}

func (g *gmacRig) word(list []byte, i int) *[4]uint32 {
	return (*[4]uint32)(unsafe.Pointer(&list[g.place(i)*g.stride()]))
}

// write fills descriptor i, OWN last; the bits of list and chain are added.
func (g *gmacRig) write(list []byte, base uint64, i int, w [4]uint32) {
	switch {
	case g.chain:
		w[1] |= gmacChain
		w[3] = g.descAddr(base, i+1)
	case i%g.n == g.n-1:
		w[1] |= gmacEnd
	}
	d := g.word(list, i)
	d[1], d[2], d[3] = w[1], w[2], w[3]
	barrier.DMAWrite()
	barrier.StoreOwn(&d[0], w[0])
}

func (g *gmacRig) read(list []byte, i int) (w [4]uint32) {
	d := g.word(list, i)
	w[0] = barrier.LoadOwn(&d[0])
	barrier.DMARead()
	w[1], w[2], w[3] = d[1], d[2], d[3]
	return w
}

const secondOff = 2048 // of the second buffer in a slot

func (g *gmacRig) armRx(i int) {
	w := [4]uint32{uint32(rg.RxOWN), uint32(g.rxFlags | rg.RxRBS1.Of(uint32(g.size))), uint32(g.rxAddr(i)), 0}
	if g.second > 0 {
		w[1] |= uint32(rg.RxRBS2.Of(uint32(g.second)))
		w[3] = uint32(g.rxAddr(i)) + secondOff
	}
	g.write(g.rxRing, g.rxBase, i, w)
}

// post hands n more receive descriptors over.
func (g *gmacRig) post(n int) {
	for range n {
		g.armRx(g.rxTail)
		g.rxTail++
	}
	rg.ReceivePollDemand.Store(g.r, 1)
}

// recv takes the next received frame with its FCS, from as many descriptors as it has.
func (g *gmacRig) recv() (data []byte, status rg.RDES0, descs int, ok bool) {
	for i := g.rxHead; i != g.rxTail; i++ {
		w := g.read(g.rxRing, i)
		d0 := rg.RDES0(w[0])
		if d0&rg.RxOWN != 0 {
			return nil, d0, 0, false
		}
		if (descs == 0) != (d0&rg.RxFS != 0) {
			g.t.Fatalf("descriptor %d of a frame is %v %#x", descs, d0, w[0])
		}
		descs++
		total := int(rg.RxFL.Get(d0))
		n := total - len(data)
		first := min(n, g.size)
		data = append(data, g.rxBuf(i, first)...)
		if n > first {
			data = append(data, g.rxMem[i%g.n*g.slot+secondOff:][:n-first]...)
		}
		if d0&rg.RxLS != 0 {
			g.rxHead = i + 1
			return data, d0, descs, true
		}
	}
	return nil, 0, 0, false
}

func (g *gmacRig) mustRecv(want []byte) rg.RDES0 {
	g.t.Helper()
	got, d0, _, ok := g.recv()
	if !ok {
		g.t.Fatalf("no frame; descriptor %d is %#x, status %v", g.rxHead%g.n, uint32(d0), rg.StatusReg.Load(g.r))
	}
	sum := fcs(want)
	if !bytes.Equal(got, append(bytes.Clone(want), sum[:]...)) {
		g.t.Fatalf("a frame of %d bytes differs from the one of %d that was sent, status %#x", len(got), len(want), uint32(d0))
	}
	return d0
}

// queue writes the descriptors of a frame, the first OWN last, and returns how many.
func (g *gmacRig) queue(f []byte) (n int) {
	g.pieces = g.pieces[:0]
	off := 0
	take := func() (k int) {
		k = min(g.txPiece, len(f)-off)
		off += k
		return k
	}
	for off < len(f) {
		p := txPiece{one: take()}
		if g.txTwo {
			p.two = take()
		}
		g.pieces = append(g.pieces, p)
	}
	list := g.pieces
	off = 0
	for k, p := range list {
		i := g.txTail + k
		mem := g.txMem[i%g.n*g.slot:]
		copy(mem, f[off:][:p.one])
		copy(mem[secondOff:], f[off+p.one:][:p.two])
		off += p.one + p.two
		a := uint32(g.txIOVA) + uint32(i%g.n*g.slot)
		d1 := g.txFlags | rg.TxTBS1.Of(uint32(p.one)) | rg.TxTBS2.Of(uint32(p.two))
		if k == 0 {
			d1 |= rg.TxFS | g.cic
		}
		if k == len(list)-1 {
			d1 |= rg.TxLS | rg.TxIC
		}
		own := uint32(rg.TxOWN)
		if k == 0 {
			own = 0
		}
		g.write(g.txRing, g.txBase, i, [4]uint32{own, uint32(d1), a, a + secondOff})
	}
	barrier.DMAWrite()
	barrier.StoreOwn(&g.word(g.txRing, g.txTail)[0], uint32(rg.TxOWN))
	g.txTail += len(list)
	return len(list)
}

func (g *gmacRig) send(f []byte) (descs int) {
	descs = g.queue(f)
	rg.TransmitPollDemand.Store(g.r, 1)
	return descs
}

// reap counts finished transmit descriptors and returns the status of the last.
func (g *gmacRig) reap() (n int, last rg.TDES0) {
	for g.txHead != g.txTail {
		d0 := rg.TDES0(g.read(g.txRing, g.txHead)[0])
		if d0&rg.TxOWN != 0 {
			break
		}
		g.txHead++
		n++
		last = d0
	}
	return n, last
}

// events reads and clears the status, without the process states.
func (g *gmacRig) events() rg.Status {
	v := rg.StatusReg.Load(g.r)
	rg.StatusReg.Store(g.r, v)
	return v &^ (rg.RS.Mask() | rg.TS.Mask())
}

func (g *gmacRig) mustSend(f []byte) rg.TDES0 {
	g.t.Helper()
	want := g.send(f)
	g.step()
	n, d0 := g.reap()
	if n != want {
		g.t.Fatalf("%d descriptors back of %d, status %v", n, want, rg.StatusReg.Load(g.r))
	}
	if len(g.w.tx) != 1 || !bytes.Equal(g.w.tx[0].Data, f) {
		g.t.Fatalf("a frame of %d bytes did not reach the wire as it was", len(f))
	}
	g.w.tx = nil
	return d0
}

// wantKinds compares the kinds of violations with those that are wanted.
func (g *gmacRig) wantKinds(want ...ViolationKind) {
	g.t.Helper()
	got := g.kinds()
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		g.t.Errorf("violations (-want +got):\n%s\n%v", d, g.d.Audit())
	}
}
