// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test glue: gives a PCI function that models a DesignWare Ethernet MAC to the
 * kernel's stmmac core, as the generation that its device id names. BAR 0 holds
 * the registers. Parameters hold for all such functions of a guest.
 */
#include <linux/clk.h>
#include <linux/clk-provider.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/property.h>
#include <linux/stmmac.h>

#include "stmmac.h"		/* private: stmmac_dvr_probe(), stmmac_resources */
#include "stmmac_libpci.h"

#define DRV "dwmac-modelpci"

static int gen = -1;
module_param(gen, int, 0444);
MODULE_PARM_DESC(gen, "generation instead of the device id's: 0 MAC100, 1 GMAC, 2 GMAC4, 3 XGMAC");
static uint mac_off;
module_param(mac_off, uint, 0444);
MODULE_PARM_DESC(mac_off, "offset of the MAC's registers in BAR 0");
static uint rxq = 1, txq = 1;
module_param(rxq, uint, 0444);
MODULE_PARM_DESC(rxq, "receive queues");
module_param(txq, uint, 0444);
MODULE_PARM_DESC(txq, "transmit queues");
static bool multi_irq;
module_param(multi_irq, bool, 0444);
MODULE_PARM_DESC(multi_irq, "MSI-X vectors: 0 is the MAC's, then one for each receive queue, then one for each transmit queue");
static uint filter_entries;
module_param(filter_entries, uint, 0444);
MODULE_PARM_DESC(filter_entries, "perfect address filters: 1 to 32, 64 or 128; 0 is what stmmac takes without glue");
static uint bins;
module_param(bins, uint, 0444);
MODULE_PARM_DESC(bins, "bins of the hash filter: 64, 128 or 256; 0 is what stmmac takes without glue");
static uint rx_fifo, tx_fifo;
module_param(rx_fifo, uint, 0444);
MODULE_PARM_DESC(rx_fifo, "receive FIFO in bytes; 0 is what the feature registers say, or 16384");
module_param(tx_fifo, uint, 0444);
MODULE_PARM_DESC(tx_fifo, "transmit FIFO in bytes; 0 is what the feature registers say, or 4096");
static int enh_desc;
module_param(enh_desc, int, 0444);
MODULE_PARM_DESC(enh_desc, "enhanced descriptors; used where no feature register says so");
static int coe = 1;
module_param(coe, int, 0444);
MODULE_PARM_DESC(coe, "checksum engine; used where no feature register says so");
static uint ptp_hz = 50000000;
module_param(ptp_hz, uint, 0444);
MODULE_PARM_DESC(ptp_hz, "PTP clock in Hz");
static uint csr_hz = 125000000;
module_param(csr_hz, uint, 0444);
MODULE_PARM_DESC(csr_hz, "clock of the registers in Hz, which the LPI timers and the receive watchdog count");
static bool tso, sph;
module_param(tso, bool, 0444);
MODULE_PARM_DESC(tso, "segmentation of TCP");
module_param(sph, bool, 0444);
MODULE_PARM_DESC(sph, "split header");
static uint fixed;
module_param(fixed, uint, 0444);
MODULE_PARM_DESC(fixed, "Mbit/s of a link without MDIO and PHY; 0 is MDIO");
static int phyif = -1;
module_param(phyif, int, 0444);
MODULE_PARM_DESC(phyif, "phy_interface_t instead of MII or GMII");

static const struct software_node mac_node = { .name = "modelpci-mac" };
static struct property_entry link_props[3];
static const struct software_node link_node = {
	.name = "fixed-link", .parent = &mac_node, .properties = link_props,
};
static const struct software_node *nodes[] = { &mac_node, &link_node, NULL };

static void free_irqs(void *pdev)
{
	pci_free_irq_vectors(pdev);
}

/*
 * QEMU's ACPI tables describe each PCI function. With that node beside it a
 * software node is not looked at (and ACPI's search for a child takes it for
 * one of its own and oopses), so ours takes its place while we are bound.
 */
struct saved_node {
	struct device *dev;
	struct fwnode_handle *fwnode;
};

static void restore_node(void *p)
{
	struct saved_node *s = p;

	s->dev->fwnode = s->fwnode;
}

static int use_software_node(struct device *dev)
{
	struct saved_node *s = devm_kzalloc(dev, sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	s->dev = dev;
	s->fwnode = dev->fwnode;
	device_set_node(dev, software_node_fwnode(&mac_node));
	return devm_add_action_or_reset(dev, restore_node, s);
}

static int get_irqs(struct pci_dev *pdev, struct plat_stmmacenet_data *plat,
		    struct stmmac_resources *res)
{
	int n = multi_irq ? 1 + rxq + txq : 1, i, ret;

	ret = pci_alloc_irq_vectors(pdev, n, n, multi_irq ? PCI_IRQ_MSIX : PCI_IRQ_ALL_TYPES);
	if (ret < 0)
		return ret;
	ret = devm_add_action_or_reset(&pdev->dev, free_irqs, pdev);
	if (ret)
		return ret;
	res->irq = pci_irq_vector(pdev, 0);
	if (!multi_irq)
		return 0;
	for (i = 0; i < rxq; i++)
		res->rx_irq[i] = pci_irq_vector(pdev, 1 + i);
	for (i = 0; i < txq; i++)
		res->tx_irq[i] = pci_irq_vector(pdev, 1 + rxq + i);
	plat->flags |= STMMAC_FLAG_MULTI_MSI_EN;
	return 0;
}

/* What the feature registers of the first generations may not tell. */
static void describe_old(struct plat_stmmacenet_data *plat, enum dwmac_core_type type)
{
	plat->enh_desc = enh_desc;
	plat->tx_coe = coe && type == DWMAC_CORE_GMAC;
	plat->rx_coe = plat->tx_coe ? STMMAC_RX_COE_TYPE2 : STMMAC_RX_COE_NONE;
	plat->force_sf_dma_mode = type == DWMAC_CORE_GMAC;
	plat->tx_fifo_size = tx_fifo ?: 4096;
	plat->rx_fifo_size = rx_fifo ?: 16384;
}

static int describe_new(struct device *dev, struct plat_stmmacenet_data *plat)
{
	plat->tx_fifo_size = tx_fifo;
	plat->rx_fifo_size = rx_fifo;
	plat->axi = devm_kzalloc(dev, sizeof(*plat->axi), GFP_KERNEL);
	if (!plat->axi)
		return -ENOMEM;
	plat->axi->axi_wr_osr_lmt = 1;
	plat->axi->axi_rd_osr_lmt = 1;
	plat->axi->axi_blen_regval = DMA_AXI_BLEN4 | DMA_AXI_BLEN8 | DMA_AXI_BLEN16;
	return 0;
}

/*
 * Without a struct clk the core takes the clock of the registers for 0 Hz, and
 * makes the microsecond of the LPI timers 4096 of its ticks long.
 */
static int use_clock(struct device *dev, struct plat_stmmacenet_data *plat)
{
	struct clk_hw *hw = devm_clk_hw_register_fixed_rate(dev, dev_name(dev), NULL, 0, csr_hz);

	if (IS_ERR(hw))
		return PTR_ERR(hw);
	plat->stmmac_clk = devm_clk_hw_get_clk(dev, hw, NULL);
	return PTR_ERR_OR_ZERO(plat->stmmac_clk);
}

static void describe_queues(struct plat_stmmacenet_data *plat)
{
	int i;

	plat->rx_queues_to_use = rxq;
	plat->tx_queues_to_use = txq;
	plat->rx_sched_algorithm = MTL_RX_ALGORITHM_SP;
	plat->tx_sched_algorithm = MTL_TX_ALGORITHM_WRR;
	for (i = 0; i < rxq; i++)
		plat->rx_queues_cfg[i].mode_to_use = MTL_QUEUE_DCB;
	for (i = 0; i < txq; i++) {
		plat->tx_queues_cfg[i].mode_to_use = MTL_QUEUE_DCB;
		plat->tx_queues_cfg[i].weight = 16 + i;
	}
}

static int model_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	enum dwmac_core_type type = gen >= 0 ? gen : id->driver_data;
	struct device *dev = &pdev->dev;
	struct plat_stmmacenet_data *plat;
	struct stmmac_resources res = {};
	void __iomem *bar;
	int ret;

	if (type > DWMAC_CORE_XGMAC || !rxq || rxq > MTL_MAX_RX_QUEUES ||
	    !txq || txq > MTL_MAX_TX_QUEUES || mac_off >= pci_resource_len(pdev, 0))
		return -EINVAL;
	plat = stmmac_plat_dat_alloc(dev);
	if (!plat)
		return -ENOMEM;
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	bar = pcim_iomap_region(pdev, 0, DRV);
	if (IS_ERR(bar))
		return PTR_ERR(bar);
	pci_set_master(pdev);
	ret = get_irqs(pdev, plat, &res);
	if (ret)
		return dev_err_probe(dev, ret, "no interrupt\n");
	res.addr = bar + mac_off;

	plat->core_type = type;
	plat->bus_id = pci_dev_id(pdev);
	if (phyif >= 0)
		plat->phy_interface = phyif;
	else
		plat->phy_interface = type == DWMAC_CORE_MAC100 ? PHY_INTERFACE_MODE_MII : PHY_INTERFACE_MODE_GMII;
	plat->dma_cfg->pbl = type == DWMAC_CORE_MAC100 ? 4 : 8;
	plat->dma_cfg->pblx8 = type != DWMAC_CORE_MAC100;
	plat->clk_csr = type == DWMAC_CORE_XGMAC ? 0 : STMMAC_CSR_20_35M;
	ret = use_clock(dev, plat);
	if (ret)
		return dev_err_probe(dev, ret, "no clock\n");
	plat->clk_ptp_rate = ptp_hz;
	if (filter_entries)
		plat->unicast_filter_entries = filter_entries;
	if (bins)
		plat->multicast_filter_bins = bins;
	describe_queues(plat);
	if (type <= DWMAC_CORE_GMAC) {
		describe_old(plat, type);
	} else {
		ret = describe_new(dev, plat);
		if (ret)
			return ret;
	}
	plat->flags |= (tso ? STMMAC_FLAG_TSO_EN : 0) | (sph ? 0 : STMMAC_FLAG_SPH_DISABLE);
	plat->suspend = stmmac_pci_plat_suspend;
	plat->resume = stmmac_pci_plat_resume;

	if (fixed) {
		link_props[0] = PROPERTY_ENTRY_U32("speed", fixed);
		link_props[1] = PROPERTY_ENTRY_BOOL("full-duplex");
		ret = use_software_node(dev);
		if (ret)
			return ret;
	} else {
		plat->mdio_bus_data = devm_kzalloc(dev, sizeof(*plat->mdio_bus_data), GFP_KERNEL);
		if (!plat->mdio_bus_data)
			return -ENOMEM;
	}
	return stmmac_dvr_probe(dev, plat, &res);
}

static void model_remove(struct pci_dev *pdev)
{
	stmmac_dvr_remove(&pdev->dev);
}

static const struct pci_device_id model_ids[] = {
	{ PCI_DEVICE(0x1f0a, 0xff00), .driver_data = DWMAC_CORE_MAC100 },
	{ PCI_DEVICE(0x1f0a, 0xff01), .driver_data = DWMAC_CORE_GMAC },
	{ PCI_DEVICE(0x1f0a, 0xff02), .driver_data = DWMAC_CORE_GMAC4 },
	{ PCI_DEVICE(0x1f0a, 0xff03), .driver_data = DWMAC_CORE_XGMAC },
	{ }
};
MODULE_DEVICE_TABLE(pci, model_ids);

static struct pci_driver model_driver = {
	.name = DRV, .id_table = model_ids,
	.probe = model_probe, .remove = model_remove,
	.driver = { .pm = &stmmac_simple_pm_ops },
};

static int __init model_init(void)
{
	int ret = software_node_register_node_group(nodes);

	if (ret)
		return ret;
	ret = pci_register_driver(&model_driver);
	if (ret)
		software_node_unregister_node_group(nodes);
	return ret;
}
module_init(model_init);

static void __exit model_exit(void)
{
	pci_unregister_driver(&model_driver);
	software_node_unregister_node_group(nodes);
}
module_exit(model_exit);

MODULE_DESCRIPTION("stmmac glue for modelled DesignWare MACs on PCI");
MODULE_LICENSE("GPL");
