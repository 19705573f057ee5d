package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// process is who this process is for the kernel.
type process struct {
	known    bool
	uid, gid uint32 // by which it accesses files
	groups   []uint32
	caps     uint64 // effective, in the first user namespace
}

func readProcess(k Kernel) process {
	status, err := fs.ReadFile(k.FS(), "proc/self/status")
	if err != nil {
		return process{}
	}
	p := parseProcess(string(status))
	if !firstUserNamespace(k) {
		p.caps = 0
	}
	return p
}

// parseProcess reads the text of status of a process below proc.
func parseProcess(status string) (p process) {
	// Real, effective, saved, and the one for files.
	id := func(field string) (uint32, bool) {
		f := strings.Fields(statusValue(status, field))
		if len(f) != 4 {
			return 0, false
		}
		n, err := strconv.ParseUint(f[3], 10, 32)
		return uint32(n), err == nil
	}
	var okUID, okGID bool
	p.uid, okUID = id("Uid")
	p.gid, okGID = id("Gid")
	p.known = okUID && okGID
	for f := range strings.FieldsSeq(statusValue(status, "Groups")) {
		if n, err := strconv.ParseUint(f, 10, 32); err == nil {
			p.groups = append(p.groups, uint32(n))
		}
	}
	p.caps = effectiveCaps(status)
	return p
}

// capNames are the capabilities that matter.
var capNames = []struct {
	bit  uint64
	name string
}{{capSysRawIO, "CAP_SYS_RAWIO"}, {capSysAdmin, "CAP_SYS_ADMIN"}}

// lacks names those of the capabilities that the process does not have.
func (p *process) lacks(caps ...uint64) string {
	var all []string
	for _, c := range capNames {
		if slices.Contains(caps, c.bit) && p.caps&c.bit == 0 {
			all = append(all, c.name)
		}
	}
	return strings.Join(all, " and ")
}

// permitted says whether the mode of a file of an owner lets the process read and
// write it.
func (p *process) permitted(mode fs.FileMode, uid, gid uint32) bool {
	const readWrite = 6
	perm := mode.Perm()
	switch {
	case p.caps&capDACOverride != 0:
		return true
	case p.uid == uid:
		perm >>= 6
	case p.gid == gid || slices.Contains(p.groups, gid):
		perm >>= 3
	}
	return perm&readWrite == readWrite
}

// opening is what is known about opening a device node.
type opening int

const (
	denied opening = iota
	missing
	unknown // who owns it, or who this is
	allowed
)

// mayOpen says whether the process may open a device node for reading and writing,
// and why, as "root:root, mode 0600".
func (x *examiner) mayOpen(node string) (opening, string) {
	info, err := fs.Stat(x.k.FS(), node)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing, "it is not there"
	case errors.Is(err, fs.ErrPermission):
		return denied, "its directory is closed to this user"
	case err != nil:
		return unknown, withoutPath(err).Error()
	}
	uid, gid, ok := owner(info)
	mode := fmt.Sprintf("mode %#o", info.Mode().Perm())
	switch {
	case !ok || !x.self.known:
		return unknown, mode + ", and who owns it or who this is cannot be told"
	case x.self.permitted(info.Mode(), uid, gid):
		return allowed, fmt.Sprintf("owner %d:%d, %s", uid, gid, mode)
	}
	return denied, fmt.Sprintf("owner %d:%d, %s, and this is user %d of group %d", uid, gid, mode, x.self.uid, x.self.gid)
}

// udevRemedy says how to give the nodes to the group of this process.
func (x *examiner) udevRemedy() string {
	if x.self.uid == 0 {
		return "this is root without CAP_DAC_OVERRIDE, or root of a container with users of its own: give it the nodes from outside"
	}
	// udev takes a number for the name of a group.
	return fmt.Sprintf("give the nodes to group %[1]d: `printf '%%s\\n' 'SUBSYSTEM==\"vfio\", GROUP=\"%[1]d\", MODE=\"0660\"' 'SUBSYSTEM==\"vfio-dev\", GROUP=\"%[1]d\", MODE=\"0660\"' "+
		"'KERNEL==\"vfio\", SUBSYSTEM==\"misc\", MODE=\"0666\"' 'KERNEL==\"iommu\", SUBSYSTEM==\"misc\", GROUP=\"%[1]d\", MODE=\"0660\"' "+
		"| sudo tee /etc/udev/rules.d/70-vfio.rules && sudo udevadm control --reload && "+
		"sudo udevadm trigger --subsystem-match=vfio --subsystem-match=vfio-dev --subsystem-match=misc`", x.self.gid)
}

// access reports the device nodes that all devices share: that of containers, which
// noiommu mode has too, and that of iommufd. One of them is enough.
func (x *examiner) access() {
	nodes := []string{"dev/vfio/vfio", "dev/iommu"}
	var can [2]opening
	var why [2]string
	any := false
	for n, node := range nodes {
		can[n], why[n] = x.mayOpen(node)
		any = any || can[n] == allowed
	}
	x.shared = any
	if can[0] == missing && can[1] == missing && x.hasVFIO && x.container == "" {
		x.fail("access", "load what makes them: `sudo modprobe -a vfio_iommu_type1 iommufd`\nor, if they are in the kernel already, let udev make them: `sudo udevadm trigger --subsystem-match=misc`",
			"neither /dev/vfio/vfio nor /dev/iommu is there")
	}
	for n, node := range nodes {
		switch {
		case can[n] == missing:
		case can[n] == allowed:
			x.ok("access", "/%s may be opened: %s", node, why[n])
		case can[n] == unknown:
			x.warn("access", fmt.Sprintf("look: `ls -l /%s; id`", node), "whether /%s may be opened cannot be told: %s", node, why[n])
		case any:
			x.warn("access", x.udevRemedy(), "/%s may not be opened: %s", node, why[n])
		default:
			x.fail("access", x.udevRemedy(), "/%s may not be opened: %s", node, why[n])
		}
	}
}

// readContainer says what kind of container this is, "" for none.
func readContainer(fsys fs.FS) string {
	for _, c := range []struct{ file, kind string }{{"run/.containerenv", "podman"}, {".dockerenv", "docker"}} {
		if _, err := fs.Stat(fsys, c.file); err == nil {
			return c.kind
		}
	}
	for _, file := range []string{"proc/1/cgroup", "proc/self/cgroup"} {
		text, _ := fs.ReadFile(fsys, file)
		for _, kind := range []string{"kubepods", "docker", "libpod", "lxc", "containerd"} {
			if strings.Contains(string(text), kind) {
				return kind
			}
		}
	}
	return ""
}

// inContainer reports what a container was not given.
func (x *examiner) inContainer() {
	if x.container == "" {
		return
	}
	if present(x.k, "dev/vfio") || present(x.k, "dev/iommu") {
		x.ok("container", "this is a container (%s), and it was given device nodes of VFIO", x.container)
		return
	}
	if !x.hasVFIO {
		x.warn("container", "run it again with device nodes when its host has them", "this is a container (%s), and its host has no VFIO that could be given to it", x.container)
		return
	}
	x.fail("container", x.runAgain("/dev/vfio/GROUP")+"; GROUP is the number of the device's IOMMU group: `readlink /sys/bus/pci/devices/*/iommu_group`",
		"this is a container (%s), and it was given no device nodes of VFIO", x.container)
}

// runAgain says how to give a node to a container.
func (x *examiner) runAgain(node string) string {
	program := x.container
	if program != "podman" {
		program = "docker"
	}
	return fmt.Sprintf("run it again with the nodes: `%s run --device /dev/vfio/vfio --device %s --ulimit memlock=-1 --cap-add IPC_LOCK IMAGE`", program, node)
}
