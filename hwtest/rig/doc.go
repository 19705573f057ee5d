// Command rig puts code that nobody here wrote on the other side of the driver.
//
//	go run ./hwtest/rig setup            fill the cache folder with what the rigs run, or
//	                                     with what those run that are named behind it
//	go run ./hwtest/rig cache            print the cache folder
//	go run ./hwtest/rig list             name the rigs and what each needs
//	go run ./hwtest/rig run qtest        run rigs by name
//
// Flags go behind the first word; -h behind it shows them. setup downloads about
// 560 MB from the mirror of the machine's apt sources, or that of -mirror, into the folder
// of -cache (by default gostmmac-rig in the user's cache folder), builds modules for the
// kernels of guests (package kernel), which takes two minutes of two cores, and takes no
// time when all is there. The folder has 1.2 GB then. It does not need a Debian of a certain
// release: the programs are unpacked and run by their own dynamic loader. Root is not
// needed either where users may make namespaces, which building modules takes.
// manifest.json in that folder says which versions the programs and kernels are.
//
// qtest runs the list of hardware tests (package hwtest) too, which it builds with the go
// command: it has to be run in a checkout of the module.
//
// vfio-pci builds what its guests run in the same way.
//
// run prints a line for each test and ends each rig with "N passed, N failed, N skipped".
// Logs are in the folder logs of the cache folder. The exit status is 1 when a test fails
// or a rig does not start, 2 on wrong usage.
//
// The Go tests below this folder that need QEMU run when GOSTMMAC_RIG_CACHE names the cache
// folder, and are skipped otherwise.
package main
