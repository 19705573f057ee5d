package gmac

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// rxFIFOAbove2K is the smallest receive FIFO in bytes of a device that says that it
// has more than 2,048.
const rxFIFOAbove2K = 4096

// features decodes the feature register. Databook: HW_Feature. It is 0 where the
// device has none: then nothing but the MAC itself and its MDIO are counted on.
//
// The register says less than those of later generations: not how large the FIFOs
// are, nor how many MAC addresses there are beside the first (one at least, if any),
// nor the size of a hash table of more than 64 bins: Config does.
func features(cfg *core.Config, v gmacreg.Version, f gmacreg.HWFeature) core.Features {
	out := core.Features{
		Version: uint8(gmacreg.SNPSVER.Get(v)), UserID: uint8(gmacreg.USERVER.Get(v)),
		RxQueues: 1, TxQueues: 1, RxChannels: 1, TxChannels: 1,
		AddrWidth: 32,
	}
	if f == 0 {
		out.MII, out.GMII, out.HalfDuplex, out.MDIO = true, true, true, true
	} else {
		has := func(b gmacreg.HWFeature) bool { return f&b != 0 }
		out.RxChannels += int(gmacreg.RXCHCNT.Get(f))
		out.TxChannels += int(gmacreg.TXCHCNT.Get(f))
		out.MII, out.GMII, out.HalfDuplex = has(gmacreg.MIISEL), has(gmacreg.GMIISEL), has(gmacreg.HDSEL)
		out.PCS, out.MDIO, out.MMC = has(gmacreg.PCSSEL), has(gmacreg.SMASEL), has(gmacreg.MMCSEL)
		out.Timestamps, out.EEE = has(gmacreg.TSVER1SEL|gmacreg.TSVER2SEL), has(gmacreg.EEESEL)
		out.WakeMagic, out.WakeFrame = has(gmacreg.MGKSEL), has(gmacreg.RWKSEL)
		// Type 1 appends a sum to the frame and says nothing of it: it is left off.
		out.RxChecksum, out.TxChecksum = has(gmacreg.RXTYP2COE), has(gmacreg.TXCOESEL)
		out.AddressInsert, out.AV = has(gmacreg.SAVLANINS), has(gmacreg.AVSEL)
		if has(gmacreg.HASHSEL) && !has(gmacreg.EXTHASHEN) {
			out.HashBins = 64
		}
		if has(gmacreg.ADDMACADR) {
			out.PerfectFilters = 1
		}
	}
	if n := cfg.HashBins; n != 0 {
		out.HashBins = n
	}
	if n := cfg.PerfectFilters; n != 0 {
		out.PerfectFilters = min(n, gmacreg.AddressCount-1)
	}
	return out
}

// rxFIFO and txFIFO are the sizes of the FIFOs in bytes.
func (h *HW) rxFIFO() int {
	if h.cfg.RxFIFO == 0 && h.rxFloor != 0 {
		return h.rxFloor
	}
	return core.FIFOSize(h.cfg.RxFIFO, 0, 1)
}

func (h *HW) txFIFO() int { return core.FIFOSize(h.cfg.TxFIFO, 0, 1) }

// MaxFrame implements core.Hardware: with store and forward a frame has to fit
// into the FIFO, on both sides.
func (h *HW) MaxFrame() int { return min(h.rxFIFO(), h.txFIFO()) }

// checksRx says whether the device looks at the checksums of received frames.
func (h *HW) checksRx() bool { return h.cfg.RxChecksum && h.feat.RxChecksum }

// TxOffloads implements core.Hardware. The engine knows frames without a tag and
// with one.
func (h *HW) TxOffloads() core.TxLimits {
	var l core.TxLimits
	if h.cfg.TxChecksum && h.feat.TxChecksum {
		l.CsumTags = 1
		l.MaxCsum = core.ChecksumRoom(h.txFIFO(), h.txPBL())
	}
	return l
}

// defaultPBL is the burst length, in units of eight beats, that works on every
// integration: that of the stock driver.
const defaultPBL = 8

// txPBL is the burst length for reading frames, in units of eight beats.
func (h *HW) txPBL() int { return core.TxBurst(h.cfg.AXI.PBL, h.txFIFO(), defaultPBL) }
