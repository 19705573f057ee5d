package phy

import (
	"fmt"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// resolve tells the link from what both sides advertise, by IEEE 802.3 annex
// 28B: the best common mode, and the pause frames of table 28B-3. A result that
// is not in allowed is no link. The reason says why there is none.
func resolve(n negotiated, allowed core.LinkModes) (l core.Link, reason string) {
	if n.roleFail {
		return l, whyRole
	}
	common := n.local & n.partner
	if !n.partnerAN {
		// Parallel detection (28.2.3.1) tells the speed of a partner that does
		// not negotiate; the link is half duplex whatever it can do.
		common = n.partner & (core.Mode10Half | core.Mode100Half)
		if common == 0 {
			return l, "the partner does not negotiate, and its speed is not known"
		}
	}
	best := common.Best()
	switch {
	case best == 0:
		return l, fmt.Sprintf("no mode in common: the PHY advertises %v, the partner %v", n.local, n.partner)
	case best&allowed == 0 && !n.partnerAN:
		return l, fmt.Sprintf("the partner does not negotiate, so the link is %v, which is not allowed here (allowed: %v)", best, allowed)
	case best&allowed == 0:
		return l, fmt.Sprintf("the PHY negotiated %v, which it was not told to advertise (it was: %v)", best, allowed)
	}
	l = best.Link()
	if l.FullDuplex {
		l.RxPause, l.TxPause = resolvePause(n.localPause, n.partnerPause)
	}
	return l, ""
}

// resolvePause is table 28B-3 of IEEE 802.3.
func resolvePause(local, partner pauseBits) (rx, tx bool) {
	const both = anPause | anAsymDir
	switch {
	case local&partner&anPause != 0:
		return true, true
	case local == anAsymDir && partner == both:
		return false, true
	case local == both && partner == anAsymDir:
		return true, false
	}
	return false, false
}

// advertised are the bits that ask for the pause frames of a mode. Those of
// PauseRx also agree to both directions: the standard has no word for receiving
// alone.
func advertised(m core.PauseMode) pauseBits {
	switch m {
	case core.PauseAuto, core.PauseRx:
		return anPause | anAsymDir
	case core.PauseTx:
		return anAsymDir
	case core.PauseRxTx:
		return anPause
	}
	return 0
}

// applyPause puts the pause frames of a mode into a link in place of what was
// negotiated.
func applyPause(l core.Link, m core.PauseMode) core.Link {
	if l.Up && m != core.PauseAuto {
		l.RxPause = l.FullDuplex && (m == core.PauseRx || m == core.PauseRxTx)
		l.TxPause = l.FullDuplex && (m == core.PauseTx || m == core.PauseRxTx)
	}
	return l
}
