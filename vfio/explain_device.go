package vfio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// address is the device as stmmacctl and package bus take it.
func (i *Info) address() string { return string(i.Bus) + ":" + i.Name }

// lookupFailed reports a device that there is not.
func (x *examiner) lookupFailed(err error) {
	text, remedy := err.Error(), ""
	if e := new(Error); errors.As(err, &e) {
		text, remedy = e.Err.Error(), e.Remedy
	}
	if remedy == "" {
		remedy = "list the devices: `stmmacctl list -all`"
	}
	x.fail("device", remedy, "%s", text)
}

func (x *examiner) found(i *Info) { x.ok("device", "%v is there, %s", i, driverState(i)) }

// driver reports whether the device is with VFIO.
func (x *examiner) driver(i *Info) {
	vfio := i.Bus.vfioDriver()
	if i.Driver == vfio {
		x.ok("driver", "it is with %s", vfio)
		return
	}
	down := ""
	for _, name := range i.Interfaces {
		if isUp(x.k, name) {
			down += "sudo ip link set " + name + " down && "
		}
	}
	remedy := "give it to VFIO: `" + down + "sudo stmmacctl bind " + i.address() + "`\nor `" + modprobe(i.Bus) + "; " + bindCommands(i) + "`"
	if i.Driver == "" {
		x.fail("driver", remedy, "it is with no driver, and not with %s", vfio)
		return
	}
	text := "it is with the kernel driver " + i.Driver + ", and not with " + vfio
	if len(i.Interfaces) > 0 {
		text += "; its network interface " + strings.Join(i.Interfaces, ", ") + " goes with that driver"
	}
	x.fail("driver", remedy, "%s", text)
}

// offenders are the devices of a group, beside one, that keep VFIO from the group.
func offenders(members []Info, beside *Info) (bad []Info) {
	for _, m := range members {
		if (m.Bus != beside.Bus || m.Name != beside.Name) && m.offends() {
			bad = append(bad, m)
		}
	}
	return bad
}

// withDrivers says what drivers devices are with.
func withDrivers(all []Info) string {
	texts := make([]string, len(all))
	for n := range all {
		texts[n] = fmt.Sprintf("%v is with %s", &all[n], all[n].Driver)
	}
	return strings.Join(texts, " and ")
}

// group reports the IOMMU group of the device and who else is in it.
func (x *examiner) group(i *Info) {
	switch {
	case i.NoIOMMU():
		x.warn("group", "give it an IOMMU if the machine has one: "+x.switchOn(), "it is with VFIO in noiommu mode: no IOMMU is between it and the memory")
		return
	case i.Group < 0 && x.noiommu:
		x.warn("group", "give it an IOMMU if the machine has one: "+x.switchOn(), "it is in no IOMMU group: VFIO takes it in noiommu mode")
		return
	case i.Group < 0 && x.groups > 0:
		x.fail("group", "another slot, or for a platform device `iommus` in its device tree node"+x.orWithout(), "it is in no IOMMU group, though there are %d: the IOMMU is not behind it", x.groups)
		return
	case i.Group < 0:
		x.fail("group", x.switchOn()+x.orWithout(), "it is in no IOMMU group, because no IOMMU is on")
		return
	}
	members, err := Members(x.k, i.Group)
	if err != nil {
		x.warn("group", fmt.Sprintf("look as root: `sudo ls /%s/devices`", groupDir(i.Group)), "who is in IOMMU group %d cannot be told: %v", i.Group, err)
		return
	}
	bad := offenders(members, i)
	if len(bad) == 0 {
		others := len(slices.DeleteFunc(members, func(m Info) bool { return m.Name == i.Name && m.Bus == i.Bus }))
		if others == 0 {
			x.ok("group", "it is alone in IOMMU group %d", i.Group)
		} else {
			x.ok("group", "it is in IOMMU group %d, and none of the %d others in it is in the way", i.Group, others)
		}
		return
	}
	var bind []string
	for _, m := range bad {
		bind = append(bind, "sudo stmmacctl bind "+m.address())
	}
	x.fail("group", "give them to VFIO too, if the machine can do without: `"+strings.Join(bind, "; ")+"`\nor put the card into a slot with a group of its own",
		"IOMMU group %d is not viable: %s", i.Group, withDrivers(bad))
}

// node reports the device nodes by which the device is opened, of which one is enough.
func (x *examiner) node(i *Info) {
	if i.Driver != i.Bus.vfioDriver() {
		return // it has none before
	}
	nodes := i.nodes()
	var why []string
	for _, node := range nodes {
		can, text := x.mayOpen(node)
		with := containerNode
		if strings.HasPrefix(node, cdevDir) {
			with = iommuNode
		}
		switch can {
		case allowed:
			// That neither may be opened is said of the machine.
			if can, text := x.mayOpen(with); can == denied && x.shared {
				why = append(why, fmt.Sprintf("/%s is of no use without /%s, which may not be opened: %s", node, with, text))
				continue
			}
			x.openable(node, text)
			return
		case unknown:
			x.warn("node", fmt.Sprintf("look: `ls -l /%s; id`", node), "whether /%s may be opened cannot be told: %s", node, text)
			return
		case denied:
			why = append(why, fmt.Sprintf("/%s may not be opened: %s", node, text))
		}
	}
	switch {
	case len(why) > 0:
		x.fail("node", x.udevRemedy(), "%s", strings.Join(why, "; "))
	case len(nodes) == 0:
		x.fail("node", "see `sudo dmesg | grep -i vfio`", "it has no device node: it is in no IOMMU group and has none of its own")
	case x.container != "":
		x.fail("node", x.runAgain("/"+nodes[0]), "its device node /%s is not in the container", strings.Join(nodes, " or /"))
	default:
		x.fail("node", "let udev make it: `sudo udevadm trigger --subsystem-match=vfio --subsystem-match=vfio-dev`", "its device node /%s is not there", strings.Join(nodes, " or /"))
	}
}

// openable reports a node that may be opened, unless somebody has it open.
func (x *examiner) openable(node, why string) {
	held, unread := holders(x.k, node)
	switch {
	case len(held) > 0:
		x.fail("node", fmt.Sprintf("end that process: `sudo kill %d`", held[0].PID), "/%s is in use (EBUSY): %s", node, busy(x.k, node))
	case unread > 0:
		x.ok("node", "/%s may be opened: %s; whether one of %d processes of others has it open cannot be told", node, why, unread)
	default:
		x.ok("node", "/%s may be opened: %s; nobody has it open", node, why)
	}
}
