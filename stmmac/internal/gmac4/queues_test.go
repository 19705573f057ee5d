package gmac4

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func TestQueuesTrace(t *testing.T) {
	for name, c := range map[string]struct {
		rx, tx int
		q      core.Queues
		want   []string
	}{
		"one": {1, 1, core.Queues{}, []string{"MTL_RxQ_DMA_Map0 00000000", "MAC_RxQ_Ctrl0 00000002"}},
		"two": {2, 2, core.Queues{}, []string{
			"MTL_TxQ0_Quantum_Weight 00000010", "MTL_TxQ1_Quantum_Weight 00000010", "MTL_Operation_Mode 00000000",
			"MTL_RxQ_DMA_Map0 00000100", "MAC_RxQ_Ctrl0 0000000a",
			"MAC_RxQ_Ctrl2 0000f00f", "MAC_RxQ_Ctrl3 00000000", "MAC_RxQ_Ctrl1 00000000"}},
		"five receive queues, routed": {5, 1, core.Queues{
			RxArb: core.RxWSP, RxWeights: []int{1, 2, 3, 4, 7}, PriorityQueue: []int{4, 4, 0, 1, 2, 3, 4, 0},
			Untagged: 1, Control: 2, PTP: 3, AVControl: 4, TaggedControl: true, RouteGroups: true, Groups: 4,
		}, []string{
			"MTL_RxQ0_Control 00000001", "MTL_RxQ1_Control 00000002", "MTL_RxQ2_Control 00000003", "MTL_RxQ3_Control 00000004", "MTL_RxQ4_Control 00000007",
			"MTL_Operation_Mode 00000004", "MTL_RxQ_DMA_Map0 03020100", "MTL_RxQ_DMA_Map1 00000004", "MAC_RxQ_Ctrl0 000002aa",
			"MAC_RxQ_Ctrl2 20100884", "MAC_RxQ_Ctrl3 00000043", "MAC_RxQ_Ctrl1 00341234"}},
		"weighted fair": {1, 2, core.Queues{TxSched: core.TxWFQ, TxWeights: []int{1, 0x3fff}}, []string{
			"MTL_TxQ0_Quantum_Weight 00000001", "MTL_TxQ1_Quantum_Weight 00003fff", "MTL_Operation_Mode 00000020",
			"MTL_RxQ_DMA_Map0 00000000", "MAC_RxQ_Ctrl0 00000002"}},
		"deficit": {1, 2, core.Queues{TxSched: core.TxDWRR}, []string{
			"MTL_TxQ0_Quantum_Weight 00000800", "MTL_TxQ1_Quantum_Weight 00000800", "MTL_Operation_Mode 00000040",
			"MTL_RxQ_DMA_Map0 00000000", "MAC_RxQ_Ctrl0 00000002"}},
		"strict": {1, 2, core.Queues{TxSched: core.TxSP}, []string{
			"MTL_Operation_Mode 00000060", "MTL_RxQ_DMA_Map0 00000000", "MAC_RxQ_Ctrl0 00000002"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.q.Check(c.rx, c.tx, &core.Features{DCB: true, AV: true}); err != nil {
				t.Fatal(err)
			}
			h, f := newHW(core.Config{RxQueues: c.rx, TxQueues: c.tx, Queues: c.q}, core.Features{})
			h.setupQueues()
			if d := cmp.Diff(c.want, named(stores(f))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestQueuesCheck(t *testing.T) {
	for name, c := range map[string]struct {
		q    core.Queues
		feat core.Features
		err  error
	}{
		"zero":                      {core.Queues{}, core.Features{}, nil},
		"scheduler":                 {core.Queues{TxSched: 4}, core.Features{DCB: true}, os.ErrInvalid},
		"arbiter":                   {core.Queues{RxArb: 2}, core.Features{}, os.ErrInvalid},
		"WFQ without DCB":           {core.Queues{TxSched: core.TxWFQ}, core.Features{}, errors.ErrUnsupported},
		"DWRR without DCB":          {core.Queues{TxSched: core.TxDWRR}, core.Features{AV: true}, errors.ErrUnsupported},
		"SP":                        {core.Queues{TxSched: core.TxSP}, core.Features{}, nil},
		"SP with weights":           {core.Queues{TxSched: core.TxSP, TxWeights: []int{1, 1}}, core.Features{}, os.ErrInvalid},
		"one weight":                {core.Queues{TxWeights: []int{1}}, core.Features{}, os.ErrInvalid},
		"weight 0":                  {core.Queues{TxWeights: []int{1, 0}}, core.Features{}, os.ErrInvalid},
		"weight 100":                {core.Queues{TxWeights: []int{1, 100}}, core.Features{}, nil},
		"weight 101":                {core.Queues{TxWeights: []int{1, 101}}, core.Features{}, os.ErrInvalid},
		"largest quantum":           {core.Queues{TxSched: core.TxDWRR, TxWeights: []int{1, 1250000}}, core.Features{DCB: true}, nil},
		"quantum":                   {core.Queues{TxSched: core.TxDWRR, TxWeights: []int{1, 1250001}}, core.Features{DCB: true}, os.ErrInvalid},
		"receive weights, strict":   {core.Queues{RxWeights: []int{1, 1, 1}}, core.Features{}, os.ErrInvalid},
		"receive weights":           {core.Queues{RxArb: core.RxWSP, RxWeights: []int{1, 1, 7}}, core.Features{}, nil},
		"receive weight 8":          {core.Queues{RxArb: core.RxWSP, RxWeights: []int{1, 1, 8}}, core.Features{}, os.ErrInvalid},
		"seven priorities":          {core.Queues{PriorityQueue: make([]int, 7)}, core.Features{}, os.ErrInvalid},
		"priority to no queue":      {core.Queues{PriorityQueue: []int{0, 0, 0, 0, 0, 0, 0, 3}}, core.Features{}, os.ErrInvalid},
		"priority to queue -1":      {core.Queues{PriorityQueue: []int{-1, 0, 0, 0, 0, 0, 0, 0}}, core.Features{}, os.ErrInvalid},
		"untagged":                  {core.Queues{Untagged: 3}, core.Features{}, os.ErrInvalid},
		"control":                   {core.Queues{Control: -1}, core.Features{}, os.ErrInvalid},
		"PTP":                       {core.Queues{PTP: 8}, core.Features{}, os.ErrInvalid},
		"groups":                    {core.Queues{RouteGroups: true, Groups: 3}, core.Features{}, os.ErrInvalid},
		"groups without the switch": {core.Queues{Groups: 1}, core.Features{}, os.ErrInvalid},
		"AV":                        {core.Queues{AVControl: 1}, core.Features{}, errors.ErrUnsupported},
		"tagged AV":                 {core.Queues{TaggedControl: true}, core.Features{}, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.q.Check(3, 2, &c.feat); !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("%v, want %v", err, c.err)
			}
		})
	}
}

// TestDivideTxFIFO: the queues never exceed the FIFO, at no store.
func TestDivideTxFIFO(t *testing.T) {
	const fifo = 16384
	h, f := newHW(core.Config{TxQueues: 4}, core.Features{TxFIFO: fifo})
	reg := func(q int) uint32 { return 0xd00 + 0x40*uint32(q) }
	for q := range 4 {
		f.Set(reg(q), uint32(txMode(h.txShare())))
		f.OnStore(reg(q), func(uint32) {
			sum := 0
			for i := range 4 {
				if v := gmac4reg.MTLTxQMode(f.Peek(reg(i))); gmac4reg.TXQEN.Get(v) != 0 {
					sum += 256 * (int(gmac4reg.TQS.Get(v)) + 1)
				}
			}
			if sum > fifo {
				t.Errorf("the queues have %d bytes", sum)
			}
		})
	}
	for _, c := range []struct {
		n    int
		want [4]uint32
	}{
		{1, [4]uint32{0x3f000a}}, {4, [4]uint32{0xf000a, 0xf000a, 0xf000a, 0xf000a}}, {2, [4]uint32{0x1f000a, 0x1f000a}},
		{3, [4]uint32{0x14000a, 0x14000a, 0x14000a}}, {1, [4]uint32{0x3f000a}}, {0, [4]uint32{0x3f000a}}, {9, [4]uint32{0xf000a, 0xf000a, 0xf000a, 0xf000a}},
	} {
		h.DivideTxFIFO(c.n)
		for q, want := range c.want {
			if got := f.Peek(reg(q)); got != want {
				t.Errorf("for %d: queue %d is %#x, want %#x", c.n, q, got, want)
			}
		}
	}
}
