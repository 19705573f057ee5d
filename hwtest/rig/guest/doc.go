// Package guest boots Linux in QEMU, with a program of ours as its only process, and does
// jobs there.
//
//	amd64   a PC (q35) under TCG, whose RAM is a memfd that devices behind vfio-user share,
//	        and an IOMMU if one is asked for
//	arm64   the board npcm845-evb with two of its GMACs, as npcm845.dts describes it
//
// The kernel is one of package kernel, unmodified. Everything else that the guest has is in
// an initrd that is made for it: the program of the folder init, modules, and programs that
// the caller adds. The kernel's console goes to a file; a second serial line carries the
// jobs (package channel). All descriptors are passed on, so there are no ports and no names
// of sockets. QEMU ends with the process that started it.
//
// Start reading at [Boot] and [Do]. It needs Linux, the cache folder of rig setup, and for
// the program of the guest the go command in a checkout of the module. No root.
package guest
