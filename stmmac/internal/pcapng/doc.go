// Package pcapng writes capture files of Ethernet frames in the format of
// draft-ietf-opsawg-pcapng, which Wireshark and tcpdump read.
//
// Start reading at [Writer]. The package imports nothing but the standard library.
package pcapng
