// Package vfioplatform puts the driver on the kernel's vfio-platform: a guest with Debian's
// kernel for arm64 on QEMU's board npcm845-evb, whose first GMAC is with the kernel's own
// driver and whose second one, at the other end of the cable, is with vfio-platform in noiommu
// mode. Programs of this module drive that one in the guest.
//
// What is tested is package vfio on a platform device, and with it the whole driver, its
// stack and stmmacctl, on arm64 and against the kernel's driver and network stack.
//
// Start reading at [Start] and [Cases]; program.go runs the programs, and what is done with
// them is in a file each: doctor.go, frames.go, stack.go, killed.go, list.go and back.go.
package vfioplatform
