// Package cards boots a guest with cards (package chips) that are plugged into wires of the
// rig, for rigs in which somebody drives them there. Start reading at [Start].
package cards
