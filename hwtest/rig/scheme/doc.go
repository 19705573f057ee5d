// Package scheme opens what is behind the rigs by address, for package bus:
//
//	qtest:MACHINE[,nic=N][,cache=DIR][,log=FILE]
//
// is the GMAC of that number (0 without nic=) of QEMU's board MACHINE, npcm845-evb or
// npcm750-evb, reached as package qtest describes. QEMU is that of the cache folder of
// rig setup; without cache= the one in the user's cache folder.
//
// Start reading at [Add]. The package may import qtest, debian, stmmac and its bus.
package scheme
