// Command station drives a MAC in a guest of the rig vfio-platform, where package jobs has
// the kernel's end of the cable:
//
//	station -dev ADDR [-poll] [-zero] [-mtu N] reflect
//	        sends the frames of a jobs.Frames back, until SIGTERM
//	station -dev ADDR [-poll] [-mtu N] -to MAC -min N -max N frames
//	        sends frames of every length to a jobs.Reflect, and compares what comes back
//	station [-dev ADDR] -iface NAME intrude
//	        takes the free huge pages one by one while the interface at the other end of the
//	        cable sends, and looks whether somebody else writes to them. With -dev the device is
//	        opened first, and nothing of it but that
//
// It waits for frames by interrupts, or looks for them with -poll. With -zero the first of its
// memory is the huge page at physical address 0. It prints "ready" when it
// is, and its counts as an object of JSON at the end. Start reading at run.
package main
