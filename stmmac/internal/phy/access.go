package phy

import (
	"fmt"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// Bus is how PHYs are reached.
type Bus = core.MDIOBus

// silent is what a register of an absent PHY reads with a pull-up on the bus.
const silent = 0xffff

// access reads and writes the registers of one PHY. After a failure it accesses
// nothing more, and reads give 0, until take has handed the error out: a step
// therefore never writes what it made of a value that it could not read.
type access struct {
	bus  Bus
	addr int
	err  error
}

// take returns the first error since the last call.
func (a *access) take() error {
	err := a.err
	a.err = nil
	return err
}

func (a *access) fail(op, reg string, err error) {
	if err != nil {
		a.err = fmt.Errorf("PHY %d: %s %s: %w", a.addr, op, reg, err)
	}
}

func (a *access) read(reg int) uint16 {
	if a.err != nil {
		return 0
	}
	v, err := a.bus.Read(a.addr, reg)
	if err != nil {
		a.fail("read", regNames[reg], err)
		return 0
	}
	return v
}

func (a *access) write(reg int, v uint16) {
	if a.err == nil {
		a.fail("write", regNames[reg], a.bus.Write(a.addr, reg, v))
	}
}

func (a *access) read45(dev, reg int) uint16 {
	if a.err != nil {
		return 0
	}
	v, err := a.bus.Read45(a.addr, dev, reg)
	if err != nil {
		a.fail("read", reg45Name(dev, reg), err)
		return 0
	}
	return v
}

func (a *access) write45(dev, reg int, v uint16) {
	if a.err == nil {
		a.fail("write", reg45Name(dev, reg), a.bus.Write45(a.addr, dev, reg, v))
	}
}

// update clears and sets bits of a register, and says whether it had to.
func (a *access) update(reg int, clear, set uint16) (changed bool) {
	old := a.read(reg)
	if v := old&^clear | set; a.err == nil && v != old {
		a.write(reg, v)
		return true
	}
	return false
}

// update45 is update by clause 45.
func (a *access) update45(dev, reg int, clear, set uint16) (changed bool) {
	old := a.read45(dev, reg)
	if v := old&^clear | set; a.err == nil && v != old {
		a.write45(dev, reg, v)
		return true
	}
	return false
}
