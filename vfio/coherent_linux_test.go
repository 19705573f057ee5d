package vfio

import "testing"

// TestIsCoherent reads device trees of boards, and machines without one.
func TestIsCoherent(t *testing.T) {
	const pc = `
sys/bus/pci/devices/0000:03:00.0 -> ../../../devices/pci0000:00/0000:00:1c.0/0000:03:00.0
sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0/vendor: 0x1f0a
`
	const host = `
sys/bus/pci/devices/0000:03:00.0 -> ../../../devices/platform/soc/40000000.pcie/pci0000:00/0000:03:00.0
sys/devices/platform/soc/40000000.pcie/pci0000:00/0000:03:00.0/vendor: 0x1f0a
sys/devices/platform/soc/40000000.pcie/of_node -> ../../../../firmware/devicetree/base/soc/pcie@40000000
`
	const mac = `
sys/bus/platform/devices/mac -> ../../../devices/platform/soc/mac
sys/devices/platform/soc/mac/of_node -> ../../../../firmware/devicetree/base/soc/ethernet@1000
`
	const node = "sys/firmware/devicetree/base/soc/"
	pci, platform := Info{Bus: PCI, Name: "0000:03:00.0"}, Info{Bus: Platform, Name: "mac"}
	for name, c := range map[string]struct {
		info Info
		tree string
		arch string
		want bool
	}{
		"a PC":                               {pci, pc, "amd64", true},
		"ACPI on arm64":                      {pci, pc, "arm64", true},
		"a host bridge that says nothing":    {pci, host + node + "pcie@40000000/", "arm64", false},
		"a host bridge that is coherent":     {pci, host + node + "pcie@40000000/dma-coherent:", "arm64", true},
		"a MAC that says nothing":            {platform, mac + node + "ethernet@1000/", "arm64", false},
		"a MAC that is coherent":             {platform, mac + node + "ethernet@1000/dma-coherent:", "arm64", true},
		"a bus that is coherent":             {platform, mac + node + "ethernet@1000/\n" + node + "dma-coherent:", "arm64", true},
		"silence on riscv64":                 {platform, mac + node + "ethernet@1000/", "riscv64", true},
		"a bus that is not, on riscv64":      {platform, mac + node + "ethernet@1000/\n" + node + "dma-noncoherent:", "riscv64", false},
		"the nearest counts":                 {platform, mac + node + "ethernet@1000/dma-coherent:\n" + node + "dma-noncoherent:", "arm64", true},
		"a node that is no link":             {platform, "sys/bus/platform/devices/mac/of_node/dma-coherent:", "arm64", true},
		"a node that is no link and silent":  {platform, "sys/bus/platform/devices/mac/of_node/compatible: x", "arm64", false},
		"a platform device without any node": {platform, "sys/bus/platform/devices/mac/driver_override:", "arm64", true},
	} {
		if got := isCoherent(newTree(t, c.tree), &c.info, c.arch); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
