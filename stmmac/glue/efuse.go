package glue

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio"
)

// The eFuse of the YT6801 holds, from byte 18 on, up to 39 records of six bytes in
// little-endian order: an offset of a register and its value. Address 0 ends them.
// Two of them are the MAC's address, as the registers of it that the offsets are
// named after would hold it. (dwmac-motorcomm.c)
const (
	efuseRowRead efuseCommand             = 1 << 0
	efuseStart   efuseCommand             = 1 << 2
	efuseAddr    mmio.Field[efuseCommand] = 0xff << 8

	efuseDone efuseResult             = 1 << 1
	efuseData mmio.Field[efuseResult] = 0xff << 24

	efuseRecords    = 18 // bytes before the first record
	efuseMaxRecords = 39
	efuseRecord     = 6 // bytes

	efuseAddrLow  = 0x1520 // the last four bytes of the MAC's address, the first of them on top
	efuseAddrHigh = 0x1524 // its first two, in bits 15 to 0
)

// How long a read may take: Linux gives it 20 ms.
const (
	efusePoll  = 100 * time.Microsecond
	efusePolls = 200
)

// readEFuseAddr returns the MAC's address, or nil if the eFuse has none.
func readEFuseAddr(ctx context.Context, r mmio.Region) (net.HardwareAddr, error) {
	var low, high *uint32
	for n := 0; n < efuseMaxRecords && (low == nil || high == nil); n++ {
		var b [efuseRecord]byte
		for i := range b {
			var err error
			if b[i], err = readEFuse(ctx, r, uint8(efuseRecords+n*efuseRecord+i)); err != nil {
				return nil, err
			}
		}
		v := binary.LittleEndian.Uint32(b[2:])
		switch at := binary.LittleEndian.Uint16(b[:]); {
		case at == 0:
			return nil, nil
		case at == efuseAddrLow && low == nil:
			low = &v
		case at == efuseAddrHigh && high == nil:
			high = &v
		}
	}
	if low == nil || high == nil {
		return nil, nil
	}
	var a [8]byte
	binary.BigEndian.PutUint32(a[:], *high)
	binary.BigEndian.PutUint32(a[4:], *low)
	return a[2:], nil
}

// readEFuse reads one byte.
func readEFuse(ctx context.Context, r mmio.Region, at uint8) (byte, error) {
	efuseOpCtrl0.Store(r, efuseRowRead|efuseAddr.Of(uint32(at))|efuseStart)
	for range efusePolls {
		v := efuseOpCtrl1.Load(r)
		switch {
		case uint32(v) == mmio.AllOnes:
			return 0, fmt.Errorf("EFUSE_OP_CTRL_1 reads all ones: %w", vfio.ErrGone)
		case v&efuseDone != 0:
			return byte(efuseData.Get(v)), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(efusePoll):
		}
	}
	return 0, fmt.Errorf("byte %d of the eFuse was not read within %v: %w", at, efusePolls*efusePoll, os.ErrDeadlineExceeded)
}
