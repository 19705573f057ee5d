// Package vfiopci runs this driver on the VFIO of real kernels: guests with Debian's kernel
// have cards that are our models (package chips), and in them the driver opens the cards
// through vfio-pci, by every way that there is to a device and by every kind of interrupts.
//
// What is tested is package vfio, which everywhere else talks to a kernel of our own making,
// and the whole driver on top of it: what the list of hardware tests sees, two functions in
// one domain and in two, a process that is killed, a fault of the IOMMU, a user without
// privileges, what stmmacctl doctor says, and the way back to the kernel's driver. The models
// watch the driver meanwhile, and the rig looks at memory and bus mastering from the side of
// the device.
//
// Start reading at [Boots]; boot.go starts a guest, and the files beside it have what is done
// in each. The commands that run there are station (of this folder), forwarder and stmmacctl
// (of examples) and the tests of hwtest.
package vfiopci
