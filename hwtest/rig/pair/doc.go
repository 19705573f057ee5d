// Package pair boots a guest with two cards of a chip (package chips) that are joined by a
// cable, for rigs in which somebody else's code drives them. Start reading at [Start].
package pair
