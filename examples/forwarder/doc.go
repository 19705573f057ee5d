// Command forwarder forwards Ethernet frames between two MACs, both ways and
// without a copy.
//
//	forwarder                       two simulated MACs with a traffic generator, 10 s
//	forwarder -a ADDR -b ADDR       other devices, see package stmmac/bus
//	forwarder -mtu 9000 -a sim:gmac4,wire=pcap,in=A.pcap -b sim:gmac4,wire=pcap,out=B.pcap
//	forwarder -duration 0 -a sim:gmac4,wire=tap:tap0 -b sim:gmac4,wire=tap:tap1
//
// It prints a line a second and a table at the end. With the generator, each
// frame has to come out at the other side, once, unchanged and in order. The
// exit status is 0 if all did, 1 if a frame was lost, changed, duplicated or
// reordered or a device or file failed, and 2 if the flags are wrong or a
// device cannot be opened. ^C and SIGTERM end it like -duration does; a second
// ^C kills it.
//
//	-a, -b ADDR      the devices
//	-duration D      how long to forward, default 10s; no limit if -count or a
//	                 capture file ends it and -duration is not given; 0 is no limit
//	-count N         end after N frames in each direction
//	-json            print one JSON object on stdout, and the lines on stderr
//	-queues N        queues of each MAC, 1 to 8; receive queue i of one side is
//	                 forwarded to transmit queue i of the other
//	-batch N         frames a call, 1 to 256, default 32
//	-poll            do not sleep when there is nothing to do
//	-cpu N           bind the forwarding threads to CPUs, from N on (Linux)
//	-mtu N           46 to 9000 bytes, default 1500
//	-sizes N,N,...   frame sizes of the generator in bytes without FCS; the
//	                 default is a mix of short, middle and full-size frames
//	-fault RATES     damage frames at both wires: drop=1e-4,crc=…,corrupt=…,
//	                 dup=…,reorder=…
//	-learn           forward like a bridge (IEEE 802.1D): a frame for a station
//	                 that is known on the side it came from stays there
//	-cpuprofile FILE write a CPU profile
//
// Start reading at worker.run in forward.go: it is the loop. devices.go opens
// what it needs, finish.go says when it ends and what is still on its way then,
// learn.go is the table of -learn.
package main
