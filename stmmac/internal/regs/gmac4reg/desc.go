package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// DescSize is the size of a descriptor in bytes without the skip length.
const DescSize = 16

// EnhancedSize is the size of an enhanced transmit descriptor (EDSE): words 4 to 7 in front of
// words 0 to 3.
const EnhancedSize = 32

// Limits of the descriptor fields.
const (
	// MaxBufLen is the longest buffer of a transmit descriptor (B1L is 14 bits).
	MaxBufLen = 1<<14 - 1
	// MaxRBSZ is the largest receive buffer size that is a multiple of 64.
	MaxRBSZ = 1<<14 - 64
)

// TDES2 is word 2 of a transmit descriptor, read format.
type TDES2 uint32

// Bits of TDES2.
const (
	TTSE TDES2 = 1 << 30
	IOC  TDES2 = 1 << 31

	B1L  mmio.Field[TDES2] = 0x3fff << 0
	VTIR mmio.Field[TDES2] = 0x3 << 14
	B2L  mmio.Field[TDES2] = 0x3fff << 16
)

// TDES3 is word 3 of a transmit descriptor, in both formats.
type TDES3 uint32

// Bits of TDES3: read format.
const (
	TxOWN  TDES3 = 1 << 31
	TxCTXT TDES3 = 1 << 30
	TxFD   TDES3 = 1 << 29
	TxLD   TDES3 = 1 << 28
	TxTSE  TDES3 = 1 << 18

	CPC  mmio.Field[TDES3] = 0x3 << 26
	SAIC mmio.Field[TDES3] = 0x7 << 23
	CIC  mmio.Field[TDES3] = 0x3 << 16
	TxFL mmio.Field[TDES3] = 0x7fff << 0
)

// Bits of TDES3: write-back format.
const (
	TxIHE  TDES3 = 1 << 0  // IP header error
	TxDB   TDES3 = 1 << 1  // deferred
	TxUF   TDES3 = 1 << 2  // underflow
	TxED   TDES3 = 1 << 3  // excessive deferral
	TxEC   TDES3 = 1 << 8  // excessive collisions
	TxLC   TDES3 = 1 << 9  // late collision
	TxNC   TDES3 = 1 << 10 // no carrier
	TxLoC  TDES3 = 1 << 11 // loss of carrier
	TxPCE  TDES3 = 1 << 12 // payload checksum error
	TxFF   TDES3 = 1 << 13 // packet flushed
	TxJT   TDES3 = 1 << 14 // jabber timeout
	TxES   TDES3 = 1 << 15 // error summary
	TxTTSS TDES3 = 1 << 17 // timestamp captured

	TxCC mmio.Field[TDES3] = 0xf << 4
)

// TDES4 and TDES5 are words 4 and 5 of an enhanced transmit descriptor: when the packet may
// leave, by the system time.
type (
	TDES4 uint32
	TDES5 uint32
)

// Bits of TDES4 and TDES5.
const (
	LTV TDES4 = 1 << 31 // the launch time is valid

	LTSeconds     mmio.Field[TDES4] = 0xff << 0     // the low bits of the seconds
	LTNanoseconds mmio.Field[TDES5] = 0xffffff << 8 // units of 256 ns
)

// RDES1 is word 1 of a receive descriptor, write-back format. It is valid only
// when RS1V is set.
type RDES1 uint32

// Bits of RDES1.
const (
	IPHE RDES1 = 1 << 3
	IPV4 RDES1 = 1 << 4
	IPV6 RDES1 = 1 << 5
	IPCB RDES1 = 1 << 6 // checksum engine bypassed
	IPCE RDES1 = 1 << 7 // payload checksum error
	TSA  RDES1 = 1 << 14
	TD   RDES1 = 1 << 15

	RxPT mmio.Field[RDES1] = 0x7 << 0
	OPC  mmio.Field[RDES1] = 0xffff << 16
)

// RDES2 is word 2 of a receive descriptor, write-back format.
type RDES2 uint32

// Bits of RDES2.
const (
	ARPNR   RDES2 = 1 << 10 // an ARP request that the offload did not answer
	VF      RDES2 = 1 << 15
	SAFFail RDES2 = 1 << 16
	DAFFail RDES2 = 1 << 17
	HF      RDES2 = 1 << 18

	HL    mmio.Field[RDES2] = 0x3ff << 0
	MADRM mmio.Field[RDES2] = 0xff << 19
)

// RDES3 is word 3 of a receive descriptor, in both formats.
type RDES3 uint32

// Bits of RDES3: read format.
const (
	RxOWN   RDES3 = 1 << 31
	RxIOC   RDES3 = 1 << 30
	RxBUF2V RDES3 = 1 << 25
	RxBUF1V RDES3 = 1 << 24
)

// Bits of RDES3: write-back format.
const (
	RxES   RDES3 = 1 << 15 // error summary
	RxDE   RDES3 = 1 << 19 // dribble error
	RxRE   RDES3 = 1 << 20 // receive error
	RxOE   RDES3 = 1 << 21 // overflow error
	RxRWT  RDES3 = 1 << 22 // receive watchdog timeout
	RxGP   RDES3 = 1 << 23 // giant packet
	RxCE   RDES3 = 1 << 24 // CRC error
	RxRS0V RDES3 = 1 << 25
	RxRS1V RDES3 = 1 << 26
	RxRS2V RDES3 = 1 << 27
	RxLD   RDES3 = 1 << 28
	RxFD   RDES3 = 1 << 29
	RxCTXT RDES3 = 1 << 30

	RxPL mmio.Field[RDES3] = 0x7fff << 0
	RxLT mmio.Field[RDES3] = 0x7 << 16
)
