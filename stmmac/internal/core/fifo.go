package core

// BusBytes is the widest bus of the IP: no register tells which one a device has.
const BusBytes = busWidth

// unknownFIFO is what each queue that a MAC was built with has in a FIFO of which
// nobody tells the size: a frame of MTU 1500 has to fit.
const unknownFIFO = 2048

// FIFOSize is the size of a FIFO in bytes by the configuration, the feature
// register (0: not told) and the number of queues that the MAC was built with.
func FIFOSize(given, feature, built int) int {
	switch {
	case feature == 0 && given == 0:
		return unknownFIFO * built
	case feature == 0:
		return given
	case given == 0:
		return feature
	}
	return min(given, feature)
}

// TxBurst is the burst length for reading frames, in units of eight beats, of a
// transmit queue of size bytes: that given, or with 0 a quarter of the queue at
// most, so that checksums can be inserted into the rest, and most at most.
func TxBurst(given, size, most int) int {
	if given != 0 {
		return given
	}
	pbl := most
	for pbl > 1 && 8*pbl*BusBytes > size/4 {
		pbl /= 2
	}
	return pbl
}

// ChecksumRoom is the longest frame in bytes into which a checksum engine inserts
// checksums, with a transmit queue of size bytes and bursts of pbl times eight
// beats, or 0 if it is no engine for whole frames. The engine needs the whole frame
// in the queue while the DMA fetches a burst of the next: databook, Transmit
// Checksum Offload Engine.
func ChecksumRoom(size, pbl int) int {
	// An engine for less than the shortest frame is none.
	if n := size - (8*pbl+5)*BusBytes; n >= MinFrameLen {
		return n
	}
	return 0
}
