package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MAC registers. A core with
// more than one VLAN filter has MAC_VLAN_Tag_Ctrl in the place of MAC_VLAN_Tag
// and reaches its filters through MAC_VLAN_Tag_Data.
const (
	MACVLANTagData   mmio.Reg[VLANTagData] = 0x0054
	MACVLANIncl      mmio.Reg[VLANIncl]    = 0x0060
	MACInnerVLANIncl mmio.Reg[VLANIncl]    = 0x0064
)

// More bits of MAC_VLAN_Tag and MAC_VLAN_Tag_Ctrl; OB, CT and OFS are those of
// MAC_VLAN_Tag_Ctrl alone, where VL is in the other.
const (
	VLANOB  VLANTag = 1 << 0  // busy; setting it starts the access
	VLANCT  VLANTag = 1 << 1  // 1 reads a filter, 0 writes it
	ERSVLM  VLANTag = 1 << 19 // match S-VLAN tags, not C-VLAN tags
	DOVLTC  VLANTag = 1 << 20 // match tags of either type
	VTHM    VLANTag = 1 << 25 // hash match
	ERIVLT  VLANTag = 1 << 27 // match the inner tag
	EIVLRXS VLANTag = 1 << 31 // inner tag in RDES0

	VLANOFS mmio.Field[VLANTag] = 0x1f << 2 // number of the filter
	EIVLS   mmio.Field[VLANTag] = 0x3 << 28 // stripping of the inner tag
)

// Values of EVLS and EIVLS.
const (
	StripNever  = 0
	StripPass   = 1 // tags that pass the filter
	StripFail   = 2 // tags that fail it
	StripAlways = 3
)

// VLANTagData is the value of MAC_VLAN_Tag_Data, one filter.
type VLANTagData uint32

// Bits of MAC_VLAN_Tag_Data.
const (
	VEN     VLANTagData = 1 << 16 // enabled
	VETV    VLANTagData = 1 << 17 // ETV: compare the 12 bits of the VID only
	VDOVLTC VLANTagData = 1 << 18 // DOVLTC: match tags of either type
	VERSVLM VLANTagData = 1 << 19 // ERSVLM: match S-VLAN tags
	VERIVLT VLANTagData = 1 << 20 // ERIVLT: match the inner tag
	DMACHEN VLANTagData = 1 << 24 // a match selects the DMA channel

	VID    mmio.Field[VLANTagData] = 0xffff << 0
	DMACHN mmio.Field[VLANTagData] = 0x7 << 25
)

// VLANIncl is the value of MAC_VLAN_Incl and of MAC_Inner_VLAN_Incl.
type VLANIncl uint32

// Bits of MAC_VLAN_Incl.
const (
	VLP  VLANIncl = 1 << 18 // VLC counts, not the descriptor
	CSVL VLANIncl = 1 << 19 // S-VLAN: the type of inserted tags is 0x88a8
	VLTI VLANIncl = 1 << 20 // the tag comes from the context descriptor

	VLT mmio.Field[VLANIncl] = 0xffff << 0
	VLC mmio.Field[VLANIncl] = 0x3 << 16
)

// Values of VLC, VTIR and IVTIR.
const (
	TagNone    = 0
	TagRemove  = 1
	TagInsert  = 2
	TagReplace = 3
)

// Values of SAIC and SARC: bit 2 selects MAC address 1, and with SARC a value
// without bit 1 leaves the choice to the descriptor.
const (
	SAInsert   = 1 // SAIC
	SAReplace  = 2 // SAIC
	SARInsert  = 2 // SARC
	SARReplace = 3 // SARC
	SAMac1     = 4
)

// Bits of a transmit context descriptor: of word 3, and IVT of word 2.
const (
	TxIVLTV TDES3 = 1 << 17 // IVT is valid

	TxVT  mmio.Field[TDES3] = 0xffff << 0
	IVTIR mmio.Field[TDES3] = 0x3 << 18

	TxIVT mmio.Field[TDES2] = 0xffff << 16
)

// ITS is the status of the inner tag in a core with more than one VLAN filter,
// where VF is the status of the outer tag.
const ITS RDES2 = 1 << 14
