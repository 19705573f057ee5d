package gmacreg

import (
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
)

func TestMap(t *testing.T) {
	for off, want := range map[uint32]string{
		0x0000: "MAC_Configuration",
		0x0004: "MAC_Frame_Filter",
		0x0018: "Flow_Control",
		0x0020: "Version",
		0x0040: "MAC_Address0_High",
		0x00bc: "MAC_Address15_Low",
		0x0800: "MAC_Address16_High",
		0x087c: "MAC_Address31_Low",
		0x0114: "txoctetcount_gb",
		0x0194: "rxcrcerror",
		0x0210: "rxipv4_gd_frms",
		0x0284: "rxicmp_err_octets",
		0x051c: "Hash_Table_Reg7",
		0x1014: "Status",
		0x1058: "HW_Feature",
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

// TestReads: a dump must not take counts or events away.
func TestReads(t *testing.T) {
	for _, r := range Map {
		switch r.Off {
		case 0x0014, 0x1004, 0x1008:
			if r.Read != regs.ReadWindow {
				t.Errorf("%s is read as %d", r.Name, r.Read)
			}
		case 0x002c, 0x0030, 0x0104, 0x0180, 0x0284, 0x0728, 0x1020:
			if r.Read != regs.ReadClears {
				t.Errorf("%s is read as %d", r.Name, r.Read)
			}
		case 0x0000, 0x1014, 0x1018, 0x0100, 0x010c, 0x0200:
			if r.Read != regs.ReadPlain {
				t.Errorf("%s is read as %d", r.Name, r.Read)
			}
		}
	}
}

// TestThresholds: the three bits of a threshold stand in two places.
func TestThresholds(t *testing.T) {
	for code, want := range map[uint32][2]Operation{0: {0, 0}, 1: {0x200, 0x800}, 3: {0x600, 0x1800}, 4: {0x800000, 0x400000}, 6: {0x800400, 0x401000}} {
		if a, d := RFAOf(code), RFDOf(code); a != want[0] || d != want[1] {
			t.Errorf("code %d: %#x and %#x, want %#x", code, uint32(a), uint32(d), want)
		}
		if a, d := RFAFrom(RFAOf(code)), RFDFrom(RFDOf(code)); a != code || d != code {
			t.Errorf("code %d reads back as %d and %d", code, a, d)
		}
	}
}

// TestText: the values that the stock driver programs on QEMU's device.
func TestText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Configuration(0x610c0c).String(), "RE|TE|IPC|DM|DCRS|BE|JD"},
		{BusMode(0x1900800).String(), "PBL=8|RPBL=8|USP|8xPBL"},
		{Operation(0x3202006).String(), "SR|OSF|ST|TSF|DFF|RSF"},
		{Interrupt(0x1a061).String(), "TIE|UNE|RIE|FBE|AIE|NIE"},
		{Status(0x670005).String(), "TI|TU|NIS|RS=3|TS=6"},
		{FrameFilter(0x404).String(), "HMC|HPF"},
		{Flow(0xffff0008).String(), "UP|PT=65535"},
		{Version(0x1032).String(), "SNPSVER=50|USERVER=16"},
		{HWFeature(0x100d4f37).String(), "MIISEL|GMIISEL|HDSEL|HASHSEL|ADDMACADRSEL|SMASEL|RWKSEL|MGKSEL|MMCSEL|EEESEL|TXCOESEL|RXTYP2COE|RXFIFOSIZE|ACTPHYIF=1"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
