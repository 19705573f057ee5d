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

// prepare decides how a frame is sent. It changes nothing.
func (r *TxRing) prepare(b *pagepool.Buf) (w txWay, err error) {
	f := b.Flags
	if f&pagepool.TxSpecial == 0 {
		return w, nil
	}
	w.csum = f&pagepool.TxCsum != 0
	if f&pagepool.VLANTag == 0 {
		return w, nil
	}
	w.tags = uint32(tagsLen(&b.Meta))
	if r.limits.Tag && f&pagepool.VLANService == 0 && (f&pagepool.InnerVLANTag == 0 || r.limits.InnerTag) {
		w.contexts = 1
		return w, nil
	}
	w.insert = true
	switch {
	case b.Headroom() < int(w.tags):
		return w, ErrNoHeadroom
	case b.Len() < 2*addrLen:
		return w, ErrFrameTooShort
	}
	return w, nil
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
	case p.Plain && p.Tags <= r.limits.CsumTags && b.FrameLen()+int(w.tags) <= r.limits.MaxCsum:
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
	n := tagsLen(&b.Meta)
	b.Prepend(n)
	p := b.Bytes()
	copy(p, p[n:][:2*addrLen])
	PutTags(p[2*addrLen:], &b.Meta)
	b.Flags &^= pagepool.VLANTag | pagepool.VLANService | pagepool.InnerVLANTag
}
