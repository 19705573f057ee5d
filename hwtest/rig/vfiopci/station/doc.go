// Command station drives cards with this driver in a guest, for the rig vfio-pci:
//
//	station exchange -frames N ADDR ADDR2   sends frames both ways over the cable between two
//	                                        devices, by interrupt, and compares them
//	station watch ADDR...                   maps memory for devices that nobody drives, and
//	                                        looks at SIGTERM whether one wrote into it
//	station fault ADDR ADDR2                takes the memory from a device that is receiving
//
// ADDR is an address of package stmmac/bus. What was found is printed as JSON, see package
// said, and so is why it failed; then the exit status is 1. Start reading at run in main.go.
package main
