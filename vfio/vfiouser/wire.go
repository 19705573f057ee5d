package vfiouser

import (
	"encoding/binary"
	"strconv"
)

// Commands of the protocol.
const (
	cmdVersion       = 1
	cmdDMAMap        = 2
	cmdDMAUnmap      = 3
	cmdGetInfo       = 4
	cmdGetRegionInfo = 5
	cmdGetRegionFDs  = 6
	cmdGetIRQInfo    = 7
	cmdSetIRQs       = 8
	cmdRegionRead    = 9
	cmdRegionWrite   = 10
	cmdDMARead       = 11 // server to client
	cmdDMAWrite      = 12 // server to client
	cmdReset         = 13
	cmdWriteMulti    = 15
	cmdFeature       = 16
)

var commandNames = map[uint16]string{
	cmdVersion: "VERSION", cmdDMAMap: "DMA_MAP", cmdDMAUnmap: "DMA_UNMAP", cmdGetInfo: "DEVICE_GET_INFO",
	cmdGetRegionInfo: "DEVICE_GET_REGION_INFO", cmdGetRegionFDs: "DEVICE_GET_REGION_IO_FDS", cmdGetIRQInfo: "DEVICE_GET_IRQ_INFO",
	cmdSetIRQs: "DEVICE_SET_IRQS", cmdRegionRead: "REGION_READ", cmdRegionWrite: "REGION_WRITE", cmdDMARead: "DMA_READ",
	cmdDMAWrite: "DMA_WRITE", cmdReset: "DEVICE_RESET", cmdWriteMulti: "REGION_WRITE_MULTI", cmdFeature: "DEVICE_FEATURE",
}

// commandName names a command in errors.
func commandName(cmd uint16) string {
	if n := commandNames[cmd]; n != "" {
		return n
	}
	return "command " + strconv.Itoa(int(cmd))
}

// header is what every message starts with.
type header struct {
	id, cmd uint16
	size    uint32 // with the header
	flags   uint32
	errno   uint32
}

const (
	headerSize = 16

	flagTypeMask = 0xf
	flagCommand  = 0
	flagReply    = 1
	flagNoReply  = 1 << 4
	flagError    = 1 << 5
)

// order is that of both sides, which are on one machine.
var order = binary.NativeEndian

func parseHeader(b []byte) header {
	return header{order.Uint16(b), order.Uint16(b[2:]), order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])}
}

func (h header) append(b []byte) []byte {
	b = order.AppendUint16(b, h.id)
	b = order.AppendUint16(b, h.cmd)
	b = order.AppendUint32(b, h.size)
	b = order.AppendUint32(b, h.flags)
	return order.AppendUint32(b, h.errno)
}

// Sizes of the fixed parts behind the header.
const (
	versionSize     = 4
	mapSize         = 32
	unmapSize       = 24
	infoSize        = 16
	regionInfoSize  = 32
	irqInfoSize     = 16
	setIRQsSize     = 20
	regionReadSize  = 16
	multiHeaderSize = 8
	multiEntrySize  = 24
	multiMaxBytes   = 8
	dmaMessageSize  = 16
)

// What this server supports, and tells a client that asks for it.
const (
	maxFDs      = 16      // descriptors in one message
	maxTransfer = 1 << 20 // bytes of data in one message
	maxWindows  = 65535   // ranges of bus addresses at one time
	pageSize    = 4096    // the granularity of ranges

	maxMessage = headerSize + regionReadSize + maxTransfer
)

// DMA_MAP flags, and DMA_UNMAP's for all ranges.
const (
	mapRead  = 1 << 0
	mapWrite = 1 << 1

	unmapAll = 1 << 1
)
