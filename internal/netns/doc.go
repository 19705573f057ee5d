// Package netns gives tests network namespaces of Linux: separate worlds of
// interfaces, addresses and routes, in which the real TCP/IP stack can be put on
// the other end of a wire without touching the machine's own network.
//
//	ns := netns.ForTest(t)                       // skips the test where it cannot be
//	err := ns.Do(func() error { ... })           // makes what belongs in there, a TAP for example
//	err = ns.Up("tap0", 1500, netip.MustParsePrefix("10.0.0.1/24"))
//	err = ns.Ping(ctx, netip.MustParseAddr("10.0.0.2"), 56)
//	conn, err := ns.Dial(ctx, "tcp", "10.0.0.2:7") // works outside of the namespace too
//
// It needs root on Linux and no other program. Elsewhere the package compiles and
// every method returns an error that is errors.ErrUnsupported.
//
// Start reading at [NS.Do]; link_linux.go is the part of rtnetlink(7) that it
// speaks. The package may import golang.org/x/sys, and only tests
// and the jobs of the guests of hwtest/rig may import it.
package netns
