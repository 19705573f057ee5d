//go:build hwtest

package hwtest

import (
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func counterTests() []test {
	return []test{
		{"counters/queues", nil, countQueues},
		{"counters/send", []need{mmcNeed(), modelled(counters)}, countSend},
		{"counters/receive", []need{mmcNeed(), modelled(counters)}, countReceive},
		{"counters/sizes", []need{mmcNeed(), modelled(counters)}, countSizes},
		{"counters/checksums", []need{mmcNeed(), rxChecksumNeed(), modelled(counters)}, countChecksums},
		{"counters/reopened", []need{mmcNeed(), modelled(counters)}, countReopened},
		{"pause/received", []need{mmcNeed(), can(peer.Pause), modelled(pauseFrames)}, pauseReceived},
		{"pause/holds", []need{can(peer.Pause), modelled(pauseFrames)}, pauseHolds},
		{"pause/modes", []need{can(peer.Separate)}, pauseModes},
	}
}

// counts are all counters by their names, without what the generations of the
// databook write differently.
func (r *rig) counts() map[string]uint64 {
	m := map[string]uint64{}
	for name, v := range r.mac.Counters() {
		m[plain(name)] = v
	}
	return m
}

// plain is a name without what stands for frames, and with the words of GMAC4 for the
// abbreviations of GMAC 3.x: txframecount_g is Tx_Packet_Count_Good.
func plain(name string) string {
	const octets = "txoctetcnt" // of GMAC 3.x, without the _g that its other counts have
	words := strings.Split(strings.ToLower(name), "_")
	for i, w := range words {
		switch w {
		case "g", "gd":
			words[i] = "good"
		case "gb":
			words[i] = "goodbad"
		case "err":
			words[i] = "error"
		case "hdrerr":
			words[i] = "headererror"
		case "frms":
			words[i] = ""
		case octets:
			words[i] = "txoctetcountgood"
		}
	}
	return strings.NewReplacer("packets", "", "packet", "", "frames", "", "frame", "").Replace(strings.Join(words, ""))
}

// rises fails unless counters have risen by these numbers; with atLeast they may have
// risen by more, because others use the wire too.
func (r *rig) rises(before map[string]uint64, want map[string]uint64, atLeast bool) {
	r.Helper()
	after := r.counts()
	for name, n := range want {
		v, ok := after[plain(name)]
		got := v - before[plain(name)]
		switch {
		case !ok:
			r.Errorf("there is no counter %s", name)
		case got < n, got > n && !atLeast:
			r.Errorf("%s has risen by %d, want %d", name, got, n)
		}
	}
}

// alone says that nobody else is on the wire.
func (r *rig) alone() bool { return r.env.isSim() || !r.env.peer.Can(peer.Separate) }

// station, group and broadcast frames to send.
func (r *rig) three(src []byte) (out [][]byte, bytes uint64) {
	for i, a := range (addrs{peer.PeerAddr(), group(1), broadcast()}) {
		f := frame(a, src, 100+i*400, r.next())
		out = append(out, f)
		bytes += uint64(len(f)) + 4
	}
	return out, bytes
}

const markBytes = shortest + 4

func countQueues(r *rig) {
	r.open()
	before := r.counts()
	frames, bytes := r.three(peer.DeviceAddr())
	r.emit(frames...)
	bytes -= 4 * uint64(len(frames))
	r.rises(before, map[string]uint64{"tx0_packets": 4, "tx0_bytes": bytes + shortest}, false)
	before = r.counts()
	in := []([]byte){frame(peer.DeviceAddr(), peer.PeerAddr(), 100, r.next()), frame(peer.DeviceAddr(), peer.PeerAddr(), 1000, r.next())}
	r.deliver(in...)
	r.rises(before, map[string]uint64{"rx0_packets": 3, "rx0_bytes": 1100 + shortest}, !r.alone())
}

func countSend(r *rig) {
	r.open()
	before := r.counts()
	frames, bytes := r.three(peer.DeviceAddr())
	r.emit(frames...)
	r.rises(before, map[string]uint64{
		"Tx_Packet_Count_Good": 4, "Tx_Octet_Count_Good": bytes + markBytes, "Tx_Packet_Count_Good_Bad": 4,
		"Tx_Multicast_Packets_Good": 1, "Tx_Broadcast_Packets_Good": 1, "Tx_Unicast_Packets_Good_Bad": 2, "Tx_Underflow_Error_Packets": 0,
	}, !r.alone())
}

func countReceive(r *rig) {
	r.open()
	r.must(r.mac.SetFilter(stmmac.Filter{AllMulticast: true}))
	before := r.counts()
	frames, bytes := r.three(peer.PeerAddr())
	copy(frames[0], peer.DeviceAddr())
	r.deliver(frames...)
	r.rises(before, map[string]uint64{
		"Rx_Packets_Count_Good_Bad": 4, "Rx_Octet_Count_Good": bytes + markBytes,
		"Rx_Multicast_Packets_Good": 1, "Rx_Broadcast_Packets_Good": 1, "Rx_Unicast_Packets_Good": 2,
	}, !r.alone())
	r.rises(before, map[string]uint64{"Rx_CRC_Error_Packets": 0, "Rx_FIFO_Overflow_Packets": 0, "Rx_Length_Error_Packets": 0}, false)
}

// countSizes sends a frame of each bin.
func countSizes(r *rig) {
	r.open()
	before := r.counts()
	var out, in [][]byte
	for _, n := range []int{60, 100, 200, 400, 800, 1400} {
		out = append(out, frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next()))
		in = append(in, frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next()))
	}
	r.emit(out...)
	r.deliver(in...)
	want := map[string]uint64{}
	times := uint64(1)
	if !r.env.peer.Can(peer.Separate) {
		times = 2 // what is sent is received
	}
	for _, dir := range []string{"Tx", "Rx"} {
		want[dir+"_64Octets_Packets_Good_Bad"] = 2 * times // the mark too
		for _, bin := range []string{"65To127", "128To255", "256To511", "512To1023", "1024ToMax"} {
			want[dir+"_"+bin+"Octets_Packets_Good_Bad"] = times
		}
	}
	r.rises(before, want, !r.alone())
}

// countChecksums receives right and wrong checksums.
func countChecksums(r *rig) {
	r.open()
	before := r.counts()
	var in [][]byte
	for _, k := range kinds() {
		good := k.build(peer.DeviceAddr(), peer.PeerAddr(), 200, r.next())
		bad := k.build(peer.DeviceAddr(), peer.PeerAddr(), 200, r.next())
		bad[199] ^= 0x10
		in = append(in, good, bad)
	}
	r.deliver(in...)
	r.rises(before, map[string]uint64{
		"RxUDP_Good_Packets": 2, "RxUDP_Error_Packets": 2, "RxTCP_Good_Packets": 2, "RxTCP_Error_Packets": 2,
		"RxICMP_Good_Packets": 2, "RxICMP_Error_Packets": 2, "RxIPv4_Header_Error_Packets": 0,
	}, !r.alone())
}

// countReopened expects counters from 0 on.
func countReopened(r *rig) {
	r.open()
	r.bothWays(100, 200, 300)
	r.close()
	r.open()
	if n := r.counts()[plain("tx0_packets")]; n != 0 {
		r.Errorf("%d frames were sent before the first", n)
	}
	if n := r.counts()[plain("Tx_Packet_Count_Good")]; n != 0 {
		r.Errorf("the device has counted %d frames before the first", n)
	}
}

// pauseFrame is a pause frame of IEEE 802.3 annex 31B.
func pauseFrame(quanta uint16) []byte {
	f := make([]byte, shortest)
	copy(f, []byte{0x01, 0x80, 0xc2, 0, 0, 1})
	copy(f[6:], peer.PeerAddr())
	copy(f[12:], []byte{0x88, 0x08, 0, 1, byte(quanta >> 8), byte(quanta)})
	return f
}

func pauseReceived(r *rig) {
	r.open()
	before := r.counts()
	r.must(r.env.peer.Send(r.env.ctx, pauseFrame(0), pauseFrame(0), pauseFrame(0)))
	r.deliver(frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()))
	r.rises(before, map[string]uint64{"Rx_Pause_Packets": 3}, !r.alone())
}

// pauseHolds has the peer pause the device, which must go on when that is over.
func pauseHolds(r *rig) {
	r.open()
	if l := r.mac.Link(); !l.RxPause {
		if err := r.mac.SetPause(stmmac.PauseRx); err != nil {
			r.skip("the peer has no " + string(peer.Pause))
		}
		r.link()
	}
	// A quantum is 512 bit times: at 1000 Mbit/s 65535 of them are 33.6 ms.
	start := time.Now()
	r.must(r.env.peer.Send(r.env.ctx, pauseFrame(0xffff)))
	r.deliver(frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()))
	f := frame(peer.PeerAddr(), peer.DeviceAddr(), 500, r.next())
	r.must(r.send(0, []*pagepool.Buf{r.chain(f, 0)}))
	got, err := r.peerRecv()
	r.must(err)
	r.same("behind a pause", [][]byte{got}, [][]byte{f})
	r.figures["held_us"] = time.Since(start).Microseconds()
	// One that is taken back.
	r.must(r.env.peer.Send(r.env.ctx, pauseFrame(0xffff), pauseFrame(0)))
	r.bothWays(shortest, 1514)
}

// pauseModes sets each way to use pause frames.
func pauseModes(r *rig) {
	r.open()
	for _, p := range []stmmac.PauseMode{stmmac.PauseOff, stmmac.PauseRx, stmmac.PauseTx, stmmac.PauseRxTx} {
		r.must(r.mac.SetPause(p))
		r.link()
		l := r.mac.Link()
		rx, tx := p == stmmac.PauseRx || p == stmmac.PauseRxTx, p == stmmac.PauseTx || p == stmmac.PauseRxTx
		if l.RxPause != rx || l.TxPause != tx {
			r.Errorf("pause mode %d: %v", p, l)
		}
		r.bothWays(shortest, 1514)
	}
}
