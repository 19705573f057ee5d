//go:build amd64 || 386 || arm64 || ppc64 || ppc64le

package pagepool

// NetIPAlign is what is added to the headroom so that the IP header behind the
// 14 bytes of Ethernet is aligned to four; Linux NET_IP_ALIGN. It is 0 on the
// architectures whose loads do not profit, as in Linux, and 2 elsewhere.
const NetIPAlign = 0
