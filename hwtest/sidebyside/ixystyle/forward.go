package ixystyle

// Forward receives up to the given number of packets from rx in batches of len(bufs), changes the first byte of each and
// sends them on tx. What tx does not take is dropped. It returns the number of packets sent, and
// returns early when nothing is left to receive.
//
// It must not be inlined: the profile counts it by the name of this package.
//
//go:noinline
func Forward(rx, tx Driver, bufs []*PktBuf, packets int) int {
	sent := 0
	for done := 0; done < packets; {
		n := rx.RxBatch(0, bufs[:min(len(bufs), packets-done)])
		if n == 0 {
			break
		}
		for _, buf := range bufs[:n] {
			buf.Pkt[0]++
		}
		taken := tx.TxBatch(0, bufs[:n])
		for _, buf := range bufs[taken:n] {
			buf.Free()
		}
		done += int(n)
		sent += int(taken)
	}
	return sent
}
