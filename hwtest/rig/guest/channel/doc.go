// Package channel is what a rig and the first program of its guest say to each other: one
// JSON value a line, over any stream of bytes, a serial line as a rule.
//
// The rig asks for a job by name, with arguments, and may ask for others before that one
// has ended. The guest sends lines for the log while a job runs, and at its end the
// result or an error. The rig can cancel a job. The guest speaks first, because what is said
// to a machine that has not started is lost.
//
//	guest → rig  {"hello":true}
//	rig → guest  {"id":1,"job":"ping","args":{"To":"10.0.0.2"}}
//	guest → rig  {"id":1,"log":"…"}
//	rig → guest  {"id":1,"cancel":true}
//	guest → rig  {"id":1,"done":true,"result":{…}}  or  {"id":1,"done":true,"error":{"text":"…","errno":110}}
//
// Lines that are none of these are noise of the line (firmware may write to it) and are
// skipped. Start reading at [Client.Do] and [Serve]. The package imports only the
// standard library.
package channel
