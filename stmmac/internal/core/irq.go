package core

import (
	"sync"

	"github.com/gostmmac/gostmmac/mmio"
)

// Causes are the bits that an event consists of: in the status of a channel and in
// its interrupt enables. A channel that has run out of descriptors belongs to the
// event of a frame: no frame can raise that any more.
type Causes struct{ Status, Enable uint32 }

// ChannelIRQ is the status and the interrupt enables of a DMA channel. Its methods
// may be called by several goroutines: dispatchers and waiters both change the
// enables.
type ChannelIRQ struct {
	Regs           mmio.Region
	Status, Enable mmio.Reg[uint32]
	// Causes by event: EventRx, EventTx, EventFatal.
	Rx, Tx, Fatal Causes
	Summaries     uint32 // bits of the status that sum up others: NIS and AIS
	// Summary adds the enables of the summaries that the enables of causes in e
	// need.
	Summary func(e uint32) uint32

	mu     sync.Mutex
	causes uint32 // that are enabled
}

// of are the causes of the events in e.
func (c *ChannelIRQ) of(e Events) (sum Causes) {
	for _, x := range [...]struct {
		e Events
		c *Causes
	}{{EventRx, &c.Rx}, {EventTx, &c.Tx}, {EventFatal, &c.Fatal}} {
		if e&x.e != 0 {
			sum.Status |= x.c.Status
			sum.Enable |= x.c.Enable
		}
	}
	return sum
}

// Set enables the interrupts of e and disables all others; 0 disables all.
func (c *ChannelIRQ) Set(e Events) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(c.of(e).Enable)
}

func (c *ChannelIRQ) store(causes uint32) {
	c.causes = causes
	c.Enable.Store(c.Regs, c.Summary(causes))
}

// Events is Hardware.Events.
func (c *ChannelIRQ) Events(mask Events) Events {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.Status.Load(c.Regs)
	if status == mmio.AllOnes {
		return EventGone
	}
	var found Events
	var clear, off uint32
	for _, e := range [...]Events{EventRx, EventTx, EventFatal} {
		of := c.of(e & mask)
		// What is not enabled holds no line, and Unmask clears it.
		if status&of.Status != 0 && c.causes&of.Enable != 0 {
			found |= e
			clear |= status & of.Status
			off |= of.Enable
		}
	}
	if found == 0 {
		return 0
	}
	c.store(c.causes &^ off)
	// Only what was read is cleared, and the summaries with it: an event that
	// came in between stays.
	c.Status.Store(c.Regs, clear|status&c.Summaries)
	return found
}

// Unmask is Hardware.Unmask.
func (c *ChannelIRQ) Unmask(e Events) error {
	of := c.of(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.Status.Load(c.Regs)
	if status == mmio.AllOnes {
		return ErrGone
	}
	if c.causes&of.Enable == of.Enable {
		// What is pending has raised the line, which only Events lowers: lowered
		// here, the edge of another event could fall between two of its looks.
		return nil
	}
	if clear := status & of.Status; clear != 0 {
		c.Status.Store(c.Regs, clear|status&c.Summaries)
	}
	c.store(c.causes | of.Enable)
	// The read flushes both stores: what the device does from here on raises an
	// interrupt, and what it did before is seen by looking at the ring now.
	c.Enable.Load(c.Regs)
	return nil
}
