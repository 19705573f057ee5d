// Package kernel keeps the kernels that guests of the rigs run: those of a Debian suite
// as they are, with modules built from the same source that Debian leaves out.
//
// For amd64 these are, beside Debian's own modules:
//
//   - the set stmmac: the driver with its self-tests (ethtool -t), the glues dwmac-motorcomm,
//     dwmac-intel and stmmac-pci, and dwmac-modelpci of the folder hwtest/rig/glue-gpl, which
//     hands a PCI function to the driver as any generation of the MAC;
//   - the set vfio: vfio and vfio-pci with character devices, iommufd and the mode without an
//     IOMMU.
//
// For arm64 it is the set vfio with vfio-platform and the mode without an IOMMU.
//
// Nothing of the kernel's source is in this module: it comes from the package
// linux-source of exactly the kernel's version, and the folder kbuild says what is
// built of it. Start reading at [Setup] and [Kernel.Load]. The package may import
// debian.
package kernel
