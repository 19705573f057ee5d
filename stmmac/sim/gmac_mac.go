package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacConf pairs the bits of MAC_Configuration that mean the same in both generations.
var gmacConf = [...]struct {
	gmac  rg.Configuration
	gmac4 r4.Configuration
}{
	{rg.RE, r4.RE}, {rg.TE, r4.TE}, {rg.ACS, r4.ACS}, {rg.DR, r4.DR}, {rg.IPC, r4.IPC}, {rg.DM, r4.DM}, {rg.LM, r4.LM},
	{rg.DCRS, r4.DCRS}, {rg.JE, r4.JE}, {rg.BE, r4.BE}, {rg.JD, r4.JD}, {rg.WD, r4.WD}, {rg.CST, r4.CST}, {rg.TWOKPE, r4.S2KP},
	{rg.PS, r4.PS},
}

// configuration says MAC_Configuration in the bits of GMAC4. FES counts with PS only,
// there is no speed above a gigabit.
func (g *gmac) configuration() (c r4.Configuration) {
	v := rg.Configuration(g.m.regs.get(uint32(rg.MACConfiguration)))
	for _, b := range gmacConf {
		if v&b.gmac != 0 {
			c |= b.gmac4
		}
	}
	if v&rg.SpeedMask == rg.SpeedMask {
		c |= r4.FES
	}
	return c
}

// derive implements generation. The frame filter has the bits of GMAC4's.
func (g *gmac) derive() {
	m := g.m
	s := &m.mac
	s.conf = g.configuration()
	s.filter = r4.PacketFilter(m.regs.get(uint32(rg.MACFrameFilter)))
	tag := rg.VLANTag(m.regs.get(uint32(rg.VLANTagReg)))
	s.vlan = r4.VL.Of(rg.VL.Get(tag))
	for _, b := range [...]struct {
		gmac  rg.VLANTag
		gmac4 r4.VLANTag
	}{{rg.ETV, r4.ETV}, {rg.VTIM, r4.VTIM}, {rg.ESVL, r4.ESVL | r4.DOVLTC}} {
		if tag&b.gmac != 0 {
			s.vlan |= b.gmac4
		}
	}
	s.bins = m.cfg.HashBins
	for i := range s.bins / 32 {
		s.hash[i] = m.regs.get(m.at.hash[i])
	}
	long := watchdogLen
	s.giant = maxWithFCS
	switch {
	case s.conf&r4.JE != 0:
		long, s.giant = watchdogLong, maxJumbo
	case s.conf&r4.S2KP != 0:
		s.giant = max2K
	}
	s.watchdog, s.jabber = long, long
	if s.conf&r4.WD != 0 {
		s.watchdog = maxPacket
	}
	if s.conf&r4.JD != 0 {
		s.jabber = maxPacket
	}
	g.deriveFlow()
	m.gate()
}

// gmacPLT are the values of PLT in slots.
var gmacPLT = [4]uint32{4, 28, 144, 256}

func (g *gmac) deriveFlow() {
	f := &g.m.flow
	f.denied = false
	v := rg.Flow(g.m.regs.get(uint32(rg.FlowControl)))
	f.rfe, f.up = v&rg.RFE != 0, v&rg.UP != 0
	if !f.rfe || g.m.mac.conf&r4.DM == 0 {
		f.until = 0
	}
	f.tfe, f.dzpq = v&rg.TFE != 0, v&rg.DZPQ != 0
	f.pt, f.ahead = rg.PT.Get(v), gmacPLT[rg.PLT.Get(v)]
	f.manual = v&rg.FCBBPA != 0
	if !f.tfe {
		f.told, f.again = false, 0
	}
}

func (g *gmac) storeFlow(off uint32, old, now rg.Flow) {
	if old&rg.FCBBPA != 0 {
		g.misuse(ConfigRunning, "%s = %#x while FCB_BPA is set", g.m.regName(off), uint32(now))
	}
	if slots := gmacPLT[rg.PLT.Get(now)]; now&rg.TFE != 0 && rg.PT.Get(now) <= slots {
		g.misuse(ConfigInvalid, "PT %d is not more than the %d slots of PLT", rg.PT.Get(now), slots)
	}
	if now&rg.TFE == 0 {
		now &^= rg.FCBBPA
	}
	g.m.regs.set(off, uint32(now))
	g.derive()
}

// misuse reports what is of no channel.
func (g *gmac) misuse(k ViolationKind, format string, args ...any) {
	g.m.report(Violation{Kind: k, Channel: -1, Index: -1}, format, args...)
}
