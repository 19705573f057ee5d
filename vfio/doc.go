// Package vfio drives devices from a Go process through Linux VFIO: PCI functions
// and platform devices, behind an IOMMU or without one, by every interface that
// the kernel has for it. It knows nothing of any device: package stmmac is one
// user of it.
//
// # Opening
//
// [Open] opens a device in a space of bus addresses of its own; a [Domain] is such
// a space that several devices share, so that memory has one address for all:
//
//	dev, err := vfio.Open(ctx, "0000:03:00.0")
//	if err != nil {
//		return err // says what is missing, and how to get it
//	}
//	defer dev.Close()
//
// [Lookup] takes addresses, PCI ids, drivers and network interfaces, and [List]
// shows what there is. A device is first given to the kernel's VFIO driver, with
// [Bind], and back to its own with [Binding.Restore] or [Unbind]; [Explain] tells,
// without any privilege, what keeps a device from being opened. The interface is
// chosen by itself (see [Backend]): device node and iommufd, or group and
// container. A parent with more rights can open the descriptors and hand them over
// ([Domain.OpenFDs]).
//
// What an open device does when nobody has told it to: nothing. A PCI function is
// reset, where it can be, before any memory is mapped for it; its bus mastering is
// off until memory is, and off again before the last of it is unmapped. A device
// without a reset (see [Device.WasReset]) may go on with what its last owner told it,
// and has to be stopped by its driver before memory is mapped for it: package
// stmmac/glue does.
//
// # Registers
//
// [Device.Region] gives the registers of a BAR as an mmio.Region: mapped where the
// kernel allows it, read and written by system calls elsewhere. A device that is
// pulled out answers a mapped access with SIGBUS; the region takes that signal,
// and no other, and reads as all ones from then on ([Device.Gone]).
// [Device.Config] is the configuration space of a PCI function.
//
// # Memory
//
// [Device.MapDMA] makes memory reachable and returns its bus address, chosen from
// the ranges that the IOMMU translates, from below and never 0. One mapping for a
// large piece is what the kernel likes: it charges the limit of locked memory
// (RLIMIT_MEMLOCK), which is checked beforehand, and a container has 65,535. Memory
// is mapped whole and unmapped whole; the kernel's answer is checked, since what it
// did not unmap the device still reaches.
//
// Without an IOMMU, which [WithNoIOMMU] has to allow, a device reaches all memory
// of the machine. Its memory then comes from huge pages ([Device.AllocDMA]), which
// the kernel does not move.
//
// # Interrupts
//
// [Device.Interrupt] gives an mmio.Interrupt: an eventfd in the runtime's poller,
// so that waiting takes no thread. Lines (INTx, most interrupts of platform
// devices) are masked by the kernel when they fire, until [Interrupt.Unmask].
// [OnRequest] and [OnError] are called when the kernel wants the device back and
// when it has failed.
//
// # Errors
//
// An [Error] says which request failed on which device, why, and what to do. It
// wraps the kernel's errno and, where there is one, a reason of this package
// ([ErrNotViable], [ErrMemlock], …), for errors.Is.
//
// # Testing drivers
//
// The package asks everything of the operating system through [Kernel]. Package
// vfiotest has one that is made of Go: with it a driver is tested where there is
// neither a device nor an IOMMU nor a privilege.
//
// On other systems than Linux everything compiles and fails with
// errors.ErrUnsupported. Start reading at domain.go and device.go; a backend is in
// container.go (groups), ioas.go (iommufd) or noiommu.go, the choice of bus
// addresses in iova.go. Sources of numbers and behaviour: Linux
// include/uapi/linux/vfio.h, include/uapi/linux/iommufd.h,
// Documentation/driver-api/vfio.rst; PCI Local Bus Specification 3.0 for
// configuration space. The package imports mmio, golang.org/x/sys, u-root's pci
// (which reads a function's ids and resources from sysfs) and zerolog.
package vfio
