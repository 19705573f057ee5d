package chips

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func TestGroups(t *testing.T) {
	var names []string
	for q := range 8 {
		names = append(names, fmt.Sprintf("MTL_TxQ%d_Underflow", q), fmt.Sprintf("MTL_RxQ%d_Control", q))
		if q != 3 {
			names = append(names, fmt.Sprintf("DMA_CH%d_Status", q))
		}
	}
	for f := range 4 {
		for a := range 4 {
			if f > 0 || a > 1 {
				names = append(names, fmt.Sprintf("MAC_Layer3_Addr%d_Reg%d", a, f))
			}
		}
	}
	names = append(names, "DMA_Mode", "MAC_L3_L4_Control2", "MMC_Control", "Tx_64Octets_Packets_Good_Bad", "Tx_128To255Octets_Packets_Good_Bad",
		"MAC_System_Time_Seconds", "MAC_PPS0_Interval", "DMA_CH9_Only")
	want := []string{
		"MAC: MAC_Layer3_Addr[2-3]_Reg[0-3] MAC_Layer3_Addr[0-1]_Reg[1-3] MAC_L3_L4_Control2",
		"PTP: MAC_System_Time_Seconds MAC_PPS0_Interval",
		"MMC: MMC_Control Tx_64Octets_Packets_Good_Bad Tx_128To255Octets_Packets_Good_Bad",
		"MTL: MTL_TxQ[0-7]_Underflow MTL_RxQ[0-7]_Control",
		"DMA: DMA_CH[0-2,4-7]_Status DMA_Mode DMA_CH9_Only",
	}
	if diff := cmp.Diff(want, Groups(names)); diff != "" {
		t.Error(diff)
	}
	if got := Groups(nil); got != nil {
		t.Errorf("of no names: %q", got)
	}
}

// TestCut: a name is its parts.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
	}{
		{"", []string{""}},
		{"MAC", []string{"MAC"}},
		{"A12b3", []string{"A", "12", "b", "3", ""}},
		{"1", []string{"", "1", ""}},
	} {
		if got := cut(c.name); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.name, got)
		}
	}
}

// TestGroupsKeepAll: the ranges of the whole map have as many registers as there are.
func TestGroupsKeepAll(t *testing.T) {
	all := sim.Registers(sim.GMAC4)
	count := 0
	for _, line := range Groups(all) {
		for _, name := range strings.Fields(line)[1:] {
			n := 1
			for _, list := range regexp.MustCompile(`\[([^]]*)\]`).FindAllStringSubmatch(name, -1) {
				values := 0
				for one := range strings.SplitSeq(list[1], ",") {
					first, last, ok := strings.Cut(one, "-")
					if !ok {
						last = first
					}
					a, errA := strconv.Atoi(first)
					b, errB := strconv.Atoi(last)
					if errA != nil || errB != nil || b < a {
						t.Fatalf("%s has the range %q", name, one)
					}
					values += b - a + 1
				}
				n *= values
			}
			count += n
		}
	}
	if count != len(all) {
		t.Errorf("%d registers of %d", count, len(all))
	}
}
