package stmmac_test

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestMMC sends and receives the same mix of frames twice. What the device's
// own registers say of the first is what the driver says of the second, for
// every counter; and the driver's sums do not lose what was before.
func TestMMC(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithMTU(9000)}, bufSize: 9728})
	r.wire.elastic = true
	csr, err := r.dev.Region(0)
	r.must(err)
	mix := func() {
		var in [][]byte
		for i, n := range []int{46, 60, 61, 123, 124, 200, 252, 300, 508, 700, 1020, 1514, 1518, 2000, 9014} {
			for j, a := range []net.HardwareAddr{ownMAC, otherMAC, group(1), everyone} {
				f := frame(n, uint64(i*4+j))
				copy(f, a)
				if j == 1 {
					copy(f[12:], []byte{0x81, 0, 0, 5})
				}
				in = append(in, f)
			}
		}
		for i, f := range in {
			r.wire.in = append(r.wire.in, sim.Frame{Data: f, BadFCS: i%7 == 3})
		}
		r.wire.deliver()
		r.recv(len(in))
		for _, f := range in {
			r.send(f)
			r.step()
		}
		if len(r.wire.take()) != len(in) {
			t.Error("not all were sent")
		}
	}
	sums := func() map[string]uint64 {
		m := map[string]uint64{}
		for name, v := range r.mac.Counters() {
			if _, again := m[name]; again {
				t.Errorf("%s twice", name)
			}
			m[name] = v
		}
		return m
	}
	zero := sums()
	mix()
	device := map[string]uint64{}
	counting := 0
	for name := range zero {
		if !strings.HasPrefix(name, "Rx") && !strings.HasPrefix(name, "Tx") && !strings.HasPrefix(name, "MMC") {
			continue
		}
		i := slices.IndexFunc(gmac4reg.Map, func(e regs.Register) bool { return e.Name == name })
		if i < 0 {
			t.Errorf("%s is no name of the register map", name)
			continue
		}
		device[name] = uint64(csr.Load32(gmac4reg.Map[i].Off))
		if device[name] != 0 {
			counting++
		}
	}
	if counting < 30 {
		t.Errorf("the mix makes only %d counters count", counting)
	}
	mix()
	first := sums()
	for name, v := range device {
		if first[name] != v {
			t.Errorf("%s is %d, and the device counted %d", name, first[name], v)
		}
	}
	if first["Rx_CRC_Error_Packets"] == 0 || first["Tx_Packet_Count_Good"] != 60 || first["rx0_packets"] == 0 {
		t.Errorf("%v", first)
	}
	mix()
	for name, v := range sums() {
		if d, ok := device[name]; ok && v != 2*d {
			t.Errorf("%s is %d after two rounds of %d", name, v, d)
		}
	}
	mix() // nobody looks until the MAC is closed
	r.must(r.mac.Close())
	last := sums()
	for name, d := range device {
		if last[name] != 3*d {
			t.Errorf("%s is %d after Close, want %d", name, last[name], 3*d)
		}
	}
	r.must(r.dev.Close())
	if !maps.Equal(last, sums()) {
		t.Error("the counts changed when the device was closed")
	}
}

// TestCountersOrder: the counts come in a fixed order, and a loop may end early.
func TestCountersOrder(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 2}, opts: []stmmac.Option{stmmac.WithQueues(2, 2)}})
	names := func() (l []string) {
		for name := range r.mac.Counters() {
			l = append(l, name)
		}
		return l
	}
	all := names()
	if !slices.Equal(all, names()) {
		t.Error("the order changed")
	}
	for n := range all {
		i := 0
		for name := range r.mac.Counters() {
			if name != all[i] {
				t.Fatal(name, all[i])
			}
			if i++; i > n {
				break
			}
		}
	}
	last := -1
	for _, name := range []string{"rx0_packets", "rx1_packets", "tx1_done", "Tx_Octet_Count_Good_Bad", "Rx_Control_Packets_Good", "filter_full"} {
		i := slices.Index(all, name)
		if i <= last {
			t.Errorf("%s is at %d of %v", name, i, all)
		}
		last = i
	}
}
