// Package qtest starts one of QEMU's boards with a Synopsys GMAC (QEMU: npcm_gmac,
// hw/net/npcm_gmac.c; a GMAC 3.2 with normal descriptors) and gives the MAC out as
// a device of package stmmac: code that nobody here wrote, on the other side of
// the driver.
//
// No guest runs. The registers are accessed over QEMU's qtest socket
// (docs/devel/testing/qtest.rst of QEMU), the RAM of the board is a memfd that is
// mapped here too, and frames go over a pair of datagram sockets. Everything is
// handed to QEMU as an open file, so there are no ports and no files but the log.
//
// Start reading at [Start]. The package works on Linux; elsewhere [Start] returns an
// error that is [errors.ErrUnsupported].
package qtest
