package gmacreg

import "github.com/gostmmac/gostmmac/mmio"

// DescSize is the size of a normal descriptor in bytes: status (with OWN),
// control, the address of buffer 1, and that of buffer 2 or of the next
// descriptor.
const DescSize = 16

// MaxBufferSize is the largest number that the field of a buffer size holds.
const MaxBufferSize = 0x7ff

// RDES0 is word 0 of a normal receive descriptor: the device writes it but for
// OWN, which the driver sets.
type RDES0 uint32

// Bits of RDES0.
const (
	RxOWN RDES0 = 1 << 31
	RxAFM RDES0 = 1 << 30 // destination address filter fail
	RxES  RDES0 = 1 << 15 // error summary
	RxDE  RDES0 = 1 << 14 // descriptor error: cut for want of a descriptor
	RxSAF RDES0 = 1 << 13 // source address filter fail
	RxLE  RDES0 = 1 << 12 // length error
	RxOE  RDES0 = 1 << 11 // overflow error
	RxVLN RDES0 = 1 << 10 // VLAN tag that VLAN_Tag names
	RxFS  RDES0 = 1 << 9  // first descriptor
	RxLS  RDES0 = 1 << 8  // last descriptor
	RxIPE RDES0 = 1 << 7  // IP header checksum error; giant frame without the engine
	RxLC  RDES0 = 1 << 6  // late collision
	RxFT  RDES0 = 1 << 5  // frame type: its type field is 0x600 or more
	RxRWT RDES0 = 1 << 4  // receive watchdog
	RxRE  RDES0 = 1 << 3  // receive error
	RxDB  RDES0 = 1 << 2  // dribble bit
	RxCE  RDES0 = 1 << 1  // CRC error
	RxPCE RDES0 = 1 << 0  // payload checksum error

	RxFL mmio.Field[RDES0] = 0x3fff << 16 // frame length with FCS
)

// RDES1 is word 1 of a normal receive descriptor.
type RDES1 uint32

// Bits of RDES1.
const (
	RxDIC RDES1 = 1 << 31 // no RI when the frame is complete
	RxRER RDES1 = 1 << 25 // receive end of ring
	RxRCH RDES1 = 1 << 24 // word 3 is the address of the next descriptor

	RxRBS1 mmio.Field[RDES1] = 0x7ff << 0
	RxRBS2 mmio.Field[RDES1] = 0x7ff << 11
)

// TDES0 is word 0 of a normal transmit descriptor.
type TDES0 uint32

// Bits of TDES0.
const (
	TxOWN  TDES0 = 1 << 31
	TxTTSS TDES0 = 1 << 17 // a timestamp is in words 2 and 3
	TxIHE  TDES0 = 1 << 16 // IP header error
	TxES   TDES0 = 1 << 15 // error summary
	TxJT   TDES0 = 1 << 14 // jabber timeout
	TxFF   TDES0 = 1 << 13 // frame flushed
	TxPCE  TDES0 = 1 << 12 // payload checksum error
	TxLoC  TDES0 = 1 << 11 // loss of carrier
	TxNC   TDES0 = 1 << 10 // no carrier
	TxLC   TDES0 = 1 << 9  // late collision
	TxEC   TDES0 = 1 << 8  // excessive collisions
	TxVF   TDES0 = 1 << 7  // VLAN frame
	TxED   TDES0 = 1 << 2  // excessive deferral
	TxUF   TDES0 = 1 << 1  // underflow error
	TxDB   TDES0 = 1 << 0  // deferred

	TxCC mmio.Field[TDES0] = 0xf << 3 // collisions
)

// TDES1 is word 1 of a normal transmit descriptor.
type TDES1 uint32

// Bits of TDES1.
const (
	TxIC   TDES1 = 1 << 31 // interrupt on completion
	TxLS   TDES1 = 1 << 30 // last segment
	TxFS   TDES1 = 1 << 29 // first segment
	TxDC   TDES1 = 1 << 26 // disable CRC
	TxTER  TDES1 = 1 << 25 // transmit end of ring
	TxTCH  TDES1 = 1 << 24 // word 3 is the address of the next descriptor
	TxDP   TDES1 = 1 << 23 // disable padding
	TxTTSE TDES1 = 1 << 22 // timestamp

	TxCIC  mmio.Field[TDES1] = 0x3 << 27
	TxTBS1 mmio.Field[TDES1] = 0x7ff << 0
	TxTBS2 mmio.Field[TDES1] = 0x7ff << 11
)

// Values of CIC.
const (
	CICNone    = 0
	CICHeader  = 1 // IPv4 header
	CICPayload = 2 // and payload, on the pseudo header's sum in the field
	CICFull    = 3 // and payload with its pseudo header
)
