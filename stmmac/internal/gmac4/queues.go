package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// schedulers are the values of MTL_Operation_Mode.SCHALG.
var schedulers = [...]uint32{
	core.TxWRR: gmac4reg.SCHALGWRR, core.TxWFQ: gmac4reg.SCHALGWFQ, core.TxDWRR: gmac4reg.SCHALGDWRR, core.TxSP: gmac4reg.SCHALGSP,
}

// setupQueues programs what several queues share. Every receive queue that can
// get frames is on and has the DMA channel of its number.
func (h *HW) setupQueues() {
	q := &h.cfg.Queues
	var mode gmac4reg.MTLMode
	if h.tx > 1 {
		if q.TxSched != core.TxSP {
			for i := range h.tx {
				gmac4reg.MTLTxQQuantumWeight.Store(h.ch[i].mtl, gmac4reg.ISCQW.Of(uint32(q.TxWeight(i))))
			}
		}
		mode |= gmac4reg.SCHALG.Of(schedulers[q.TxSched])
	}
	if h.rx > 1 && q.RxArb == core.RxWSP {
		for i, w := range q.RxWeights {
			gmac4reg.MTLRxQControl.Store(h.ch[i].mtl, gmac4reg.RXQWEGT.Of(uint32(w)))
		}
		mode |= gmac4reg.RAA
	}
	if h.tx > 1 || mode != 0 {
		gmac4reg.MTLOperationMode.Store(h.csr, mode)
	}
	var dma [2]uint32
	var enable uint32
	for i := range h.rx {
		dma[i/4] |= uint32(i) << (8 * (i % 4))
		enable |= gmac4reg.RxQDCB << (2 * i)
	}
	gmac4reg.MTLRxQDMAMap0.Store(h.csr, dma[0])
	if h.rx > 4 {
		gmac4reg.MTLRxQDMAMap1.Store(h.csr, dma[1])
	}
	gmac4reg.MACRxQCtrl0.Store(h.csr, enable)
	if h.rx > 1 {
		h.setupRouting(q)
	}
}

// setupRouting says which frames go to which receive queue.
func (h *HW) setupRouting(q *core.Queues) {
	// A priority belongs to one queue.
	var priorities [2]uint32
	for p := range 8 {
		to := q.OfPriority(p, h.rx)
		priorities[to/4] |= 1 << (8*(to%4) + p)
	}
	gmac4reg.MACRxQCtrl2.Store(h.csr, priorities[0])
	gmac4reg.MACRxQCtrl3.Store(h.csr, priorities[1])
	route := gmac4reg.UPQ.Of(uint32(q.Untagged)) | gmac4reg.DCBCPQ.Of(uint32(q.Control)) |
		gmac4reg.PTPQ.Of(uint32(q.PTP)) | gmac4reg.AVCPQ.Of(uint32(q.AVControl))
	if q.TaggedControl {
		route |= gmac4reg.TACPQE
	}
	if q.RouteGroups {
		route |= gmac4reg.MCBCQEN | gmac4reg.MCBCQ.Of(uint32(q.Groups))
	}
	gmac4reg.MACRxQCtrl1.Store(h.csr, route)
}

// txMode is the mode of a transmit queue of n bytes. It stores and forwards: in
// threshold mode an underflow cuts frames.
func txMode(n int) gmac4reg.MTLTxQMode {
	return gmac4reg.TSF | gmac4reg.TXQEN.Of(gmac4reg.TXQENEnabled) | gmac4reg.TQS.Of(uint32(n/256-1))
}

// DivideTxFIFO implements core.Hardware. No queue grows before another has
// shrunk: their sum never exceeds the FIFO.
func (h *HW) DivideTxFIFO(n int) {
	n = max(1, min(n, h.tx))
	each := txMode(h.txShareOf(n))
	for i := range h.tx {
		reg := gmac4reg.MTLTxQOperationMode
		was := reg.Load(h.ch[i].mtl)
		switch {
		case i >= n:
			reg.Store(h.ch[i].mtl, 0)
		case gmac4reg.TQS.Get(was) > gmac4reg.TQS.Get(each):
			reg.Store(h.ch[i].mtl, each)
		}
	}
	for i := range n {
		gmac4reg.MTLTxQOperationMode.Store(h.ch[i].mtl, each)
	}
}
