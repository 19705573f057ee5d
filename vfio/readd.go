package vfio

import (
	"errors"
	"fmt"
	"os"
	"path"
)

// Attributes of the PCI bus.
const (
	rescanFile    = "sys/bus/pci/rescan"
	autoprobeFile = "sys/bus/pci/drivers_autoprobe"
)

// asleep says that the runtime power management of a PCI function is off: its last driver
// left it so, and the kernel opens no function that it cannot wake (EACCES). The PCI core
// turns it on when it finds a function (drivers/pci/pci.c, pci_pm_init), and nothing else
// does without a driver. A kernel without it has no such file.
func asleep(k Kernel, i *Info) bool {
	status, _ := attribute(k.FS(), path.Join(i.dir(), "power/runtime_status"))
	return i.Bus == PCI && status == "unsupported"
}

// sleepError is why such a function cannot be opened.
func sleepError(call string, i *Info, err error) *Error {
	return &Error{Call: call, Err: fmt.Errorf("its last kernel driver left its runtime power management off: %w", err), Remedy: "find it anew: `sudo stmmacctl bind " + i.address() + "`"}
}

// readd removes a function from its bus and lets the kernel find it again, without a driver
// and an override.
func readd(k Kernel, i *Info) (err error) {
	was, err := attribute(k.FS(), autoprobeFile)
	if err != nil {
		return failed("read /"+autoprobeFile, withoutPath(err), "mount sysfs: `sudo mount -t sysfs sysfs /sys`")
	}
	if was != "0" {
		// Its own driver would take it.
		if err := writeAttribute(k, autoprobeFile, "0"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, writeAttribute(k, autoprobeFile, was)) }()
	}
	if err := writeAttribute(k, path.Join(i.dir(), "remove"), "1"); err != nil {
		return err
	}
	if err := writeAttribute(k, rescanFile, "1"); err != nil {
		return err
	}
	if !present(k, i.dir()) {
		return &Error{Err: fmt.Errorf("it was removed from its bus, and the kernel does not find it again: %w", os.ErrNotExist),
			Remedy: "look again: `" + tee("1", rescanFile) + "`; if that does not help, power the machine off and on"}
	}
	return nil
}
