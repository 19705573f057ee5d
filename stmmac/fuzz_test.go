package stmmac_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// FuzzDescriptors plays a device that writes what it likes into both rings,
// also into descriptors that are not its own. Whatever it writes, the driver
// gives out frames that fit the buffers it posted, loses no buffer and does not
// panic.
func FuzzDescriptors(f *testing.F) {
	word := func(slot uint8, d3 uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{slot}, d3) }
	f.Add(uint8(0), word(0, 0x34000040))
	f.Add(uint8(1), append(word(0, 0x20000200), word(1, 0x10000205)...)) // two buffers
	f.Add(uint8(1), append(word(0, 0x20000200), word(1, 0x20000205)...)) // start after start
	f.Add(uint8(0), append(word(0, 0x10000005), word(1, 0x30000000)...)) // end without start, length 0
	f.Add(uint8(1), append(word(0, 0x20000000), word(1, 0x10000001)...)) // length below what arrived
	f.Add(uint8(0), append(word(0, 0x40000000), word(1, 0x31008040)...)) // context, CRC error
	f.Add(uint8(0), word(0, 0x30007fff))
	// with tags and checksums, sent on, and finished
	offloads := slices.Concat(word(0x80, 0x36000064), word(0x81, 0x36850064), word(0xc0, 0x70000000), word(0xc1, 0x30000000))
	f.Add(uint8(12), offloads)
	f.Add(uint8(13), offloads)
	f.Add(uint8(28), offloads)
	f.Fuzz(func(t *testing.T, kind uint8, script []byte) {
		const ring = 8
		regs := fakeGMAC4()
		offload := kind&8 != 0
		if offload {
			regs.Set(0x011c, regs.Peek(0x011c)|uint32(r4.RXCOESEL|r4.TXCOESEL|r4.SAVLANINS))
			regs.Set(0x0128, uint32(r4.DVLAN))
		}
		d := newFakeDevice(regs)
		opts := []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}), stmmac.WithRings(ring, ring)}
		if kind&1 != 0 {
			opts = append(opts, stmmac.WithMTU(9000))
		}
		if kind&2 != 0 {
			opts = append(opts, stmmac.WithNetIPAlign(2))
		}
		if offload {
			opts = append(opts, noSelfTest, with(doubleTags))
		}
		if kind&16 != 0 {
			opts = append(opts, stmmac.WithTxCompletions())
		}
		pool, err := pagepool.New(d, 64, pagepool.WithBufSize(2048))
		if err != nil {
			t.Fatal(err)
		}
		m, err := stmmac.Open(t.Context(), d, append(opts, stmmac.WithPool(pool))...)
		if err != nil {
			t.Fatal(err)
		}
		lay := m.Rx(0).Layout()
		rx := d.memory[uint64(regs.Peek(0x111c))]
		tx := d.memory[uint64(regs.Peek(0x1114))]
		bufs := make([]*pagepool.Buf, 4)
		recv := func() {
			n := m.Rx(0).Recv(bufs)
			for _, b := range bufs[:n] {
				if l := b.FrameLen(); l < 1 || l > lay.MaxFrame {
					t.Fatalf("a frame of %d bytes, at most %d were asked for", l, lay.MaxFrame)
				}
				for p := b; p != nil; p = p.Next() {
					if p.Len() > lay.Size || p.Offset() != lay.Start {
						t.Fatalf("%d bytes at %d in a buffer of %d at %d", p.Len(), p.Offset(), lay.Size, lay.Start)
					}
					p.Bytes()[p.Len()-1]++
				}
				if kind&4 != 0 && b.FrameLen() >= 14 {
					tags := 0
					if offload {
						b.Flags |= pagepool.TxCsum | pagepool.VLANTag // and what came
						tags = 8
					}
					if n, err := m.Tx(0).Send([]*pagepool.Buf{b}); n == 1 {
						continue
					} else if err != nil && b.FrameLen() <= lay.MaxFrame-4-tags {
						t.Fatal(err)
					}
				}
				pool.Free(b)
			}
		}
		for len(script) >= 5 {
			slot, d3 := int(script[0]), binary.LittleEndian.Uint32(script[1:])
			script = script[5:]
			mem := rx
			if slot&0x40 != 0 {
				mem = tx
			}
			desc := mem[16*(slot%ring):]
			if offload {
				binary.LittleEndian.PutUint32(desc, d3)
				binary.LittleEndian.PutUint32(desc[4:], d3>>8)
			}
			binary.LittleEndian.PutUint32(desc[12:], d3)
			if slot&0x80 != 0 {
				recv()
				if kind&16 != 0 {
					for _, b := range bufs[:m.Tx(0).Reap(bufs)] {
						pool.Free(b)
					}
				} else {
					m.Tx(0).Reap(nil)
				}
			}
		}
		recv()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if n := pool.InUse(); n != 0 {
			t.Fatalf("%d buffers lost: %v", n, pool.Holders())
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		if n := pool.Misfreed(); n != 0 {
			t.Fatalf("%d buffers freed twice", n)
		}
		d.mustUnmap(t)
	})
}
