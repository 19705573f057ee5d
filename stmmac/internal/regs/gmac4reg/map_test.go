package gmac4reg

import "testing"

func TestMap(t *testing.T) {
	for off, want := range map[uint32]string{
		0x0000: "MAC_Configuration",
		0x0014: "MAC_Hash_Table_Reg1",
		0x0074: "MAC_Q1_Tx_Flow_Ctrl",
		0x0304: "MAC_Address0_Low",
		0x0308: "MAC_Address1_High",
		0x0d40: "MTL_TxQ1_Operation_Mode",
		0x0d30: "MTL_RxQ0_Operation_Mode",
		0x1160: "DMA_CH0_Status",
		0x1260: "DMA_CH2_Status",
		0x0794: "Rx_CRC_Error_Packets",
		0x0004: "MAC_Ext_Configuration",
		0x0930: "MAC_L3_L4_Control1",
		0x0a6c: "MAC_Layer3_Addr3_Reg7",
		0x0006: "",
		0x1f00: "",
	} {
		if got := Map.Name(off); got != want {
			t.Errorf("%#x is %q, want %q", off, got, want)
		}
	}
	seen := map[uint32]string{}
	for _, r := range Map {
		for i := range max(r.Count, 1) {
			off := r.Off + uint32(i)*r.Stride
			if other, ok := seen[off]; ok {
				t.Errorf("%s and %s both lie at %#x", r.Name, other, off)
			}
			seen[off] = r.Name
		}
	}
}
