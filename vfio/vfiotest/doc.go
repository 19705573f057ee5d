// Package vfiotest is a kernel with VFIO devices that exist in the process alone.
// [New] makes a [Kernel], which is a vfio.Kernel; [Kernel.AddPCI] and
// [Kernel.AddPlatform] give it devices. What is written for package vfio then runs
// without hardware, without privileges and without touching the machine. It needs
// Linux, for eventfds and memory that can be mapped twice.
//
//	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
//	defer k.Free()
//	nic, err := k.AddPCI(vfiotest.PCI{
//		BDF: "0000:03:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 7, Driver: "vfio-pci",
//		BARs: []vfiotest.Region{{Size: 0x4000, Mmap: true}}, MSI: 4,
//	})
//	// The driver opens k's device; the model looks at what it does:
//	nic.Memory(0)                      // registers, shared with the driver
//	nic.Bus().Read(addr, descriptor)   // DMA through what the driver mapped
//	nic.Fire(1, 0)                     // vector 0 of MSI
//
// # What is real and what is not
//
// Memory is real: BARs that can be mapped are, and DMA reaches the memory of the
// process behind the addresses that it mapped, so an address that is wrong or stale
// is a [DMAFault]. Eventfds are real, and the kernel has descriptors of its own for
// them. File descriptors of VFIO are numbers from 1<<20 on, which mean something to
// the Kernel's methods alone, are never used twice, and must not be given to the
// operating system. Device nodes and attributes are ordinary files below the
// directory of New; nothing but WriteFile notices that one is written.
//
// Requests whose structure holds an address (the ranges of IOMMU_IOAS_IOVA_RANGES, the
// token of a bind) take that of memory that does not move: not of a Go stack, which
// runtime.Pinner rules out.
//
// As in Linux, a device is open while a descriptor or a mapping of it is, a group
// while it or one of its devices is, and a container or iommufd while a
// descriptor, a group or a device refers to it. Descriptors may be closed in any
// order.
//
// A device is reset when it is opened first and closed last, if it can be, and is not
// bus master after that. Memory decoding is on. VFIO_DEVICE_RESET clears bus
// mastering too unless PCI.KeepMaster is set: Linux restores it, and a driver that
// counts on that fails elsewhere.
//
// # Errors
//
// What is wrong is answered as Linux 7.3 does, which is not always what one expects.
// Any descriptor that is not open is EBADF. A structure that claims to be smaller
// than the request needs is EINVAL (argsz, size); one that claims to be larger than
// the memory it is in is EFAULT here, where the kernel would read on.
//
//	open of a node
//	  no device of the group is with VFIO            ENOENT
//	  the group is open, or a device by its own node EBUSY
//	  noiommu without CapSysRawIO                    EPERM
//	container
//	  unknown request, no IOMMU set                  EINVAL (as IOMMU_GET_INFO, MAP_DMA, UNMAP_DMA)
//	  unknown request, IOMMU set                     ENOTTY (in noiommu mode the three as well)
//	  SET_IOMMU without a group, or again            EINVAL
//	  SET_IOMMU of a type that is not for the groups ENODEV
//	  MAP_DMA: flags, size 0, not in whole pages,
//	    wrapping, outside the ranges                 EINVAL
//	  MAP_DMA: a byte is mapped already              EEXIST
//	  MAP_DMA: EntryLimit is reached                 ENOSPC
//	  MAP_DMA: Memlock would be passed               ENOMEM
//	  MAP_DMA: no such memory in the process         EFAULT
//	  UNMAP_DMA: flags, size 0, not in whole pages,
//	    wrapping; type1v2: it would cut a mapping    EINVAL
//	  UNMAP_DMA of nothing                           no error, size 0
//	group
//	  unknown request                                ENOTTY
//	  SET_CONTAINER: in one already                  EINVAL
//	  SET_CONTAINER: the descriptor is something else EBADFD
//	  SET_CONTAINER: not viable; noiommu with others,
//	    or without CapSysRawIO                       EPERM
//	  UNSET_CONTAINER: in none                       EINVAL
//	  UNSET_CONTAINER: a device is open              EBUSY
//	  GET_DEVICE_FD: no such device in the group     ENODEV
//	  GET_DEVICE_FD: container or IOMMU not set      EINVAL
//	  GET_DEVICE_FD: token missing or wrong, runtime
//	    power management is off (PCI.PMOff)          EACCES
//	  GET_DEVICE_FD: token malformed or not needed,
//	    unknown option                               EINVAL
//	device
//	  anything before BIND_IOMMUFD                   EINVAL
//	  unknown request, unknown feature               ENOTTY
//	  region or interrupt of that index              EINVAL
//	  pread, pwrite: no such region, behind its end  EINVAL (what reaches beyond the end is short)
//	  pread, pwrite: beyond configuration space      EFAULT
//	  pread, pwrite: memory decoding off, unplugged  EIO
//	  mmap: not mappable there, not in whole pages   EINVAL
//	  RESET: it cannot be                            EINVAL
//	  RESET: unplugged                               ENODEV
//	  SET_IRQS: unknown flags, kinds of data other
//	    than one, start or count beyond, too little
//	    data, another index in use, more vectors than
//	    were enabled, disabling what is off          EINVAL
//	  SET_IRQS: several actions or none; masking MSI,
//	    MSI-X, errors, requests; a mask by eventfd   ENOTTY
//	  SET_IRQS: not an eventfd                       EINVAL, EBADF if not open
//	  SET_IRQS: a second eventfd to unmask           EBUSY
//	  GET_PCI_HOT_RESET_INFO: too little room        ENOSPC and the number
//	  hot reset of a platform device                 ENOTTY
//	  PCI_HOT_RESET: a group is missing, flags       EINVAL
//	  PCI_HOT_RESET: a function is not with VFIO     ENODEV
//	  FEATURE: get; neither or both without probe    EINVAL
//	  BIND_IOMMUFD: bound already, not its own node,
//	    open by the group's users                    EINVAL
//	  BIND_IOMMUFD: the group is open                EBUSY
//	  BIND_IOMMUFD: runtime power management is off  EACCES
//	  BIND_IOMMUFD: the descriptor is something else EBADFD
//	  BIND_IOMMUFD: not viable, or the group belongs
//	    to another iommufd                           EPERM
//	  ATTACH: no such IOAS                           ENOENT
//	  ATTACH: mappings lie outside the ranges        EADDRINUSE
//	  ATTACH: Memlock would be passed                ENOMEM
//	iommufd
//	  unknown request                                ENOTTY
//	  no such IOAS                                   ENOENT
//	  IOAS_ALLOC, IOAS_MAP: unknown flags            EOPNOTSUPP
//	  IOAS_IOVA_RANGES: too little room              EMSGSIZE and the number
//	  IOAS_MAP: neither readable nor writable, length
//	    0, not in whole pages, outside the ranges    EINVAL
//	  IOAS_MAP: wrapping                             EOVERFLOW
//	  IOAS_MAP: a byte is mapped already             EEXIST
//	  IOAS_MAP: Memlock would be passed              ENOMEM
//	  IOAS_MAP: no such memory in the process        EFAULT
//	  IOAS_UNMAP: nothing there, or it would cut     ENOENT
//	  IOMMU_DESTROY: a device is attached            EBUSY
//	  NOIOMMU_GET_PA: without CapSysRawIO            EPERM
//	  NOIOMMU_GET_PA: length 0                       EINVAL
//	  NOIOMMU_GET_PA: not mapped                     ENOENT
//	  NOIOMMU_GET_PA: no noiommu device is attached  EOPNOTSUPP
//	sysfs
//	  no such attribute                              ENOENT
//	  bind: no such device, or no match              ENODEV
//	  bind: it has a driver, or the group has a user EBUSY
//	  bind, drivers_probe: no group, no noiommu mode EINVAL
//	  unbind: no such device, or another driver      ENODEV
//	  drivers_probe: no such device                  ENODEV
//
// Not modelled: an iommufd in the place of a container, PASIDs, nested page tables,
// dirty tracking, IOEVENTFD, mediated devices, the VGA region, power states other than
// VFIO's low power. Registers of configuration space beyond the header are there
// to be found, without effect.
package vfiotest
