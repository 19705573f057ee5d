package regcheck

import (
	"context"
	"encoding/binary"
)

// onesSum adds the words of b, big endian, to sum, as IP checksums do (RFC 1071).
func onesSum(sum uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

// complement folds sum and returns the checksum.
func complement(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// datagram is a frame with UDP over IPv4 without checksums, and the same with them.
func datagram(n, seed int) (without, with []byte) {
	f := fill(14+20+8+n, seed)
	f[12], f[13] = 0x08, 0x00
	ip := f[14:]
	copy(ip, []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	udp := ip[20:]
	copy(udp, []byte{0x12, 0x34, 0x56, 0x78})
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[6:], 0)

	g := append([]byte(nil), f...)
	ip, udp = g[14:], g[34:]
	binary.BigEndian.PutUint16(ip[10:], complement(onesSum(0, ip[:20])))
	sum := complement(onesSum(onesSum(17+uint32(len(udp)), ip[12:20]), udp))
	if sum == 0 {
		sum = 0xffff // 0 would say that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	return f, g
}

// transmitChecksums: the MAC inserts the checksums of IPv4 and UDP.
func transmitChecksums(ctx context.Context, b *Board, m mode) error {
	var frames, want [][]byte
	for n := 18; n <= 1472; n += 13 {
		f, g := datagram(n, n)
		frames, want = append(frames, f), append(want, g)
	}
	return b.transmitFrames(ctx, m, frames, maxBuffer, txCIC, want)
}
