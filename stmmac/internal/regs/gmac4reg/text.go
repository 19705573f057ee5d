package gmac4reg

import "github.com/gostmmac/gostmmac/stmmac/internal/regs"

// String names what is set, as "TE|RE|DM".
func (v Configuration) String() string {
	return regs.Bits[Configuration]{
		{RE, "RE"}, {TE, "TE"}, {1 << 4, "DC"}, {0x3 << 5, "BL"}, {DR, "DR"}, {DCRS, "DCRS"}, {1 << 10, "DO"}, {1 << 11, "ECRSFD"},
		{0x3 << 2, "PRELEN"}, {LM, "LM"}, {DM, "DM"}, {FES, "FES"}, {PS, "PS"}, {JE, "JE"}, {JD, "JD"}, {BE, "BE"}, {WD, "WD"},
		{ACS, "ACS"}, {CST, "CST"}, {S2KP, "S2KP"}, {GPSLCE, "GPSLCE"}, {IPG.Mask(), "IPG"}, {IPC, "IPC"},
		{SARC.Mask(), "SARC"}, {ARPEN, "ARPEN"},
	}.String(v)
}

// String names what is set, as "PR|HMC".
func (v PacketFilter) String() string {
	return regs.Bits[PacketFilter]{
		{PR, "PR"}, {HUC, "HUC"}, {HMC, "HMC"}, {DAIF, "DAIF"}, {PM, "PM"}, {DBF, "DBF"}, {PCF.Mask(), "PCF"}, {SAIF, "SAIF"},
		{SAF, "SAF"}, {HPF, "HPF"}, {VTFE, "VTFE"}, {IPFE, "IPFE"}, {DNTU, "DNTU"}, {RA, "RA"},
	}.String(v)
}

// String names what is set, as "WTO=14|PWE".
func (v WatchdogTimeout) String() string {
	return regs.Bits[WatchdogTimeout]{{WTO.Mask(), "WTO"}, {PWE, "PWE"}}.String(v)
}

// String names what is set. With several VLAN filters the low bits are OB, CT and
// OFS of the last access to one and not a VLAN; they are told as VL all the same.
func (v VLANTag) String() string {
	return regs.Bits[VLANTag]{
		{VL.Mask(), "VL"}, {ETV, "ETV"}, {VTIM, "VTIM"}, {ESVL, "ESVL"}, {ERSVLM, "ERSVLM"}, {DOVLTC, "DOVLTC"}, {EVLS.Mask(), "EVLS"},
		{EVLRXS, "EVLRXS"}, {VTHM, "VTHM"}, {EDVLP, "EDVLP"}, {ERIVLT, "ERIVLT"}, {EIVLS.Mask(), "EIVLS"}, {EIVLRXS, "EIVLRXS"},
	}.String(v)
}

// String names what is set, as "VLTI".
func (v VLANIncl) String() string {
	return regs.Bits[VLANIncl]{{VLT.Mask(), "VLT"}, {VLC.Mask(), "VLC"}, {VLP, "VLP"}, {CSVL, "CSVL"}, {VLTI, "VLTI"}}.String(v)
}

// String names what is set, as "TFE|PT=65535".
func (v TxFlow) String() string {
	return regs.Bits[TxFlow]{{FCBBPA, "FCB_BPA"}, {TFE, "TFE"}, {PLT.Mask(), "PLT"}, {DZPQ, "DZPQ"}, {PT.Mask(), "PT"}}.String(v)
}

// String names what is set, as "RFE".
func (v RxFlow) String() string {
	return regs.Bits[RxFlow]{{RFE, "RFE"}, {UP, "UP"}}.String(v)
}

// String names what is set, as "MCBCQ=1|MCBCQEN".
func (v RxQCtrl1) String() string {
	return regs.Bits[RxQCtrl1]{
		{AVCPQ.Mask(), "AVCPQ"}, {PTPQ.Mask(), "PTPQ"}, {DCBCPQ.Mask(), "DCBCPQ"}, {UPQ.Mask(), "UPQ"}, {MCBCQ.Mask(), "MCBCQ"},
		{MCBCQEN, "MCBCQEN"}, {TACPQE, "TACPQE"}, {TPQC.Mask(), "TPQC"}, {0x7 << 24, "FPRQ"},
	}.String(v)
}

// String names what is set, as "VFFQE|VFFQ=1".
func (v RxQCtrl4) String() string {
	return regs.Bits[RxQCtrl4]{
		{UFFQE, "UFFQE"}, {UFFQ.Mask(), "UFFQ"}, {MFFQE, "MFFQE"}, {MFFQ.Mask(), "MFFQ"}, {VFFQE, "VFFQE"}, {VFFQ.Mask(), "VFFQ"},
	}.String(v)
}

// String names what is set, as "PMTIS|TSIS".
func (v MACInterrupt) String() string {
	return regs.Bits[MACInterrupt]{
		{RGSMIIIS, "RGSMII"}, {PCSLCHGIS, "PCSLCHG"}, {PCSANCIS, "PCSANC"}, {PHYIS, "PHY"}, {PMTIS, "PMT"}, {LPIIS, "LPI"},
		{MMCIS, "MMC"}, {MMCRXIS, "MMCRX"}, {MMCTXIS, "MMCTX"}, {MMCRXIPIS, "MMCRXIP"}, {TSIS, "TS"}, {1 << 13, "TXSTS"},
		{1 << 14, "RXSTS"}, {1 << 17, "FPE"}, {1 << 18, "MDIO"},
	}.String(v)
}

// String tells the two versions, as "SNPSVER=82" for 5.20.
func (v Version) String() string {
	return regs.Bits[Version]{{SNPSVER.Mask(), "SNPSVER"}, {USERVER.Mask(), "USERVER"}}.String(v)
}

// String names what is set, as "RPESTS".
func (v Debug) String() string {
	return regs.Bits[Debug]{{RPESTS, "RPESTS"}, {0x3 << 1, "RFCFCSTS"}, {TPESTS, "TPESTS"}, {0x3 << 17, "TFCSTS"}}.String(v)
}

// String names what the device has.
func (v HWFeature0) String() string {
	return regs.Bits[HWFeature0]{
		{MIISEL, "MIISEL"}, {GMIISEL, "GMIISEL"}, {HDSEL, "HDSEL"}, {PCSSEL, "PCSSEL"}, {VLHASH, "VLHASH"}, {SMASEL, "SMASEL"},
		{RWKSEL, "RWKSEL"}, {MGKSEL, "MGKSEL"}, {MMCSEL, "MMCSEL"}, {ARPOFFSEL, "ARPOFFSEL"}, {TSSEL, "TSSEL"}, {EEESEL, "EEESEL"},
		{TXCOESEL, "TXCOESEL"}, {RXCOESEL, "RXCOESEL"}, {ADDMACADRSEL.Mask(), "ADDMACADRSEL"}, {0x3 << 25, "TSSTSSEL"},
		{SAVLANINS, "SAVLANINS"}, {ACTPHYSEL.Mask(), "ACTPHYSEL"},
	}.String(v)
}

// String names what the device has.
func (v HWFeature1) String() string {
	return regs.Bits[HWFeature1]{
		{RXFIFOSIZE.Mask(), "RXFIFOSIZE"}, {TXFIFOSIZE.Mask(), "TXFIFOSIZE"}, {ADDR64.Mask(), "ADDR64"}, {DCBEN, "DCBEN"},
		{SPHEN, "SPHEN"}, {TSOEN, "TSOEN"}, {AVSEL, "AVSEL"}, {HASHTBLSZ.Mask(), "HASHTBLSZ"}, {L3L4FNUM.Mask(), "L3L4FNUM"},
	}.String(v)
}

// String names what the device has.
func (v HWFeature2) String() string {
	return regs.Bits[HWFeature2]{
		{RXQCNT.Mask(), "RXQCNT"}, {TXQCNT.Mask(), "TXQCNT"}, {RXCHCNT.Mask(), "RXCHCNT"}, {TXCHCNT.Mask(), "TXCHCNT"},
		{PPSOUTNUM.Mask(), "PPSOUTNUM"}, {AUXSNAPNUM.Mask(), "AUXSNAPNUM"},
	}.String(v)
}

// String names what the device has.
func (v HWFeature3) String() string {
	return regs.Bits[HWFeature3]{
		{NRVF.Mask(), "NRVF"}, {DVLAN, "DVLAN"}, {FRPSEL, "FRPSEL"}, {FRPBS.Mask(), "FRPBS"}, {FRPES.Mask(), "FRPES"},
		{ESTSEL, "ESTSEL"}, {ESTDEP.Mask(), "ESTDEP"}, {ESTWID.Mask(), "ESTWID"}, {FPESEL, "FPESEL"}, {TBSSEL, "TBSSEL"}, {ASP.Mask(), "ASP"},
	}.String(v)
}

// String names what is set, as "GOC=3|CR=1|PA=1".
func (v MDIOAddress) String() string {
	return regs.Bits[MDIOAddress]{
		{MDIOGB, "GB"}, {MDIOC45E, "C45E"}, {MDIOGOC.Mask(), "GOC"}, {MDIOSKAP, "SKAP"}, {MDIOCR.Mask(), "CR"}, {MDIONTC.Mask(), "NTC"},
		{MDIORDA.Mask(), "RDA"}, {MDIOPA.Mask(), "PA"}, {MDIOBTB, "BTB"}, {MDIOPSE, "PSE"},
	}.String(v)
}

// String names what is set, as "ADDRHI=256|AE".
func (v AddressHigh) String() string {
	return regs.Bits[AddressHigh]{{ADDRHI.Mask(), "ADDRHI"}, {DCS.Mask(), "DCS"}, {MBC.Mask(), "MBC"}, {SA, "SA"}, {AE, "AE"}}.String(v)
}

// String names what is set, as "L3PEN|L3SAM".
func (v L3L4Control) String() string {
	return regs.Bits[L3L4Control]{
		{L3PEN, "L3PEN"}, {L3SAM, "L3SAM"}, {L3SAIM, "L3SAIM"}, {L3DAM, "L3DAM"}, {L3DAIM, "L3DAIM"}, {L3HSBM.Mask(), "L3HSBM"},
		{L3HDBM.Mask(), "L3HDBM"}, {L4PEN, "L4PEN"}, {L4SPM, "L4SPM"}, {L4SPIM, "L4SPIM"}, {L4DPM, "L4DPM"}, {L4DPIM, "L4DPIM"},
	}.String(v)
}

// String tells the ports, as "L4SP=53".
func (v Layer4Ports) String() string {
	return regs.Bits[Layer4Ports]{{L4SP.Mask(), "L4SP"}, {L4DP.Mask(), "L4DP"}}.String(v)
}

// String names what is set, as "SPLOFST=2|SPLM=1".
func (v ExtCfg1) String() string {
	return regs.Bits[ExtCfg1]{
		{SPLOFST.Mask(), "SPLOFST"}, {SPLM.Mask(), "SPLM"}, {0x7f << 16, "SAVO"}, {1 << 24, "SAVE"},
	}.String(v)
}

// String names what is set, as "TSENA|TSCTRLSSR".
func (v TimestampControl) String() string {
	return regs.Bits[TimestampControl]{
		{TSENA, "TSENA"}, {TSCFUPDT, "TSCFUPDT"}, {TSINIT, "TSINIT"}, {TSUPDT, "TSUPDT"}, {1 << 4, "TSTRIG"}, {TSADDREG, "TSADDREG"},
		{1 << 6, "PTGE"}, {TSENALL, "TSENALL"}, {TSCTRLSSR, "TSCTRLSSR"}, {TSVER2ENA, "TSVER2ENA"}, {TSIPENA, "TSIPENA"},
		{TSIPV6ENA, "TSIPV6ENA"}, {TSIPV4ENA, "TSIPV4ENA"}, {TSEVNTENA, "TSEVNTENA"}, {TSMSTRENA, "TSMSTRENA"},
		{SNAPTYPSEL.Mask(), "SNAPTYPSEL"}, {TSENMACADDR, "TSENMACADDR"}, {1 << 19, "CSC"}, {1 << 20, "ESTI"}, {1 << 24, "TXTSSTSM"},
		{1 << 28, "AV8021ASMEN"},
	}.String(v)
}

// String tells the increment, as "SSINC=20".
func (v SubSecondIncrement) String() string {
	return regs.Bits[SubSecondIncrement]{{SNSINC.Mask(), "SNSINC"}, {SSINC.Mask(), "SSINC"}}.String(v)
}

// String tells the value, as "TSSS=999|ADDSUB".
func (v TimeNsUpdate) String() string {
	return regs.Bits[TimeNsUpdate]{{TSSS.Mask(), "TSSS"}, {ADDSUB, "ADDSUB"}}.String(v)
}

// String names what is set, as "PLS|LPIEN".
func (v LPIControl) String() string {
	return regs.Bits[LPIControl]{
		{TLPIEN, "TLPIEN"}, {TLPIEX, "TLPIEX"}, {RLPIEN, "RLPIEN"}, {RLPIEX, "RLPIEX"}, {TLPIST, "TLPIST"}, {RLPIST, "RLPIST"},
		{LPIEN, "LPIEN"}, {PLS, "PLS"}, {1 << 18, "PLSEN"}, {LPITXA, "LPITXA"}, {LPIATE, "LPIATE"}, {LPITCSE, "LPITCSE"},
	}.String(v)
}

// String tells the times, as "TWT=30|LST=1000".
func (v LPITimers) String() string {
	return regs.Bits[LPITimers]{{LPITWT.Mask(), "TWT"}, {LPILST.Mask(), "LST"}}.String(v)
}

// String names what is set, as "RSTONRD".
func (v MMCCtrl) String() string {
	return regs.Bits[MMCCtrl]{
		{MMCCntRst, "CNTRST"}, {MMCCntStopRO, "CNTSTOPRO"}, {MMCRstOnRd, "RSTONRD"}, {MMCCntFreez, "CNTFREEZ"},
		{MMCCntPrst, "CNTPRST"}, {MMCCntPrstLvl, "CNTPRSTLVL"},
	}.String(v)
}

// String names what is set, as "RAA|SCHALG=3".
func (v MTLMode) String() string {
	return regs.Bits[MTLMode]{
		{1 << 1, "DTXSTS"}, {RAA, "RAA"}, {SCHALG.Mask(), "SCHALG"}, {1 << 8, "CNTPRST"}, {1 << 9, "CNTCLR"}, {1 << 15, "FRPE"},
	}.String(v)
}

// String names what is set, as "TSF|TXQEN=2|TQS=15".
func (v MTLTxQMode) String() string {
	return regs.Bits[MTLTxQMode]{{FTQ, "FTQ"}, {TSF, "TSF"}, {TXQEN.Mask(), "TXQEN"}, {TTC.Mask(), "TTC"}, {TQS.Mask(), "TQS"}}.String(v)
}

// String names what is set, as "TXQSTS".
func (v MTLTxQDbg) String() string {
	return regs.Bits[MTLTxQDbg]{
		{TXQPAUSED, "TXQPAUSED"}, {TRCSTS.Mask(), "TRCSTS"}, {TWCSTS, "TWCSTS"}, {TXQSTS, "TXQSTS"}, {TXSTSFSTS, "TXSTSFSTS"},
		{0x7 << 16, "PTXQ"}, {0x7 << 20, "STXSTSF"},
	}.String(v)
}

// String names what is set, as "TXUNFIS|RXOVFIS".
func (v MTLQInterrupt) String() string {
	return regs.Bits[MTLQInterrupt]{
		{TXUNFIS, "TXUNFIS"}, {1 << 1, "ABPSIS"}, {TXUIE, "TXUIE"}, {1 << 9, "ABPSIE"}, {RXOVFIS, "RXOVFIS"}, {RXOIE, "RXOIE"},
	}.String(v)
}

// String names what is set, as "RSF|DIS_TCP_EF|EHFC".
func (v MTLRxQMode) String() string {
	return regs.Bits[MTLRxQMode]{
		{RTC.Mask(), "RTC"}, {FUP, "FUP"}, {FEP, "FEP"}, {RSF, "RSF"}, {DISTCPEF, "DIS_TCP_EF"}, {EHFC, "EHFC"},
		{RFA.Mask(), "RFA"}, {RFD.Mask(), "RFD"}, {RQS.Mask(), "RQS"},
	}.String(v)
}

// String names what is set, as "RXQSTS=1|PRXQ=2".
func (v MTLRxQDbg) String() string {
	return regs.Bits[MTLRxQDbg]{{1 << 0, "RWCSTS"}, {0x3 << 1, "RRCSTS"}, {RXQSTS.Mask(), "RXQSTS"}, {PRXQ.Mask(), "PRXQ"}}.String(v)
}

// String names what is set, as "RXQ_WEGT=1".
func (v RxQControl) String() string {
	return regs.Bits[RxQControl]{{RXQWEGT.Mask(), "RXQ_WEGT"}, {RXQFRMARBIT, "RXQ_FRM_ARBIT"}}.String(v)
}

// String names what is set, as "SWR|INTM=2".
func (v DMAModeVal) String() string {
	return regs.Bits[DMAModeVal]{
		{SWR, "SWR"}, {1 << 1, "DA"}, {0x7 << 2, "TAA"}, {1 << 8, "DSPW"}, {1 << 11, "TXPR"}, {0x7 << 12, "PR"}, {INTM.Mask(), "INTM"}, {DCHE, "DCHE"},
	}.String(v)
}

// String names what is set, as "BLEN16|EAME|RD_OSR_LMT=1".
func (v SysBusMode) String() string {
	return regs.Bits[SysBusMode]{
		{FB, "FB"}, {BLEN4, "BLEN4"}, {BLEN8, "BLEN8"}, {BLEN16, "BLEN16"}, {BLEN32, "BLEN32"}, {BLEN64, "BLEN64"},
		{BLEN128, "BLEN128"}, {BLEN256, "BLEN256"}, {EAME, "EAME"}, {AAL, "AAL"}, {1 << 13, "ONEKBBE"}, {MB, "MB"},
		{RDOSRLMT.Mask(), "RD_OSR_LMT"}, {WROSRLMT.Mask(), "WR_OSR_LMT"}, {LPIXIT, "LPI_XIT_PKT"}, {ENLPI, "EN_LPI"},
	}.String(v)
}

// String names what is set, as "FTOV|FTOS=16".
func (v TBSControl) String() string {
	return regs.Bits[TBSControl]{{FTOV, "FTOV"}, {FGOS.Mask(), "FGOS"}, {FTOS.Mask(), "FTOS"}}.String(v)
}

// String names what is set, as "DC0IS|MTLIS".
func (v DMAInterrupt) String() string {
	return regs.Bits[DMAInterrupt]{
		{1 << 0, "DC0IS"}, {1 << 1, "DC1IS"}, {1 << 2, "DC2IS"}, {1 << 3, "DC3IS"}, {1 << 4, "DC4IS"}, {1 << 5, "DC5IS"},
		{1 << 6, "DC6IS"}, {1 << 7, "DC7IS"}, {MTLIS, "MTLIS"}, {MACIS, "MACIS"},
	}.String(v)
}

// String names what is set, as "PBLx8".
func (v CHControl) String() string {
	return regs.Bits[CHControl]{{0x3fff, "MSS"}, {PBLx8, "PBLx8"}, {DSL.Mask(), "DSL"}, {SPH, "SPH"}}.String(v)
}

// String names what is set, as "ST|OSP|TxPBL=32".
func (v CHTxControl) String() string {
	return regs.Bits[CHTxControl]{
		{ST, "ST"}, {0x7 << 1, "TCW"}, {OSP, "OSF"}, {TSE, "TSE"}, {1 << 15, "IPBL"}, {TXPBL.Mask(), "TxPBL"}, {EDSE, "EDSE"},
	}.String(v)
}

// String names what is set, as "SR|RBSZ=1536|RxPBL=32".
func (v CHRxControl) String() string {
	return regs.Bits[CHRxControl]{{SR, "SR"}, {RBSZ.Mask(), "RBSZ"}, {RXPBL.Mask(), "RxPBL"}, {RPF, "RPF"}}.String(v)
}

// String names what is set from 4.10 on, as "RIE|NIE"; see [CHInterrupt.Text400].
func (v CHInterrupt) String() string {
	return append(chInterrupts(), regs.Bits[CHInterrupt]{{AIE, "AIE"}, {NIE, "NIE"}}...).String(v)
}

// Text400 is String for 4.00, where the two summary bits stand one bit higher.
func (v CHInterrupt) Text400() string {
	return append(chInterrupts(), regs.Bits[CHInterrupt]{{AIE400, "AIE"}, {NIE400, "NIE"}}...).String(v)
}

func chInterrupts() regs.Bits[CHInterrupt] {
	return regs.Bits[CHInterrupt]{
		{TIE, "TIE"}, {TXSE, "TXSE"}, {TBUE, "TBUE"}, {RIE, "RIE"}, {RBUE, "RBUE"}, {RSE, "RSE"}, {RWTE, "RWTE"},
		{ETIE, "ETIE"}, {ERIE, "ERIE"}, {FBEE, "FBEE"}, {CDEE, "CDEE"},
	}
}

// String names what is set, as "RWT=16|RWTU=3".
func (v RxWatchdog) String() string {
	return regs.Bits[RxWatchdog]{{RWTF.Mask(), "RWT"}, {RWTU.Mask(), "RWTU"}}.String(v)
}

// String names what is set, as "TI|RI|NIS".
func (v CHStatus) String() string {
	return regs.Bits[CHStatus]{
		{TI, "TI"}, {TPS, "TPS"}, {TBU, "TBU"}, {RI, "RI"}, {RBU, "RBU"}, {RPS, "RPS"}, {RWT, "RWT"}, {ETI, "ETI"}, {ERI, "ERI"},
		{FBE, "FBE"}, {CDE, "CDE"}, {AIS, "AIS"}, {NIS, "NIS"}, {TEB.Mask(), "TEB"}, {REB.Mask(), "REB"},
	}.String(v)
}
