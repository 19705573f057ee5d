// Package gostmmac is the root of a driver for Synopsys DesignWare Ethernet
// MACs (Linux: stmmac; the IP: dwmac, GMAC, EQOS, XGMAC) that runs in a Go
// process. It holds no code, only the tests of the rules that the whole module
// keeps: which package may import which, and the exported API.
//
// Start reading at package stmmac, the driver; README.md names the other rooms.
package gostmmac
