package bringup

import (
	_ "embed"
	"fmt"
	"net"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

//go:embed linux-gmac.trace
var linuxGMAC string

// LinuxGMAC returns the accesses with which the stock Linux driver brings a GMAC 3.x up,
// until it sends the first frame. Those to the PHY are left out. The file linux-gmac.trace
// says where they were seen.
func LinuxGMAC() ([]mmio.Access, error) { return parse(linuxGMAC) }

// parse reads lines as mmio.Access formats them; what starts with # is a comment.
func parse(text string) (log []mmio.Access, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var a mmio.Access
		var op rune
		if k, err := fmt.Sscanf(line, "%c %x %x", &op, &a.Off, &a.Val); err != nil || k != 3 || op != 'R' && op != 'W' {
			return nil, fmt.Errorf("line %d: %q is no access", n, line)
		}
		a.Store = op == 'W'
		if a.String() != line {
			return nil, fmt.Errorf("line %d: %q is not as an access is written", n, line)
		}
		log = append(log, a)
	}
	return log, nil
}

// LinuxGMACOptions are how a MAC is opened as the stock driver was configured: an MTU of
// 1500, rings of 512 descriptors, the address 02:00:00:00:00:01 and checksums by the MAC.
// Its self-tests run on demand only.
func LinuxGMACOptions() []stmmac.Option {
	return []stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC), stmmac.WithHardwareAddr(net.HardwareAddr{2, 0, 0, 0, 0, 1}), stmmac.WithRings(512, 512),
		stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = false }),
	}
}

// LinuxGMACGroups are the groups that the stock driver's stack joined, in this order: all
// nodes of IPv6, all hosts of IPv4, and the solicited-node group of its address of IPv6.
func LinuxGMACGroups() []net.HardwareAddr {
	return []net.HardwareAddr{{0x33, 0x33, 0, 0, 0, 1}, {1, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0xff, 0, 0, 1}}
}

// GMACName names the registers of a GMAC 3.x. Those of the management interface to the PHY
// take no part in a comparison: how often a PHY is looked at depends on time.
func GMACName(off uint32) string {
	switch n := stmmac.RegName(stmmac.GMAC, off); n {
	case "GMII_Address", "GMII_Data":
		return ""
	case "":
		return fmt.Sprintf("%#x", off)
	default:
		return n
	}
}

// GMACReasons are why this driver brings a GMAC 3.x up in another way. The maps are the
// caller's.
func GMACReasons() Reasons {
	const lists = "the lists lie at other addresses"
	return Reasons{
		StockOnly: map[string]string{
			"LPI_Control_Status": "without EEE it is left alone",
			"LPI_Timers_Control": "without EEE it is left alone",
			"Hash_Table_Low":     "the group with the bin in it has the perfect filter, and the stock driver uses none",
		},
		OursOnly: map[string]string{
			"MAC_Address1_High": "a perfect filter lets the first group in, and the stock driver uses none",
			"MAC_Address1_Low":  "a perfect filter lets the first group in, and the stock driver uses none",
		},
		Order: map[string]string{
			"Operation_Mode":    "a dead owner may have left the DMA running: it is stopped before the reset, and the stock driver knows that nobody did",
			"MAC_Configuration": "a dead owner may have left the MAC running: it is turned off before the reset, and the stock driver knows that nobody did",
			"MAC_Frame_Filter":  "the filter is set before the receiver is on, not after",
		},
		Value: map[string]string{
			"Bus_Mode":                         "bursts for reading are a quarter of a transmit FIFO of 2 KiB at most, so that checksums can be inserted; the stock driver takes 8 beats",
			"Interrupt_Enable":                 "frames interrupt when somebody waits for them, and of errors only that of the bus is served",
			"Receive_Descriptor_List_Address":  lists,
			"Transmit_Descriptor_List_Address": lists,
			"MAC_Configuration":                "JE: frames of the standard MTU with two tags are longer than what is a giant without",
			"Interrupt_Mask":                   "PMT and LPI are masked too: nothing serves them",
			"Operation_Mode":                   "DT lets frames of which a checksum is bad come with that verdict, and EFC has thresholds that leave room for a frame: the stock driver knows of no FIFO and has none",
			"MMC_Control":                      "the counters begin at 0 and not near their end, which is for tests of them",
			"Flow_Control":                     "pause frames are off, and neither a pause time nor UP, with which pauses for the own address count too, is set without them",
		},
	}
}
