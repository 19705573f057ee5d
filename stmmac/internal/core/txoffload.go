package core

import (
	"math"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/checksum"
)

// noBuf stands in the shadow of a ring for a descriptor without a buffer.
const noBuf = pagepool.Handle(math.MinInt32)

// txWay is what is done for a frame that cannot be sent just as it is.
type txWay struct {
	contexts int    // context descriptors before the first one
	tags     uint32 // bytes of tags that are beside the frame
	insert   bool   // the driver puts the tags among the bytes
	csum     bool   // its checksums are asked for
}

// wayOf is what the metadata of a frame ask for.
func wayOf(m *pagepool.Meta) txWay {
	return txWay{csum: m.Flags&pagepool.TxCsum != 0, tags: uint32(tagsLen(m))}
}

// placeTags decides who inserts the tags that are beside b, a frame that can be
// sent: the device, if the ring has room for a context descriptor too, or the
// driver. It changes nothing else.
func (r *TxRing) placeTags(w *txWay, b *pagepool.Buf, room bool) error {
	if room && r.tagsByDevice(b) {
		w.contexts = 1
		return nil
	}
	if b.Headroom() < int(w.tags) {
		return ErrNoHeadroom
	}
	w.insert = true
	return nil
}

// tagsByDevice says whether the device can insert the tags that are beside b. An
// inner tag goes behind the first tag of the frame, whoever put that there, so
// two are for frames that have none among their bytes.
func (r *TxRing) tagsByDevice(b *pagepool.Buf) bool {
	switch f := b.Flags; {
	case !r.limits.Tag || f&pagepool.VLANService != 0:
		return false
	case f&pagepool.InnerVLANTag == 0:
		return true
	}
	var head [EthHeaderLen]byte
	b.CopyTo(head[:])
	tpid := uint16(head[2*addrLen])<<8 | uint16(head[2*addrLen+1])
	return r.limits.InnerTag && tpid != tpidCustomer && tpid != tpidService
}

// addrLen is the length of an Ethernet address.
const addrLen = 6

// apply does what the driver does itself for a frame that it has taken, and
// returns what the word with OWN of its first descriptor has in addition.
func (w txWay) apply(r *TxRing, b *pagepool.Buf) (own uint32) {
	if w.insert {
		insertTags(b)
		r.c.tagDriver.Add(1)
	}
	if !w.csum {
		return 0
	}
	p, ok := checksum.Parse(b)
	switch {
	case !ok:
		r.c.csumNone.Add(1)
	case p.Plain && p.Tags <= r.limits.CsumTags && b.FrameLen() <= r.limits.MaxCsum:
		r.c.csumDevice.Add(1)
		if p.ICMPv4 {
			p.Clear(b)
		}
		return r.ring.Format.TxCsum
	default:
		r.c.csumDriver.Add(1)
		p.Fill(b)
	}
	return 0
}

// insertTags moves the tags that are beside a frame among its bytes.
func insertTags(b *pagepool.Buf) {
	var head [2*addrLen + MaxTags]byte
	b.CopyTo(head[:2*addrLen])
	n := 2*addrLen + PutTags(head[2*addrLen:], &b.Meta)
	b.Flags &^= pagepool.VLANTag | pagepool.VLANService | pagepool.InnerVLANTag
	b.Prepend(n - 2*addrLen)
	for p, rest := b, head[:n]; len(rest) > 0; p = p.Next() {
		rest = rest[copy(p.Bytes(), rest):]
	}
}
