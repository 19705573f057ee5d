// Package linuxmodel puts the stock Linux drivers on the models of stmmac/sim: a guest with
// Debian's kernel has two cards of a chip (package chips), joined by a cable, each in a
// network namespace of its own, and the kernel's network stack at both ends.
//
// What is tested is the models: that the drivers find and open them, that every frame comes
// whole, that the model counts what the kernel counts, and by the driver's own self-tests.
// These check neither lengths nor most bytes, so frames of every length are compared beside
// them.
//
// Start reading at [Boots]; cases.go has what is done in each.
package linuxmodel
