// Command init is the first program of the guests of the rigs: it mounts what programs
// expect, opens the serial line to the rig, and does the jobs that it is asked for (packages
// channel and jobs). It is built without cgo, because the guest has no other files.
//
// The kernel's command line says gostmmac.line=ttyS1 for the line. When the program ends or
// crashes, the kernel panics, and the rig sees it. It runs as process 1 of a guest, and
// nowhere else.
package main
