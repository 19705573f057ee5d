// Package pcapngtest reads capture files for tests, strictly and without anything
// of package pcapng: it is written from draft-ietf-opsawg-pcapng alone. Only tests
// import it.
//
// Start reading at [Read]. It imports nothing but the standard library.
package pcapngtest
