package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// typicalPool is what a program locks that drives a device with a queue or two.
const typicalPool = 64 << 20

// memlock reports how much memory the process may lock.
func (x *examiner) memlock() {
	m, err := readMemlock(x.k)
	if err != nil {
		e := new(Error)
		if !errors.As(err, &e) {
			e = &Error{}
		}
		x.warn("memlock", e.Remedy, "what memory may be locked cannot be told: %v", err)
		return
	}
	switch err := m.check(m.used(), typicalPool); {
	case m.exempt:
		x.ok("memlock", "the limit of locked memory does not count: the process has CAP_IPC_LOCK")
	case m.limit == unlimited:
		x.ok("memlock", "memory may be locked without limit")
	case err == nil:
		x.ok("memlock", "%d MiB of memory may be locked, and %d are", m.limit>>20, m.used()>>20)
	default:
		x.warn("memlock", ways(memlockRemedy(m.used()+typicalPool)),
			"%d KiB of memory may be locked, and %d are: a pool of %d MiB cannot be mapped", m.limit>>10, m.used()>>10, typicalPool>>20)
	}
}

// ways puts the ways of a remedy on lines of their own.
func ways(remedy string) string { return strings.ReplaceAll(remedy, "; or ", "\nor ") }

// hugepages reports free hugepages, of which alone the memory of a device without an IOMMU
// is made.
func (x *examiner) hugepages() {
	fsys := x.k.FS()
	const root = "sys/kernel/mm/hugepages"
	var free []string
	fits := false
	for _, dir := range names(fsys, root) {
		size, ok := strings.CutPrefix(dir, "hugepages-")
		text, err := attribute(fsys, path.Join(root, dir, "free_hugepages"))
		if n, e := strconv.ParseUint(text, 10, 64); ok && err == nil && e == nil && n > 0 {
			free = append(free, fmt.Sprintf("%d of %s", n, size))
			fits = fits || size == fmt.Sprintf("%dkB", hugePage>>10)
		}
	}
	const remedy = "set some apart, which works best soon after boot: `sudo sysctl vm.nr_hugepages=64`"
	none := fmt.Sprintf("no hugepage of %d kB is free", hugePage>>10)
	switch {
	case x.noiommu && !fits && (x.exposed || x.groups == 0):
		x.fail("hugepages", remedy, "%s, and without an IOMMU the memory of a device has to be contiguous and stay where it is", none)
	case x.noiommu && !fits && x.bus == "":
		x.warn("hugepages", remedy, "%s: there is no memory for a device that no IOMMU is behind", none)
	case len(free) > 0:
		x.ok("hugepages", "free hugepages: %s", strings.Join(free, ", "))
	default:
		x.ok("hugepages", "no hugepage is free, and with an IOMMU none is needed")
	}
}

// pages reports what a size of pages other than 4 KiB means.
func (x *examiner) pages() {
	const usual = 4 << 10
	n := x.k.PageSize()
	if n <= usual {
		x.ok("pages", "a page has %d bytes", n)
		return
	}
	x.warn("pages", "if that is too slow, boot a kernel with pages of 4 KiB (CONFIG_ARM64_4K_PAGES=y)",
		"a page has %d KiB: registers whose window is smaller, or does not begin at a multiple of it, are not mapped but read and written by system calls", n>>10)
}

// reserved reports what the firmware keeps mapped for the devices of a group.
func (x *examiner) reserved(i *Info) {
	if i.Group < 0 || i.NoIOMMU() {
		return
	}
	name := path.Join(groupDir(i.Group), "reserved_regions")
	text, err := fs.ReadFile(x.k.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	} else if err != nil {
		x.warn("reserved", "look as root: `sudo cat /"+name+"`", "/%s cannot be read: %v", name, withoutPath(err))
		return
	}
	regions := parseReserved(string(text))
	direct := slices.DeleteFunc(slices.Clone(regions), func(r reservedRegion) bool { return r.kind != "direct" })
	relaxable := slices.DeleteFunc(slices.Clone(regions), func(r reservedRegion) bool { return r.kind != "direct-relaxable" })
	switch {
	case len(direct) > 0:
		x.warn("reserved", "`sudo dmesg | grep -i '1:1'` shows it; look in the set-up of the firmware for what uses the device (pre-boot DMA protection, remote management, RAID), or ask who made the machine",
			"the firmware wants memory of IOMMU group %d mapped as it is (%v): the kernel refuses to attach it to VFIO (EINVAL)", i.Group, direct[0])
	case len(relaxable) > 0:
		x.warn("reserved", "if attaching fails with EINVAL: `sudo dmesg | grep -i '1:1'`, and switch off in the firmware what uses the device",
			"the firmware had memory of IOMMU group %d mapped as it is (%v); VFIO takes that away", i.Group, relaxable[0])
	default:
		x.ok("reserved", "the firmware keeps no memory mapped for IOMMU group %d", i.Group)
	}
}

// reservedRegion is a range of bus addresses that is not for everybody.
type reservedRegion struct {
	start, end uint64 // the end belongs to it
	kind       string // "direct", "reserved", "msi", …
}

// String formats the region as "0x1000 to 0x1fff".
func (r reservedRegion) String() string { return fmt.Sprintf("%#x to %#x", r.start, r.end) }

// parseReserved reads reserved_regions of a group and leaves out what makes no sense.
func parseReserved(text string) (all []reservedRegion) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		start, err1 := strconv.ParseUint(f[0], 0, 64)
		end, err2 := strconv.ParseUint(f[1], 0, 64)
		if err1 == nil && err2 == nil && start <= end {
			all = append(all, reservedRegion{start, end, f[2]})
		}
	}
	return all
}
