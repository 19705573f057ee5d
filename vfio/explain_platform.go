package vfio

import (
	"encoding/binary"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// platform makes the findings that only platform devices have.
func (x *examiner) platform(i *Info) {
	x.resetFunction(i)
	x.clocks(i)
	x.coherent(i)
	x.windows(i)
}

// clocks reports a kernel driver that takes the clocks with it.
func (x *examiner) clocks(i *Info) {
	w := clockWarning(x.k, i)
	if w == "" {
		return
	}
	remedy := "keep the driver from ever starting the device: take a kernel that has it as a module"
	if module := linkBase(x.k.FS(), path.Join(driverDir(i.Bus, i.Driver), "module")); module != "" {
		remedy = "keep the driver from ever starting the device: `echo 'blacklist " + module + "' | sudo tee /etc/modprobe.d/70-vfio.conf`"
	}
	x.warn("clocks", remedy+"\nand the kernel from switching off what the boot loader switched on: "+addParam("clk_ignore_unused"), "%s", w)
}

// resetFunction reports whether vfio-platform takes a device that it cannot reset.
func (x *examiner) resetFunction(i *Info) {
	const name = "sys/module/vfio_platform/parameters/reset_required"
	v, ok := x.read("reset", name)
	switch {
	case !ok: // the driver is not there, which is said elsewhere
	case v == "Y" && !hasResetModule(i):
		x.fail("reset", "load the driver again without it: `"+reloadPlatform+"`\nand for the next boot: `echo 'options vfio-platform reset_required=0' | sudo tee /etc/modprobe.d/vfio.conf`",
			"vfio-platform has no reset function for it and refuses it, as its parameter reset_required is Y")
	case v == "Y":
		x.ok("reset", "vfio-platform has a reset function for it")
	default:
		x.ok("reset", "vfio-platform takes it without a reset function; the soft reset of the MAC is used")
	}
}

// incoherent are the compatibles of MACs behind an IOMMU whose table walks are not
// coherent in the device trees of Linux, and where they are.
var incoherent = []struct{ compatible, where string }{
	{"nvidia,tegra186-eqos", "Tegra186 (Jetson TX2)"},
	{"nvidia,tegra194-eqos", "Tegra194 (Jetson Xavier)"},
	{"nvidia,tegra234-mgbe", "Tegra234 (Jetson Orin)"},
	{"altr,socfpga-stmmac-a10-s10", "Stratix 10 and Agilex"},
}

// coherent reports whether DMA of the device is coherent with the caches. VFIO
// takes no device behind an IOMMU if neither of the two is.
func (x *examiner) coherent(i *Info) {
	node := treeNode(x.k, i.dir())
	switch {
	case node == "":
		return // no device tree: ACPI says it, and not here
	case dmaCoherent(x.k, node, x.arch):
		x.ok("coherent", "its DMA is coherent with the caches")
		return
	case i.Group < 0 || i.NoIOMMU():
		x.warn("coherent", "use it only with cache maintenance, or with memory that is not cached",
			"its device tree node is not dma-coherent: in noiommu mode, which does not ask, the processor reads and writes stale data")
		return
	}
	unit := linkBase(x.k.FS(), path.Join(i.dir(), "iommu"))
	if n := treeNode(x.k, path.Join("sys/class/iommu", unit, "device")); unit != "" && n != "" && dmaCoherent(x.k, n, x.arch) {
		x.warn("coherent", "try it: `stmmacctl loopback "+i.address()+"`",
			"its device tree node is not dma-coherent, though that of its IOMMU is: VFIO takes it, and whether its DMA is coherent has to be tried")
		return
	}
	const remedy = "if the bus of the machine does snoop, say so: add the property dma-coherent to the nodes of the IOMMU and of the MAC in the device tree\notherwise use UIO with memory that is not cached"
	const why = "VFIO refuses a device behind an IOMMU that is not coherent (EINVAL when it is bound)"
	for _, c := range incoherent {
		if i.Driver != i.Bus.vfioDriver() && slices.Contains(i.Compatible, c.compatible) {
			x.fail("coherent", remedy, "neither it nor its IOMMU is dma-coherent in the device tree, as usual on %s: %s", c.where, why)
			return
		}
	}
	x.warn("coherent", remedy, "its device tree node is not dma-coherent: %s", why)
}

// ofNode is the device tree node of a device, below sys, or "".
func ofNode(k Kernel, i *Info) string {
	n := path.Join(i.dir(), "of_node")
	if _, err := fs.Stat(k.FS(), n); err != nil {
		return ""
	}
	return n
}

// treeNode is the directory of the device tree node of a device, below sys/firmware,
// or "".
func treeNode(k Kernel, device string) string {
	name := path.Join(device, "of_node")
	to, err := fs.ReadLink(k.FS(), name)
	if err != nil {
		if present(k, name) {
			return name // the node itself, and nothing above it
		}
		return ""
	}
	const root = "firmware/devicetree/base"
	_, rest, ok := strings.Cut(path.Clean(to), root)
	if !ok {
		return ""
	}
	return path.Join("sys", root, rest)
}

// dmaCoherent says what a device tree node, or the nearest above it that says
// anything, says of coherence.
func dmaCoherent(k Kernel, node, arch string) bool {
	for n := node; n == node || strings.HasPrefix(n, "sys/firmware/"); n = path.Dir(n) {
		if present(k, path.Join(n, "dma-coherent")) {
			return true
		}
		if present(k, path.Join(n, "dma-noncoherent")) {
			return false
		}
	}
	return arch == "riscv64" // Linux takes silence for coherence there
}

// windows reports register windows that are no whole pages.
func (x *examiner) windows(i *Info) {
	node := treeNode(x.k, i.dir())
	if node == "" {
		return
	}
	reg, err := fs.ReadFile(x.k.FS(), path.Join(node, "reg"))
	if err != nil {
		return
	}
	parent := path.Dir(node)
	regs := parseReg(reg, cells(x.k, path.Join(parent, "#address-cells"), 2), cells(x.k, path.Join(parent, "#size-cells"), 1))
	page := uint64(x.k.PageSize())
	for n, r := range regs {
		if r[0]%page != 0 || r[1]%page != 0 {
			x.warn("registers", "", "register window %d has %#x bytes at bus address %#x, which are no whole pages of %#x: it is not mapped but read and written by system calls", n, r[1], r[0], page)
			return
		}
	}
	if len(regs) > 0 {
		x.ok("registers", "its register windows (%d) can be mapped", len(regs))
	}
}

// cells is a property that is one number, by default what the device tree
// specification says.
func cells(k Kernel, name string, absent int) int {
	b, err := fs.ReadFile(k.FS(), name)
	if err != nil || len(b) != 4 {
		return absent
	}
	return int(binary.BigEndian.Uint32(b))
}

// parseReg reads the property reg: addresses and sizes of one or two cells of 32 bits
// each. It returns nothing if it does not fit.
func parseReg(b []byte, address, size int) (all [][2]uint64) {
	if address < 1 || address > 2 || size < 1 || size > 2 || len(b)%(4*(address+size)) != 0 {
		return nil
	}
	next := func(cells int) (v uint64) {
		for range cells {
			v = v<<32 | uint64(binary.BigEndian.Uint32(b))
			b = b[4:]
		}
		return v
	}
	for len(b) > 0 {
		all = append(all, [2]uint64{next(address), next(size)})
	}
	return all
}
