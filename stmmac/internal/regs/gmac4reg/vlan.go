package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MAC registers.
// MAC_VLAN_Tag_Ctrl is what MAC_VLAN_Tag is called where there are several VLAN
// filters: these lie behind it and MAC_VLAN_Tag_Data.
const (
	MACVLANTagCtrl mmio.Reg[VLANTag]     = 0x0050
	MACVLANTagData mmio.Reg[VLANTagData] = 0x0054
)

// More bits of MAC_VLAN_Tag. The lowest seven are those of MAC_VLAN_Tag_Ctrl:
// where they are, VL is not.
const (
	VLANOB  VLANTag = 1 << 0  // OB: busy; setting it starts an access to a filter
	VLANCT  VLANTag = 1 << 1  // CT: the access is a read
	DOVLTC  VLANTag = 1 << 20 // C-VLAN and S-VLAN tags are filtered alike
	VTHM    VLANTag = 1 << 25 // the hash table is used
	EIVLRXS VLANTag = 1 << 31 // inner tag in RDES0

	VLANOFS mmio.Field[VLANTag] = 0x1f << 2 // OFS: number of the filter
	EIVLS   mmio.Field[VLANTag] = 0x3 << 28
)

// EVLSAlways is the value of EVLS and EIVLS that strips every tag.
const EVLSAlways = 3

// VLANTagData is the value of MAC_VLAN_Tag_Data for one VLAN filter.
type VLANTagData uint32

// Bits of MAC_VLAN_Tag_Data.
const (
	VLANVEN VLANTagData = 1 << 16 // VEN: the filter is on
	VLANETV VLANTagData = 1 << 17 // ETV: compare the 12 bits of the VID only

	VLANVID mmio.Field[VLANTagData] = 0xffff << 0
)
