// Package core holds what the generations of the MAC have in common: the types
// that package stmmac shows to its users by alias, and the rings as far as they
// do not depend on the layout of a descriptor.
//
// A generation implements [RxDescs] and [TxDescs], which move whole batches of
// descriptors between their format and the neutral [RxDone], [TxPost] and
// [TxDone]. Everything else about a queue (which buffer lies in which slot,
// frames of several buffers, errors, statistics, refill) is here, once.
//
// Start reading at [RxRing.Recv] and [TxRing.Send]. It may import mmio,
// barrier, pagepool and regs, never package stmmac or a generation.
package core
