package ixystyle

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// GMAC4 descriptors (databook chapter "Descriptors", Linux dwmac4_descs.h).
const (
	descriptorSize = 16 // bytes

	rdes3Own          = 1 << 31
	rdes3Context      = 1 << 30 // CTXT
	rdes3First        = 1 << 29 // FD
	rdes3Last         = 1 << 28 // LD
	rdes3ErrorSummary = 1 << 15 // ES
	rdes3Buffer1Valid = 1 << 24 // BUF1V, read format
	rdes3PacketLength = 0x7fff  // PL, with FCS

	tdes3Own   = 1 << 31
	tdes3First = 1 << 29 // FD
	tdes3Last  = 1 << 28 // LD

	frameCheckSequence = 4 // bytes that PL counts
)

// makeRing cuts a ring of n descriptors from mem, one slice per descriptor.
func makeRing(mem *Memory, n int) ([][]byte, uint64, error) {
	block, bus, err := mem.alloc(n*descriptorSize, 4096)
	if err != nil {
		return nil, 0, err
	}
	ring := make([][]byte, n)
	for i := range ring {
		ring[i] = block[i*descriptorSize : (i+1)*descriptorSize]
	}
	return ring, bus, nil
}

func wrap(index, ringSize uint16) uint16 { return (index + 1) & (ringSize - 1) }

// loadStatus reads word 3, in which the device clears OWN last.
func loadStatus(desc []byte) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&desc[12])))
}

func setAddress(desc []byte, bus uint64) {
	binary.LittleEndian.PutUint32(desc[0:4], uint32(bus))
	binary.LittleEndian.PutUint32(desc[4:8], uint32(bus>>32))
}

func setControl(desc []byte, word2, word3 uint32) {
	binary.LittleEndian.PutUint32(desc[8:12], word2)
	binary.LittleEndian.PutUint32(desc[12:16], word3)
}
