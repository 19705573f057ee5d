package gmacreg

import "github.com/gostmmac/gostmmac/stmmac/internal/regs"

// String names what is set, as "RE|TE|DM".
func (v Configuration) String() string {
	return regs.Bits[Configuration]{
		{0x3, "PRELEN"}, {RE, "RE"}, {TE, "TE"}, {DC, "DC"}, {BL.Mask(), "BL"}, {ACS, "ACS"}, {LUD, "LUD"}, {DR, "DR"}, {IPC, "IPC"},
		{DM, "DM"}, {LM, "LM"}, {DO, "DO"}, {FES, "FES"}, {PS, "PS"}, {DCRS, "DCRS"}, {IFG.Mask(), "IFG"}, {JE, "JE"}, {BE, "BE"},
		{JD, "JD"}, {WD, "WD"}, {TC, "TC"}, {CST, "CST"}, {SFTERR, "SFTERR"}, {TWOKPE, "2KPE"}, {SARC.Mask(), "SARC"},
	}.String(v)
}

// String names what is set, as "PR|HPF".
func (v FrameFilter) String() string {
	return regs.Bits[FrameFilter]{
		{PR, "PR"}, {HUC, "HUC"}, {HMC, "HMC"}, {DAIF, "DAIF"}, {PM, "PM"}, {DBF, "DBF"}, {PCF.Mask(), "PCF"}, {SAIF, "SAIF"},
		{SAF, "SAF"}, {HPF, "HPF"}, {VTFE, "VTFE"}, {IPFE, "IPFE"}, {1 << 21, "DNTU"}, {RA, "RA"},
	}.String(v)
}

// String names what is set, as "GB|GR=1".
func (v MIIAddress) String() string {
	return regs.Bits[MIIAddress]{{GB, "GB"}, {GW, "GW"}, {CR.Mask(), "CR"}, {GR.Mask(), "GR"}, {PA.Mask(), "PA"}}.String(v)
}

// String names what is set, as "TFE|PT=65535".
func (v Flow) String() string {
	return regs.Bits[Flow]{
		{FCBBPA, "FCB_BPA"}, {TFE, "TFE"}, {RFE, "RFE"}, {UP, "UP"}, {PLT.Mask(), "PLT"}, {DZPQ, "DZPQ"}, {PT.Mask(), "PT"},
	}.String(v)
}

// String names what is set, as "VL=5|ETV".
func (v VLANTag) String() string {
	return regs.Bits[VLANTag]{{VL.Mask(), "VL"}, {ETV, "ETV"}, {VTIM, "VTIM"}, {ESVL, "ESVL"}, {VTHM, "VTHM"}}.String(v)
}

// String tells the two versions, as "SNPSVER=55" for 3.70.
func (v Version) String() string {
	return regs.Bits[Version]{{SNPSVER.Mask(), "SNPSVER"}, {USERVER.Mask(), "USERVER"}}.String(v)
}

// String names what is set, as "TXPAUSED".
func (v Debug) String() string {
	return regs.Bits[Debug]{
		{RPESTS, "RPESTS"}, {RFCFCSTS.Mask(), "RFCFCSTS"}, {RWCSTS, "RWCSTS"}, {RRCSTS.Mask(), "RRCSTS"}, {RXFSTS.Mask(), "RXFSTS"},
		{TPESTS, "TPESTS"}, {TFCSTS.Mask(), "TFCSTS"}, {TXPAUSED, "TXPAUSED"}, {TRCSTS.Mask(), "TRCSTS"}, {TWCSTS, "TWCSTS"},
		{TXFSTS, "TXFSTS"}, {TXSTSFSTS, "TXSTSFSTS"},
	}.String(v)
}

// String names what is set, as "PMT|TS".
func (v MACInterrupt) String() string {
	return regs.Bits[MACInterrupt]{
		{RGSMIIIS, "RGSMII"}, {PCSLCHGIS, "PCSLCHG"}, {PCSANCIS, "PCSANC"}, {PMTIS, "PMT"}, {MMCIS, "MMC"}, {MMCRXIS, "MMCRX"},
		{MMCTXIS, "MMCTX"}, {MMCRXIPIS, "MMCRXIP"}, {TSIS, "TS"}, {LPIIS, "LPI"},
	}.String(v)
}

// String names what is set, as "ADDRHI=256|AE".
func (v AddressHigh) String() string {
	return regs.Bits[AddressHigh]{{ADDRHI.Mask(), "ADDRHI"}, {MBC.Mask(), "MBC"}, {SA, "SA"}, {AE, "AE"}}.String(v)
}

// String names what is set, as "CNTRST|RSTONRD".
func (v MMCCtrl) String() string {
	return regs.Bits[MMCCtrl]{
		{MMCCntRst, "CNTRST"}, {MMCCntStopRO, "CNTSTOPRO"}, {MMCRstOnRd, "RSTONRD"}, {MMCCntFreez, "CNTFREEZ"},
		{MMCCntPrst, "CNTPRST"}, {MMCCntPrstLvl, "CNTPRSTLVL"}, {MMCUCDBC, "UCDBC"},
	}.String(v)
}

// String names what is set, as "SWR|PBL=1|FB".
func (v BusMode) String() string {
	return regs.Bits[BusMode]{
		{SWR, "SWR"}, {DA, "DA"}, {DSL.Mask(), "DSL"}, {ATDS, "ATDS"}, {PBL.Mask(), "PBL"}, {PRIO.Mask(), "PR"}, {FB, "FB"},
		{RPBL.Mask(), "RPBL"}, {USP, "USP"}, {PBLX8, "8xPBL"}, {AAL, "AAL"}, {MB, "MB"}, {TXPR, "TXPR"},
	}.String(v)
}

// String names what is set, as "RI|NIS|RS=3".
func (v Status) String() string {
	return regs.Bits[Status]{
		{TI, "TI"}, {TPS, "TPS"}, {TU, "TU"}, {TJT, "TJT"}, {OVF, "OVF"}, {UNF, "UNF"}, {RI, "RI"}, {RU, "RU"}, {RPS, "RPS"},
		{RWT, "RWT"}, {ETI, "ETI"}, {FBI, "FBI"}, {ERI, "ERI"}, {AIS, "AIS"}, {NIS, "NIS"}, {RS.Mask(), "RS"}, {TS.Mask(), "TS"},
		{EB.Mask(), "EB"}, {GLI, "GLI"}, {GMI, "GMI"}, {GPI, "GPI"}, {TTI, "TTI"},
	}.String(v)
}

// String names what is set, as "SR|ST|TSF|RSF".
func (v Operation) String() string {
	return regs.Bits[Operation]{
		{SR, "SR"}, {OSF, "OSF"}, {RTC.Mask(), "RTC"}, {FUF, "FUF"}, {FEF, "FEF"}, {EFC, "EFC"}, {RFA.Mask(), "RFA"},
		{RFD.Mask(), "RFD"}, {ST, "ST"}, {TTC.Mask(), "TTC"}, {FTF, "FTF"}, {TSF, "TSF"}, {RFD2, "RFD_2"}, {RFA2, "RFA_2"},
		{DFF, "DFF"}, {RSF, "RSF"}, {DT, "DT"},
	}.String(v)
}

// String names what is set, as "RIE|NIE".
func (v Interrupt) String() string {
	return regs.Bits[Interrupt]{
		{TIE, "TIE"}, {TSE, "TSE"}, {TUE, "TUE"}, {TJE, "TJE"}, {OVE, "OVE"}, {UNE, "UNE"}, {RIE, "RIE"}, {RUE, "RUE"}, {RSE, "RSE"},
		{RWE, "RWE"}, {ETE, "ETE"}, {FBE, "FBE"}, {ERE, "ERE"}, {AIE, "AIE"}, {NIE, "NIE"},
	}.String(v)
}

// String names what is set, as "RIWT=160".
func (v Watchdog) String() string { return regs.Bits[Watchdog]{{RIWT.Mask(), "RIWT"}}.String(v) }

// String names what is set, as "BLEN4|RD_OSR_LMT=1".
func (v AXIMode) String() string {
	return regs.Bits[AXIMode]{
		{UNDEF, "UNDEF"}, {BLEN4, "BLEN4"}, {BLEN8, "BLEN8"}, {BLEN16, "BLEN16"}, {BLEN32, "BLEN32"}, {BLEN64, "BLEN64"},
		{BLEN128, "BLEN128"}, {BLEN256, "BLEN256"}, {AXIAAL, "AXI_AAL"}, {ONEKBBE, "ONEKBBE"}, {RDOSRLMT.Mask(), "RD_OSR_LMT"},
		{WROSRLMT.Mask(), "WR_OSR_LMT"}, {LPIXITFR, "LPI_XIT_FRM"}, {ENLPI, "EN_LPI"},
	}.String(v)
}

// String names what is set, as "MIISEL|GMIISEL".
func (v HWFeature) String() string {
	return regs.Bits[HWFeature]{
		{MIISEL, "MIISEL"}, {GMIISEL, "GMIISEL"}, {HDSEL, "HDSEL"}, {EXTHASHEN, "EXTHASHEN"}, {HASHSEL, "HASHSEL"},
		{ADDMACADR, "ADDMACADRSEL"}, {PCSSEL, "PCSSEL"}, {L3L4FLTREN, "L3L4FLTREN"}, {SMASEL, "SMASEL"}, {RWKSEL, "RWKSEL"},
		{MGKSEL, "MGKSEL"}, {MMCSEL, "MMCSEL"}, {TSVER1SEL, "TSVER1SEL"}, {TSVER2SEL, "TSVER2SEL"}, {EEESEL, "EEESEL"},
		{AVSEL, "AVSEL"}, {TXCOESEL, "TXCOESEL"}, {RXTYP1COE, "RXTYP1COE"}, {RXTYP2COE, "RXTYP2COE"}, {RXFIFOSIZE, "RXFIFOSIZE"},
		{RXCHCNT.Mask(), "RXCHCNT"}, {TXCHCNT.Mask(), "TXCHCNT"}, {ENHDESSEL, "ENHDESSEL"}, {INTTSEN, "INTTSEN"},
		{FLEXIPPSEN, "FLEXIPPSEN"}, {SAVLANINS, "SAVLANINS"}, {ACTPHYSEL.Mask(), "ACTPHYIF"},
	}.String(v)
}
