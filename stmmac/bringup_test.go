package stmmac_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/internal/bringup"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// openFake opens a MAC on scripted registers and returns what it wrote.
func openFake(t *testing.T, f *mmio.Fake, opts ...stmmac.Option) []mmio.Access {
	t.Helper()
	d := newFakeDevice(f)
	opts = append([]stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit),
		stmmac.WithHardwareAddr([]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}),
		stmmac.WithClock(&stepClock{}),
		stmmac.WithNetIPAlign(0), // the same receive buffer size for every GOARCH
		stmmac.WithConfig(func(c *stmmac.Config) { c.CSRClock = 125_000_000 }),
	}, opts...)
	m, err := stmmac.Open(t.Context(), d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	log := f.Log()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	d.mustUnmap(t)
	return log
}

// TestBringUpGolden holds the order and the values of all register writes of
// an opening.
func TestBringUpGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []stmmac.Option
	}{
		{"one-queue", nil},
		{"four-queues-jumbo-off", []stmmac.Option{stmmac.WithQueues(4, 4), stmmac.WithRings(64, 128), stmmac.WithPromiscuous()}},
		{"100-half", []stmmac.Option{stmmac.WithLink(stmmac.Link{Up: true, Speed: 100}), stmmac.WithAllMulticast()}},
		{"link-down-strip-fcs", []stmmac.Option{stmmac.WithLink(stmmac.Link{}), stmmac.WithConfig(func(c *stmmac.Config) { c.StripFCS = true })}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			goldenStores(t, stmmac.GMAC4, "testdata/bringup-"+tc.name+".golden", openFake(t, fakeGMAC4(), tc.opts...))
		})
	}
}

// goldenStores compares the stores in a log with a golden file.
func goldenStores(t *testing.T, g stmmac.Generation, file string, log []mmio.Access) {
	t.Helper()
	var b strings.Builder
	for _, a := range log {
		if a.Store {
			fmt.Fprintf(&b, "%s %08x\n", stmmac.RegName(g, a.Off), a.Val)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
}

// gmac4Reasons are why this driver brings a GMAC4 up in another way than the stock one.
var gmac4Reasons = bringup.Reasons{
	StockOnly: map[string]string{
		"MAC_Ext_Configuration": "HDSMS belongs to split header, which stays off",
		"MAC_Ext_Cfg1":          "SPLM belongs to split header, which stays off",
		"DMA_TBS_Ctrl0":         "launch time is not used",
		"MAC_VLAN_Tag":          "tags stay in the frames and no VLAN is filtered",
		"MAC_VLAN_Hash_Table":   "no VLAN is filtered",
	},
	Order: map[string]string{
		"MAC_Configuration":   "a dead owner may have left the receiver on: it is turned off before the reset",
		"DMA_CH0_Tx_Control":  "a dead owner may have left the channel running: it is stopped before the reset",
		"DMA_CH0_Rx_Control":  "a dead owner may have left the channel running: it is stopped before the reset",
		"MAC_Hash_Table_Reg0": "the hash table is cleared with the address, before the receiver is on",
		"MAC_Hash_Table_Reg1": "the hash table is cleared with the address, before the receiver is on",
		"MAC_Packet_Filter":   "the filter is set before the receiver is on, not after",
	},
	Value: map[string]string{
		"DMA_Mode":                            "INTM is 1 only with a vector for each queue",
		"MAC_Address0_High":                   "another address",
		"MAC_Address0_Low":                    "another address",
		"MAC_1US_Tic_Counter":                 "the stock driver has no CSR clock there and writes all ones",
		"MAC_Configuration":                   "no checksum offload (IPC); the speed is 1000, and 100 in the trace",
		"MAC_Interrupt_Enable":                "no source of the MAC core is served, so none is enabled",
		"MAC_RxQ_Ctrl0":                       "the queue is enabled for DCB and generic traffic; the stock glue leaves the mode at AV",
		"MAC_Packet_Filter":                   "no multicast filter (HMC)",
		"MAC_Hash_Table_Reg0":                 "no multicast filter",
		"MAC_Rx_Flow_Ctrl":                    "no pause frames: the link has not agreed on them",
		"MAC_Q0_Tx_Flow_Ctrl":                 "no pause frames: the link has not agreed on them",
		"MMC_Control":                         "the counters are reset; CNTPRST with CNTRST would preset them to almost full where it wins",
		"MTL_RxQ0_Operation_Mode":             "EHFC and its thresholds: the stock driver sets none for a queue whose mode its glue left at AV",
		"MTL_TxQ0_Operation_Mode":             "TXQEN is enabled (2), which the glue leaves at AV (1)",
		"DMA_CH0_Control":                     "no split header",
		"DMA_CH0_Tx_Control":                  "no TSO",
		"DMA_CH0_Rx_Control":                  "the receive buffer size follows the buffers of the pool",
		"DMA_CH0_Interrupt_Enable":            "RI and TI are enabled only while a queue sleeps, and no error but FBE is served",
		"DMA_CH0_Rx_Interrupt_Watchdog_Timer": "no watchdog: every descriptor has IOC",
		"DMA_CH0_RxDesc_List_Address":         "another address",
		"DMA_CH0_TxDesc_List_Address":         "another address",
		"DMA_CH0_RxDesc_Tail_Pointer":         "one descriptor stays with the driver and the tail names it; the stock driver's names the end of the ring",
		"DMA_CH0_TxDesc_Tail_Pointer":         "another address",
	},
}

// TestBringUpAgainstLinux compares the bring-up with that of the stock Linux
// driver as a second source.
func TestBringUpAgainstLinux(t *testing.T) {
	f := fakeGMAC4()
	f.Set(0x0124, 0) // the YT6801 has one queue of each
	r := bringup.Compare(readTrace(t, "testdata/linux-yt6801-open.trace"), openFake(t, f), gmac4Name, gmac4Reasons)
	for _, p := range r.Problems {
		t.Error(p)
	}
	t.Log(r)
}

// gmac4Name names the registers, also those that the driver does not know. Those of
// address filters take no part: the stock driver clears all.
func gmac4Name(off uint32) string {
	name := stmmac.RegName(stmmac.GMAC4, off)
	switch {
	case strings.HasPrefix(name, "MAC_Address") && name[11] != '0':
		return ""
	case off == 0x0238:
		return "MAC_Ext_Cfg1"
	case off == 0x1050:
		return "DMA_TBS_Ctrl0"
	case name == "":
		return fmt.Sprintf("%#x", off)
	}
	return name
}

// readTrace reads the writes to the CSR space from a trace of the YT6801.
func readTrace(t *testing.T, file string) []mmio.Access {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var log []mmio.Access
	for s := bufio.NewScanner(f); s.Scan(); {
		var off, val uint32
		if n, _ := fmt.Sscanf(s.Text(), "W %x %x", &off, &val); n == 2 && off >= 0x2000 {
			log = append(log, mmio.Access{Off: off - 0x2000, Val: val, Store: true})
		}
	}
	if len(log) < 50 {
		t.Fatalf("%s has %d writes", file, len(log))
	}
	return log
}
