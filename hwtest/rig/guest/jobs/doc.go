// Package jobs is what the first program of a guest can do for a rig: each job is a type whose
// fields are its arguments, and has a result. The rig sends it through package channel; the
// guest runs it in a [World]. Jobs that need no guest (a cable, a namespace) run on any
// Linux, so most of them are tested without one, and a rig can use them on its own side.
//
// Where a job takes a space, that is the name of a network namespace that the job [Space]
// made, and "" is that of the guest.
//
// Start reading at [Job] and [World.Run]; each job has a file of its own. The package may
// import internal/netns, ethtool and golang.org/x/sys.
package jobs
