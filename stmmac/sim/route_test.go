package sim

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// typed is a frame to dst of a type, tagged with pcp or not (-1).
func typed(dst [6]byte, etype uint16, first byte, pcp int) []byte {
	f := frameTo(dst, 80, 1)
	at := 12
	if pcp >= 0 {
		binary.BigEndian.PutUint16(f[12:], typeVLAN)
		binary.BigEndian.PutUint16(f[14:], uint16(pcp)<<13|5)
		at = 16
	}
	binary.BigEndian.PutUint16(f[at:], etype)
	f[at+2] = first
	return f
}

// routeClass is a kind of frame that D47 asks about.
type routeClass struct {
	name  string
	frame []byte
	pcp   int // of a tagged frame, -1
}

var (
	ptpDst  = [6]byte{0x01, 0x1b, 0x19, 0, 0, 0}
	lldpDst = [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}
	ipv6Dst = [6]byte{0x33, 0x33, 0, 0, 0, 1}
)

func routeClasses() []routeClass {
	c := []routeClass{
		{"unicast", typed(testMAC, 0x0800, 0x45, -1), -1},
		{"ARP broadcast", typed(bcast, typeARP, 0, -1), -1},
		{"IPv6 multicast", typed(ipv6Dst, 0x86dd, 0x60, -1), -1},
		{"PTP", typed(ptpDst, typePTP, 0, -1), -1},
		{"PTP to us", typed(testMAC, typePTP, 0, -1), -1},
		{"tagged PTP", typed(ptpDst, typePTP, 0, 3), 3},
		{"LLDP", typed(lldpDst, typeLLDP, 0, -1), -1},
		{"MAC control", typed(testMAC, typeControl, 0x55, -1), -1},
		{"AVTP control", typed(testMAC, typeAVTP, 0x80, -1), -1},
		{"AVTP data", typed(testMAC, typeAVTP, 0x02, -1), -1},
		{"tagged AVTP control", typed(testMAC, typeAVTP, 0x80, 2), 2},
		{"tagged broadcast", typed(bcast, 0x0800, 0x45, 1), 1},
	}
	for pcp := range 8 {
		c = append(c, routeClass{fmt.Sprint("PCP ", pcp), typed(testMAC, 0x0800, 0x45, pcp), pcp})
	}
	return c
}

// routeRig has n receive queues, all enabled and each with its own channel, and no
// DMA: frames stay in their queues.
func routeRig(t *testing.T, n int) *rig {
	t.Helper()
	g := newRig(t, withConfig(func(c *Config) { c.RxQueues = n }))
	g.setup()
	for q := range n {
		r4.MTLRxQOperationMode.Store(g.mtl(q), r4.RSF|r4.RQS.Of(uint32(16384/n/256-1)))
		r4.MACRxQCtrl0.Update(g.r, 0, uint32(r4.RxQDCB)<<(2*q))
		m := r4.MTLRxQDMAMap0
		if q >= 4 {
			m = r4.MTLRxQDMAMap1
		}
		m.Update(g.r, 0, uint32(q)<<(q%4*8))
	}
	r4.MACPacketFilter.Store(g.r, r4.PM|r4.PCF.Of(2))
	r4.MACConfiguration.Update(g.r, 0, r4.RE)
	return g
}

// where puts a frame on the wire and says in which queue it ended, -1: none.
func (g *rig) where(f []byte) (queue, channel int) {
	g.t.Helper()
	g.w.inject(f)
	g.step()
	queue = -1
	for q := range g.d.rxq {
		if x := &g.d.rxq[q]; !x.empty() {
			if queue >= 0 {
				g.t.Fatal("in two queues")
			}
			queue, channel = q, int(x.frames[x.head].meta.ch)
			x.drop(g.d.Model)
		}
	}
	return queue, channel
}

// TestRouteClasses is D47 with 1, 2, 4 and 8 queues: each class arrives in the queue
// that the registers name, by its channel, and nothing vanishes uncounted.
func TestRouteClasses(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		// Every field names another queue as far as there are some.
		at := func(k int) uint32 { return uint32(k % n) }
		plain := func(c routeClass) int {
			if c.pcp >= 0 {
				return c.pcp * n / 8
			}
			return int(at(5))
		}
		prio := func(g *rig) {
			for p := range 8 {
				q := p * n / 8
				reg := r4.MACRxQCtrl2
				if q >= 4 {
					reg = r4.MACRxQCtrl3
				}
				reg.Update(g.r, 0, 1<<p<<(q%4*8))
			}
		}
		for _, c := range []struct {
			name string
			ctrl r4.RxQCtrl1
			want func(routeClass) int
		}{
			{"by type", r4.UPQ.Of(at(5)) | r4.PTPQ.Of(at(1)) | r4.DCBCPQ.Of(at(2)) | r4.AVCPQ.Of(at(3)), func(c routeClass) int {
				switch c.name {
				case "PTP", "PTP to us":
					return int(at(1))
				case "LLDP", "MAC control":
					return int(at(2))
				case "AVTP control":
					return int(at(3))
				}
				return plain(c)
			}},
			{"group", r4.UPQ.Of(at(5)) | r4.PTPQ.Of(at(1)) | r4.MCBCQ.Of(at(6)) | r4.MCBCQEN, func(c routeClass) int {
				switch c.name {
				case "PTP", "PTP to us":
					return int(at(1))
				case "LLDP", "MAC control", "AVTP control":
					return 0
				case "ARP broadcast", "IPv6 multicast", "tagged broadcast", "tagged PTP":
					return int(at(6))
				}
				return plain(c)
			}},
			{"tagged too", r4.UPQ.Of(at(5)) | r4.PTPQ.Of(at(1)) | r4.AVCPQ.Of(at(3)) | r4.TACPQE | r4.TPQC.Of(1), func(c routeClass) int {
				switch c.name {
				case "PTP", "PTP to us", "tagged PTP":
					return int(at(1))
				case "AVTP control", "tagged AVTP control":
					return int(at(3))
				case "LLDP", "MAC control":
					return 0
				}
				return plain(c)
			}},
			{"group bits without enable", r4.MCBCQ.Of(at(7)), func(c routeClass) int {
				if c.pcp >= 0 {
					return plain(c)
				}
				return 0
			}},
		} {
			g := routeRig(t, n)
			r4.MACRxQCtrl1.Store(g.r, c.ctrl)
			prio(g)
			for _, class := range routeClasses() {
				q, ch := g.where(class.frame)
				if want := c.want(class); q != want || ch != q {
					t.Errorf("%d queues, %s: %s in queue %d, channel %d, want %d", n, c.name, class.name, q, ch, want)
				}
			}
			if s := g.d.Stats(); s.RxDropped != 0 || s.RxFiltered != 0 {
				t.Errorf("%+v", s)
			}
			g.clean()
		}
	}
}

// TestRouteNowhere: a queue that is off, is not there or has a channel that is not
// there loses its frames, which is counted.
func TestRouteNowhere(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for name, c := range map[string]func(*rig){
			"queue off": func(g *rig) { r4.MACRxQCtrl0.Store(g.r, 0) },
			"channel":   func(g *rig) { r4.MTLRxQDMAMap0.Store(g.r, 7) },
			"queue":     func(g *rig) { r4.MACRxQCtrl1.Store(g.r, r4.UPQ.Of(7)) },
			"address": func(g *rig) {
				r4.MTLRxQDMAMap0.Store(g.r, uint32(r4.RxQDynamic))
				r4.MACAddressHigh.Store(g.r, r4.DCS.Of(7)|r4.AddressHigh(testMAC[5])<<8|r4.AddressHigh(testMAC[4]))
				r4.MACAddressLow.Store(g.r, binary.LittleEndian.Uint32(testMAC[:]))
			},
		} {
			if n == 8 && name != "queue off" {
				continue // all of them exist
			}
			g := routeRig(t, n)
			c(g)
			f := testFrame(60, 1)
			for k := range uint64(3) {
				if q, _ := g.where(f); q != -1 {
					t.Errorf("%d queues, %s: in queue %d", n, name, q)
				}
				if s := g.d.Stats(); s.RxUnrouted != k+1 || s.RxDropped != k+1 {
					t.Errorf("%d queues, %s: %+v", n, name, s)
				}
			}
			if v := g.r.Load32(r4.RxPacketsCountGoodBad); v != 3 {
				t.Errorf("%d queues, %s: %d in the MAC's counter", n, name, v)
			}
		}
	}
}

// TestRouteByAddress: DCS of the address that matched names the channel.
func TestRouteByAddress(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		g := routeRig(t, n)
		r4.MTLRxQDMAMap0.Store(g.r, uint32(r4.RxQDynamic))
		for i := 1; i < n; i++ {
			a := [6]byte{2, 0, 0, 0, 1, byte(i)}
			r4.MACAddressHigh.At(i, r4.AddressStride).Store(g.r, r4.AE|r4.DCS.Of(uint32(i))|r4.AddressHigh(a[5])<<8|r4.AddressHigh(a[4]))
			r4.MACAddressLow.At(i, r4.AddressStride).Store(g.r, binary.LittleEndian.Uint32(a[:]))
		}
		for i := 1; i < n; i++ {
			if q, ch := g.where(frameTo([6]byte{2, 0, 0, 0, 1, byte(i)}, 60, 1)); q != 0 || ch != i {
				t.Errorf("%d queues: address %d in queue %d, channel %d", n, i, q, ch)
			}
		}
		if q, ch := g.where(frameTo(bcast, 60, 1)); q != 0 || ch != 0 {
			t.Errorf("%d queues: broadcast in queue %d, channel %d", n, q, ch)
		}
	}
}

// TestRouteFailed: MAC_RxQ_Ctrl4 has the frames that failed a filter and are received
// all the same.
func TestRouteFailed(t *testing.T) {
	uni, multi, vlan := frameTo(foreign, 60, 1), frameTo(mcast, 60, 2), tagged(60, 7, 3)
	foreignTagged := tagged(60, 100, 4)
	copy(foreignTagged, foreign[:])
	ours := testFrame(60, 5)
	all := r4.UFFQE | r4.UFFQ.Of(1) | r4.MFFQE | r4.MFFQ.Of(2) | r4.VFFQE | r4.VFFQ.Of(3)
	for _, c := range []struct {
		name                 string
		filter               r4.PacketFilter
		ctrl                 r4.RxQCtrl4
		uni, multi, vlan, ft int // queues; -1: filtered
	}{
		{"no RA", r4.VTFE, all, -1, -1, -1, -1},
		{"RA", r4.RA | r4.VTFE, all, 1, 2, 3, 3},
		{"PR", r4.PR, all, 1, 2, 0, 3},
		{"PR and RA", r4.PR | r4.RA | r4.VTFE, all, 1, 2, 3, 3},
		{"unicast", r4.RA | r4.VTFE, r4.UFFQE | r4.UFFQ.Of(3), 3, 0, 0, 3},
		{"multicast", r4.RA | r4.VTFE, r4.MFFQE | r4.MFFQ.Of(3), 0, 3, 0, 0},
		{"numbers without enables", r4.RA | r4.VTFE, r4.UFFQ.Of(1) | r4.MFFQ.Of(2) | r4.VFFQ.Of(3), 0, 0, 0, 0},
		{"queue that is not there", r4.RA | r4.VTFE, r4.UFFQE | r4.UFFQ.Of(7), -1, 0, 0, -1},
	} {
		g := routeRig(t, 4)
		r4.MACPacketFilter.Store(g.r, c.filter)
		r4.MACVLANTag.Store(g.r, uint32(r4.ETV|100))
		r4.MACRxQCtrl4.Store(g.r, c.ctrl)
		for k, f := range [][]byte{uni, multi, vlan, foreignTagged, ours} {
			want := [...]int{c.uni, c.multi, c.vlan, c.ft, 0}[k]
			if q, _ := g.where(f); q != want {
				t.Errorf("%s: frame %d in queue %d, want %d", c.name, k, q, want)
			}
		}
	}
}

// TestFlowRegisters: what the registers of this part keep.
func TestFlowRegisters(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxQueues, c.TxQueues = 2, 5 }))
	for _, c := range []struct {
		name string
		r    mmio.Region
		off  uint32
		want uint32
	}{
		{"MAC_Q1_Tx_Flow_Ctrl", g.r, uint32(r4.MACQxTxFlow) + 4, 0xffff00f2},
		{"MAC_Q5_Tx_Flow_Ctrl", g.r, uint32(r4.MACQxTxFlow) + 20, 0},
		{"MAC_Rx_Flow_Ctrl", g.r, uint32(r4.MACRxFlow), 3},
		{"MAC_RxQ_Ctrl4", g.r, uint32(r4.MACRxQCtrl4), 0x000f0f0f},
		{"MAC_TxQ_Prty_Map0", g.r, uint32(r4.MACTxQPrtyMap0), 0xffffffff},
		{"MAC_TxQ_Prty_Map1", g.r, uint32(r4.MACTxQPrtyMap1), 0xff},
		{"MAC_RxQ_Ctrl1", g.r, uint32(r4.MACRxQCtrl1), 0x00777777},
		{"MTL_TxQ1_Quantum_Weight", g.mtl(1), uint32(r4.MTLTxQQuantumWeight), 0x1fffff},
		{"MTL_RxQ1_Control", g.mtl(1), uint32(r4.MTLRxQControl), 0xf},
		{"MTL_RxQ2_Control", g.mtl(2), uint32(r4.MTLRxQControl), 0},
	} {
		c.r.Store32(c.off, 0xffffffff)
		if got := c.r.Load32(c.off); got != c.want {
			t.Errorf("%s holds %#x, want %#x", c.name, got, c.want)
		}
	}
	g.reset()
	if v := g.r.Load32(uint32(r4.MACRxQCtrl4)); v != 0 {
		t.Errorf("MAC_RxQ_Ctrl4 is %#x after the reset", v)
	}
}
