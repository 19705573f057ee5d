package vfio

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// kernelOptions are the values of the options CONFIG_… that a kernel was built with:
// 'y', 'm', or 'n' for those that say that they are not set. It is nil if that cannot
// be read.
type kernelOptions map[string]byte

// reported are the options that matter, in the order in which they are reported.
var reported = []string{
	"VFIO", "VFIO_GROUP", "VFIO_CONTAINER", "VFIO_IOMMU_TYPE1", "VFIO_PCI", "VFIO_PLATFORM",
	"VFIO_DEVICE_CDEV", "IOMMUFD", "IOMMUFD_VFIO_CONTAINER", "VFIO_NOIOMMU", "IOMMUFD_NOIOMMU", "HUGETLBFS",
}

// readOptions reads the options of the running kernel from wherever it has them.
func readOptions(fsys fs.FS, release string) kernelOptions {
	if packed, err := fs.ReadFile(fsys, "proc/config.gz"); err == nil {
		if o, err := unpackOptions(packed); err == nil {
			return o
		}
	}
	for _, name := range []string{"boot/config-" + release, path.Join("lib/modules", release, "config")} {
		if text, err := fs.ReadFile(fsys, name); err == nil && release != "" {
			return parseOptions(string(text))
		}
	}
	return nil
}

// unpackOptions reads a configuration that is packed with gzip.
func unpackOptions(packed []byte) (kernelOptions, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	// One has some 300 kB.
	const limit = 16 << 20
	text, err := io.ReadAll(io.LimitReader(z, limit))
	if err != nil {
		return nil, err
	}
	return parseOptions(string(text)), nil
}

// parseOptions reads the text of a configuration and keeps what is reported.
func parseOptions(text string) kernelOptions {
	o := kernelOptions{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, isSet := strings.Cut(line, "=")
		if unset, ok := strings.CutSuffix(line, " is not set"); ok {
			name, value, isSet = strings.TrimPrefix(unset, "# "), "n", true
		}
		name, ok := strings.CutPrefix(name, "CONFIG_")
		if ok && isSet && slices.Contains(reported, name) && (value == "y" || value == "m" || value == "n") {
			o[name] = value[0]
		}
	}
	return o
}

// has says that an option is in the kernel or a module. An option that depends on one
// that is not set is not in the file at all.
func (o kernelOptions) has(name string) bool { return o[name] == 'y' || o[name] == 'm' }

// String lists the options, as "VFIO=m, IOMMUFD=n".
func (o kernelOptions) String() string {
	var all []string
	for _, name := range reported {
		v := o[name]
		if v == 0 {
			v = 'n'
		}
		all = append(all, fmt.Sprintf("%s=%c", name, v))
	}
	return strings.Join(all, ", ")
}

// group says that devices can be opened by their groups. The options of that are
// younger than VFIO: a kernel that does not know one has what it stands for.
func (o kernelOptions) group() bool {
	container := o["VFIO_CONTAINER"] != 'n' && o.has("VFIO_IOMMU_TYPE1") || o.has("IOMMUFD_VFIO_CONTAINER")
	return o.has("VFIO") && o["VFIO_GROUP"] != 'n' && (container || o.has("VFIO_NOIOMMU"))
}

// cdev says that devices can be opened one by one.
func (o kernelOptions) cdev() bool { return o.has("VFIO_DEVICE_CDEV") && o.has("IOMMUFD") }

// kernel reports what the kernel was built with.
func (x *examiner) kernel() {
	release := x.release
	if release == "" {
		release = "of an unknown release"
	}
	const build = "take a kernel of a distribution that has it, or build one with "
	switch o := x.options; {
	case o == nil:
		x.warn("kernel", "mount the part that has them, or load what shows them: `sudo modprobe configs`",
			"kernel %s: its options cannot be read, neither /proc/config.gz nor /boot/config-%s is there for this user", release, x.release)
	case !o.has("VFIO"):
		x.fail("kernel", build+"CONFIG_VFIO=m and CONFIG_VFIO_PCI=m", "kernel %s was built without VFIO", release)
	case !o.group() && !o.cdev():
		x.fail("kernel", build+"CONFIG_VFIO_GROUP=y, CONFIG_VFIO_CONTAINER=y and CONFIG_VFIO_IOMMU_TYPE1=m, or CONFIG_VFIO_DEVICE_CDEV=y and CONFIG_IOMMUFD=m",
			"kernel %s has no way to open a device with VFIO: %v", release, o)
	default:
		x.ok("kernel", "kernel %s: %v", release, o)
	}
}

// moduleList is which modules there are for the kernel, by name with '_' for '-'.
type moduleList struct {
	known   bool            // the lists could be read
	onDisk  map[string]bool // those that can be loaded
	builtin map[string]bool // those that are part of the kernel
}

func readModules(fsys fs.FS, release string) (m moduleList) {
	dir := path.Join("lib/modules", release)
	dep, err := fs.ReadFile(fsys, path.Join(dir, "modules.dep"))
	if err != nil || release == "" {
		return m
	}
	builtin, _ := fs.ReadFile(fsys, path.Join(dir, "modules.builtin"))
	return moduleList{known: true, onDisk: parseModules(string(dep)), builtin: parseModules(string(builtin))}
}

// parseModules reads modules.dep or modules.builtin: a path on each line, and in the
// former what it needs behind a colon.
func parseModules(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, _, ok := strings.Cut(path.Base(file), ".ko")
		if ok && name != "" {
			all[moduleName(name)] = true
		}
	}
	return all
}

// moduleName is a module as /sys/module has it.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// loaded says that a module is in the kernel. One that is built in is below
// /sys/module only if it has parameters.
func (x *examiner) loaded(name string) bool {
	name = moduleName(name)
	return present(x.k, "sys/module/"+name) || x.modules.builtin[name]
}

// load says how to get a module that is not in the kernel.
func (x *examiner) load(name, command, option string) (why, remedy string) {
	const none = "the kernel has no such module"
	get := "take a kernel with " + option + "=m"
	switch {
	case x.options != nil && !x.options.has(strings.TrimPrefix(option, "CONFIG_")):
		return none, get
	case x.container != "":
		// What is on disk is the container's own.
		return "it is not loaded", "load it on the host of this container: `" + command + "`"
	case x.modules.onDisk[moduleName(name)]:
		return "it is not loaded", "load it: `" + command + "`"
	case x.modules.known:
		return none, "install the modules of kernel " + x.release + " or " + get
	}
	return "whether the kernel has it cannot be told", "try to load it: `" + command + "`"
}

// core reports whether VFIO is there at all.
func (x *examiner) core() {
	// The node alone is enough: the kernel loads what is behind it.
	for _, name := range []string{"sys/module/vfio", "sys/class/vfio", "dev/vfio/vfio", "dev/vfio/devices"} {
		if present(x.k, name) {
			x.ok("vfio", "VFIO is there: /%s", name)
			x.hasVFIO = true
			return
		}
	}
	if x.loaded("vfio") {
		x.ok("vfio", "VFIO is part of the kernel")
		x.hasVFIO = true
		return
	}
	bus := x.bus
	if bus == "" {
		bus = PCI
	}
	why, remedy := x.load("vfio", modprobe(bus), "CONFIG_VFIO")
	x.fail("vfio", remedy, "VFIO is not there: %s", why)
}

// hasPlatformDriver says that Linux has vfio-platform for the processor.
func (x *examiner) hasPlatformDriver() bool { return x.arch == "arm" || x.arch == "arm64" }

// busDrivers reports the VFIO drivers of the buses: that of the device that was asked
// for, or all.
func (x *examiner) busDrivers() {
	for _, b := range []Bus{PCI, Platform} {
		if x.bus != b && (x.bus != "" || !present(x.k, b.devices()) || b == Platform && !x.hasPlatformDriver()) {
			continue
		}
		name := b.vfioDriver()
		if present(x.k, driverDir(b, name)) {
			x.ok(name, "the driver %s is there", name)
			continue
		}
		if b == Platform && !x.hasPlatformDriver() {
			x.fail(name, "use UIO, or a PCI device", "Linux has vfio-platform for arm and arm64 alone, and this is %s", x.arch)
			continue
		}
		severity := Warning
		if x.bus == b {
			severity = Failure
		}
		why, remedy := x.load(name, modprobe(b), "CONFIG_"+strings.ToUpper(moduleName(name)))
		x.add(severity, name, remedy, "the driver "+name+" is not there: "+why)
	}
}

// architecture reports what VFIO does not have on the processor.
func (x *examiner) architecture() {
	switch x.arch {
	case "riscv64", "loong64":
		x.warn("arch", "use the device nodes below /dev/vfio/devices (CONFIG_VFIO_DEVICE_CDEV=y, CONFIG_IOMMUFD=m), or noiommu mode",
			"on %s VFIO has no type1 containers: a device is opened with iommufd or in noiommu mode", x.arch)
	case "386", "arm", "mips", "mipsle":
		x.warn("arch", "take smaller pools, or a 64-bit kernel if the processor can run one", "the program is of 32 bits (%s): it has 4 GiB of addresses at most for its pools and the registers", x.arch)
	}
}
