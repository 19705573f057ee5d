package vfio

import (
	"path"
	"slices"
	"syscall"
)

// pci makes the findings that only functions of PCI have.
func (x *examiner) pci(i *Info) {
	x.reset(i)
	x.registers(i)
	x.power(i)
	x.virtualFunction(i)
}

// reset reports how the kernel resets the function.
func (x *examiner) reset(i *Info) {
	const soft = "MACs have a soft reset of their own, which is used; a device that hangs on the bus stays so until `sudo reboot`"
	methods, ok := x.read("reset", path.Join(i.dir(), "reset_method"))
	switch {
	case ok && methods != "":
		x.ok("reset", "the kernel can reset it: %s", methods)
	case !ok && present(x.k, path.Join(i.dir(), "reset")):
		x.ok("reset", "the kernel can reset it") // Linux before 5.15 does not say how
	default:
		x.warn("reset", soft, "the kernel has no way to reset it")
	}
}

// registers reports a function without memory to map.
func (x *examiner) registers(i *Info) {
	const rom = 6
	bars := slices.DeleteFunc(slices.Clone(i.BARs), func(b BAR) bool { return b.Index >= rom })
	if len(bars) == 0 {
		x.fail("registers", "let the kernel give it some: `echo 1 | sudo tee /"+path.Join(i.dir(), "remove")+"; echo 1 | sudo tee /sys/bus/pci/rescan`",
			"no base address register of it has an address: its registers cannot be reached")
		return
	}
	x.ok("registers", "base address register %d has %d bytes at %#x", bars[0].Index, bars[0].Size, bars[0].Base)
}

// power reports a function that is off.
func (x *examiner) power(i *Info) {
	state, ok := x.read("power", path.Join(i.dir(), "power_state"))
	switch {
	case asleep(x.k, i):
		e := sleepError("", i, syscall.EACCES)
		x.fail("power", e.Remedy, "%v", e.Err)
	case !ok: // Linux before 5.11
	case state == "D3cold":
		x.warn("power", "keep it on: `echo on | sudo tee /"+path.Join(i.dir(), "power/control")+"`",
			"it has no power (D3cold): opening it switches it on, which takes its time and may fail")
	default:
		x.ok("power", "its power state is %s", state)
	}
}

// virtualFunction reports what a virtual function needs beside its node.
func (x *examiner) virtualFunction(i *Info) {
	if !i.VF {
		return
	}
	owner := linkBase(x.k.FS(), path.Join(i.dir(), "physfn/driver"))
	parent := linkBase(x.k.FS(), path.Join(i.dir(), "physfn"))
	const remedy = "open it with the token (a UUID) that the program with the physical function set"
	if owner == i.Bus.vfioDriver() {
		x.warn("vf", remedy, "it is a virtual function of %s, which is with %s: opening it needs a VF token", parent, owner)
		return
	}
	x.warn("vf", remedy, "it is a virtual function of %s: opening it needs a VF token if that is given to %s too", parent, i.Bus.vfioDriver())
}
