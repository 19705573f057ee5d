// Package cli is what the commands of the examples have in common: how they run and
// end, and what they say of errors.
//
// Start reading at [Main]. It may import stmmac/bus.
package cli
