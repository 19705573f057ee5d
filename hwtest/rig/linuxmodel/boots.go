package linuxmodel

import (
	"maps"

	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Boots returns all, in the order in which they are run.
func Boots() []*Boot {
	return []*Boot{
		{Name: "YT6801, dwmac-motorcomm", chip: "yt6801", driver: "dwmac-motorcomm",
			cannot: cannot(oneQueue(), oneAddress()), atLeast: 21, fails: noPause(),
			// Its driver has no struct clk, so a tick of the LPI timers is 4096 clocks long, 164
			// µs. With a time beyond the entry timer of the MAC the core takes one of its own.
			core: "eee_timer=2000"},
		// Two of one kind would be one MDIO bus for the driver.
		{Name: "EHL, dwmac-intel", chip: "ehl", other: "ehl-pse", driver: "dwmac-intel", iommu: true, step: 13,
			// The queues have 4096 bytes each, and a frame is to fit into one.
			mtu:    4000,
			cannot: cannot(oneAddress(), noSplit()), atLeast: 22},
		{Name: "GMAC4, one queue", chip: "gmac4", driver: "dwmac-modelpci", step: 13,
			params: "gen=2 filter_entries=32 bins=256 sph=1", cannot: cannot(oneQueue()), atLeast: 25},
		{Name: "GMAC4, four queues, a vector each", chip: "gmac4", driver: "dwmac-modelpci", step: 13,
			opts:   chips.Options{Queues: 4, Model: func(c *sim.Config) { c.RxFIFO, c.TxFIFO = 65536, 65536 }},
			params: "gen=2 rxq=4 txq=4 multi_irq=1 filter_entries=32 bins=256 sph=1 rx_fifo=65536 tx_fifo=65536",
			cannot: cannot(), atLeast: 26},
		{Name: "GMAC 3.x, normal descriptors", chip: "gmac", driver: "dwmac-modelpci", step: 13,
			// The driver gives buffers of 2047 bytes, no multiple of the bus's width: what the last
			// of them holds is not said (databook, RBS1), and the model does not use them.
			mtu:    1900,
			params: "gen=1 filter_entries=32 rx_fifo=16384 tx_fifo=16384", cannot: cannot(oneQueue(), before4()), atLeast: 8},
	}
}

// Why the driver leaves self-tests out (stmmac_selftests.c).

// cannot are those of every chip here, and others.
func cannot(more ...map[string]string) map[string]string {
	all := map[string]string{
		"RSS":                    "no rssen, which the feature registers of XGMAC alone have",
		"Flexible RX Parser":     "no frpsel",
		"TBS (ETF Scheduler)":    "hwts_tx_en is 0: nobody has asked for timestamps",
		"SVLAN Filtering (perf)": "the driver has no NETIF_F_HW_VLAN_STAG_FILTER",
		"SVLAN TX Insertion":     "the driver has no NETIF_F_HW_VLAN_STAG_TX",
	}
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

func oneQueue() map[string]string {
	return map[string]string{"Multichannel Jumbo": "tx_queues_to_use is 1"}
}

func noSplit() map[string]string {
	return map[string]string{"Split Header": "dwmac-intel sets STMMAC_FLAG_SPH_DISABLE"}
}

func noPause() map[string]string {
	return map[string]string{"Flow Control": "dwmac-motorcomm leaves mode_to_use at MTL_QUEUE_AVB, for which dwmac4_dma_rx_chan_op_mode does not set EHFC"}
}

func oneAddress() map[string]string {
	const why = "netdev_uc_count() + 2 > unicast_filter_entries, of which the glue driver has 1"
	return map[string]string{"Perfect Filter UC": why, "MC Filter": why, "UC Filter": why}
}

// before4 are those of features that a GMAC 3.x does not have.
func before4() map[string]string {
	m := map[string]string{}
	for _, name := range []string{"EEE", "VLAN Filtering", "VLAN Filtering (perf)", "SVLAN Filtering", "SA Insertion (desc)", "SA Replacement (desc)",
		"SA Insertion (reg)", "SA Replacement (reg)", "VLAN TX Insertion", "L3 DA Filtering", "L3 SA Filtering", "L4 DA TCP Filtering",
		"L4 SA TCP Filtering", "L4 DA UDP Filtering", "L4 SA UDP Filtering", "ARP Offload", "Split Header"} {
		m[name] = "the feature register of a GMAC 3.x has no such feature"
	}
	return m
}
