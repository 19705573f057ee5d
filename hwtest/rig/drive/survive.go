package drive

import (
	"context"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

// Survivals returns tests of the driver with what QEMU's model does otherwise than hardware:
// each makes it happen while the driver runs and asks that it goes on with all that the model
// did not drop. The names have the numbers of the model's deviations, and say what the model
// does; package regcheck shows on the registers that it does.
//
// What cannot be made to happen: 14 and 15 are of QEMU 10.0.2, which has no GMAC on the
// newer board and no qtest accelerator in Debian's package, so the rig does not run there;
// their tests hold what the driver must do not to meet them.
func Survivals() []Test {
	var all []Test
	add := func(name string, slots int, run func(context.Context, *board) error, opts ...stmmac.Option) {
		all = append(all, named(name, slots, run, opts...))
	}
	add("1: the model writes a last descriptor back in two steps, ring", 128, twoSteps(50_000))
	add("1: the model writes a last descriptor back in two steps, chain", 128, twoSteps(10_000), chained)
	add("2: the model drops a frame that finds no descriptor, and counts none", 16, dropped)
	add("3: the model holds frames while the receiver is off, and looks again only when the DMA is started", 128, held)
	add("4: the model sends on a poll demand only", 128, pollDemands)
	add("5: the model ignores a new list without a reset", 128, newLists)
	add("6: the model never clears FTF", 64, flushStays)
	add("7: the model sets DFF with the first frame", 64, setsDFF)
	add("8: the model keeps NIS and AIS until they are cleared, as hardware does", 64, sticky)
	add("9: the model marks the CPU's descriptor when it cuts a frame", 8, cut, stmmac.WithMTU(9000))
	add("10: the model tells of no receive buffer that is not there", 16, noRxBuffer)
	add("10: the model stops at a transmit buffer that is not there", 16, noTxBuffer, stmmac.WithRecovery(stmmac.Recovery{Limit: 1000, Stall: 100 * time.Millisecond}))
	add("11: the model's check sequence is none", 64, noCheckSequence)
	add("12: the model has no MAC address", 64, noAddress)
	add("13: the model has no back-pressure and drops behind 10000 frames", 512, noBackPressure)
	add("14: the model of QEMU 10.0.2 lets registers behind the DMA's be read", 64, registersEnd)
	add("15: the model of QEMU 10.0.2 sends a wrong second frame of a poll demand", 128, longDoorbells)
	quick := stmmac.WithPHY(stmmac.PHY{Addr: stmmac.AnyPHY, PollInterval: time.Millisecond})
	add("PHY: the model answers at all 32 addresses", 64, phyAddresses)
	add("PHY: the model leaves negotiation off after a reset of the PHY", 64, phyReset, quick)
	add("PHY: the model forgets the partner's word with each start of negotiation", 64, phyForgets, quick)
	return all
}

// chained is a chain of descriptors in place of a ring.
var chained = stmmac.WithConfig(func(c *stmmac.Config) { c.Chain = true })
