// Command modelserver shows a model of stmmac/sim to a virtual machine as a PCI function,
// over a Unix socket (vfio-user), for work by hand on what the rigs do by themselves:
//
//	go run ./hwtest/rig/modelserver -chip yt6801 -socket /tmp/nic -coverage report.txt
//	qemu-system-x86_64 … -device '{"driver":"vfio-user-pci","socket":{"path":"/tmp/nic","type":"unix"}}'
//
// QEMU has to share its memory: -object memory-backend-memfd,id=m,size=512M,share=on
// -machine q35,memory-backend=m. -h names the chips. The wire ends nowhere, or with -tap at
// an interface of this machine, which needs root. At the end, by ^C, the report of coverage
// is written: the registers that the other side has touched, with the bits by name, and
// those that it has not.
package main
