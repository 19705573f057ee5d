package vfio

import (
	"io/fs"
	"slices"
	"strings"
)

// parseCPU reads /proc/cpuinfo of x86: the vendor, and whether a hypervisor is
// beneath.
func parseCPU(text string) (vendor string, virtual bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "vendor_id":
			vendor = strings.TrimSpace(value)
		case "flags":
			return vendor, slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return vendor, false
}

// iommuKinds are the names that units have in /sys/class/iommu, by their beginnings.
var iommuKinds = []struct{ prefix, name string }{
	{"dmar", "Intel VT-d"}, {"ivhd", "AMD-Vi"}, {"smmu3", "Arm SMMUv3"}, {"smmu", "Arm SMMU"}, {"riscv-iommu", "RISC-V IOMMU"}, {"virtio", "virtio-iommu"},
}

// iommuName says what IOMMUs there are.
func (x *examiner) iommuName() string {
	for _, kind := range iommuKinds {
		if len(x.units) > 0 && strings.HasPrefix(x.units[0], kind.prefix) {
			return kind.name
		}
	}
	return "an IOMMU"
}

// iommu reports whether an IOMMU is on.
func (x *examiner) iommu() {
	passThrough := x.listed("iommu=pt") || x.listed("iommu.passthrough=1")
	switch {
	case x.groups > 0 && passThrough:
		x.ok("iommu", "%s is on with %d groups; pass-through is for kernel drivers, VFIO maps by itself", x.iommuName(), x.groups)
	case x.groups > 0:
		x.ok("iommu", "%s is on with %d groups", x.iommuName(), x.groups)
	case x.noiommu:
		x.warn("iommu", x.switchOn(), "no IOMMU is on: devices are opened in noiommu mode alone")
	default:
		x.fail("iommu", x.switchOn()+x.orWithout(), "no IOMMU is on: /sys/kernel/iommu_groups has no group")
	}
}

// noiommuParameter is there if the kernel has the mode and VFIO is loaded.
const noiommuParameter = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

// orWithout is the way without an IOMMU, as another line of a remedy, "" if the kernel
// has none.
func (x *examiner) orWithout() string {
	const risk = "\nor, on a machine of which everything may be lost, use noiommu mode: "
	switch {
	case present(x.k, noiommuParameter):
		return risk + "`echo 1 | sudo tee /" + noiommuParameter + "`"
	case x.options != nil && !x.options.has("VFIO_NOIOMMU"):
		return ""
	}
	return risk + "`sudo modprobe vfio enable_unsafe_noiommu_mode=1`, which needs CONFIG_VFIO_NOIOMMU=y"
}

// off are the parameters that switch an IOMMU off.
var off = []string{"intel_iommu=off", "amd_iommu=off", "iommu=off"}

// switchOn says how to switch the IOMMU of the machine on.
func (x *examiner) switchOn() string {
	for _, p := range off {
		if x.listed(p) {
			return "take " + p + " off the kernel's command line" + bootLoader("--remove-args="+p, "delete it in /etc/default/grub and `sudo update-grub`")
		}
	}
	const intel, amd = "intel_iommu=on", "amd_iommu=on"
	table := func(name string) bool { return present(x.k, "sys/firmware/acpi/tables/"+name) }
	switch vendor := x.vendor; {
	case x.nested:
		return "this machine is virtual: its host has to give it an IOMMU, as QEMU does with `-machine q35,kernel-irqchip=split -device intel-iommu,intremap=on`; then " + addParam(intel)
	case vendor == "GenuineIntel" && table("DMAR"):
		return "the firmware has VT-d on and the kernel does not use it: " + addParam(intel)
	case vendor == "GenuineIntel":
		return "switch VT-d on in the set-up of the firmware, and " + addParam(intel)
	case vendor == "AuthenticAMD" && table("IVRS"):
		return "the firmware has AMD-Vi on and the kernel does not use it, which `sudo dmesg | grep AMD-Vi` explains"
	case vendor == "AuthenticAMD":
		return "switch AMD-Vi (\"IOMMU\") on in the set-up of the firmware; the kernel uses it then"
	case x.arch == "amd64" || x.arch == "386":
		return "switch the IOMMU on in the set-up of the firmware, and " + addParam(intel)
	case x.arch == "arm64" || x.arch == "arm":
		return "the SMMU has to be in the device tree (iommus of the MAC) or in the IORT table of the firmware, and in the kernel: CONFIG_ARM_SMMU=y, CONFIG_ARM_SMMU_V3=y"
	}
	return "the IOMMU has to be in the device tree and in the kernel, if the machine has one"
}

// addParam says how to add a parameter to the kernel's command line.
func addParam(p string) string {
	return "add " + p + " to the kernel's command line" + bootLoader("--args="+p,
		"`echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX "+p+"\"' | sudo tee -a /etc/default/grub && sudo update-grub`")
}

// bootLoader says how a parameter is changed with grubby, and where there is none.
func bootLoader(grubby, other string) string {
	return ": `sudo grubby --update-kernel=ALL " + grubby + "` (Fedora), or " + other + " (Debian), then `sudo reboot`"
}

// noIOMMU reports noiommu mode.
func (x *examiner) noIOMMU() {
	mode, ok := x.read("noiommu", noiommuParameter)
	switch {
	case !ok:
		return // the kernel has no such mode, or VFIO is not there
	case mode != "Y":
		x.ok("noiommu", "noiommu mode is off")
		return
	}
	x.warn("noiommu", "where there is an IOMMU: `echo 0 | sudo tee /"+noiommuParameter+"`",
		"noiommu mode is on: nothing keeps a device, or a mistake in the program that drives it, from reading and overwriting all memory, that of the kernel too; "+
			"the kernel counts as tainted once it is used")
	if !x.self.known {
		return
	}
	switch lacks := x.self.lacks(capSysRawIO, capSysAdmin); {
	case x.self.caps&capSysRawIO == 0:
		x.fail("noiommu", "run the program with sudo", "noiommu mode is for processes with CAP_SYS_RAWIO, and without an IOMMU in iommufd CAP_SYS_ADMIN shows bus addresses: this one lacks %s", lacks)
	case lacks != "":
		x.warn("noiommu", "run the program with sudo", "without CAP_SYS_ADMIN /proc/self/pagemap hides bus addresses, which noiommu mode needs unless iommufd tells them (CONFIG_IOMMUFD_NOIOMMU)")
	}
}

// interrupts reports whether a device can be kept from raising interrupts that are not
// its own.
func (x *examiner) interrupts() {
	for _, module := range []string{"vfio_iommu_type1", "iommufd"} {
		name := "sys/module/" + module + "/parameters/allow_unsafe_interrupts"
		if v, _ := x.read("interrupts", name); v == "Y" {
			x.warn("interrupts", "where interrupts are remapped: `echo 0 | sudo tee /"+name+"`",
				"allow_unsafe_interrupts of %s is on: a device can raise any interrupt of the machine", module)
			return
		}
	}
	if x.groups == 0 || x.arch != "amd64" && x.arch != "386" {
		return
	}
	const allow = "allow it, which trusts the device: `echo 1 | sudo tee /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts`"
	for _, p := range []string{"intremap=off", "nointremap"} {
		if x.listed(p) {
			x.fail("interrupts", "take "+p+" off the kernel's command line"+bootLoader("--remove-args="+p, "delete it in /etc/default/grub and `sudo update-grub`")+"\n"+allow,
				"the kernel was told not to remap interrupts (%s): devices cannot be opened (EPERM)", p)
			return
		}
	}
	// The kernel puts IR- before the names of the interrupt controllers that it
	// remaps for.
	text, err := fs.ReadFile(x.k.FS(), "proc/interrupts")
	switch {
	case err != nil:
		x.warn("interrupts", "look: `sudo cat /proc/interrupts`", "whether interrupts are remapped cannot be told: /proc/interrupts: %v", withoutPath(err))
	case strings.Contains(string(text), "IR-"):
		x.ok("interrupts", "interrupts are remapped")
	default:
		x.warn("interrupts", "switch interrupt remapping (x2APIC) on in the set-up of the firmware\n"+allow,
			"it seems that interrupts are not remapped: devices cannot be opened then (EPERM)")
	}
}

// lockdown reports what the kernel keeps even from root.
func (x *examiner) lockdown() {
	text, ok := x.read("lockdown", "sys/kernel/security/lockdown")
	_, mode, found := strings.Cut(text, "[")
	mode, _, closed := strings.Cut(mode, "]")
	switch {
	case !ok || !found || !closed:
		return // a kernel without it
	case mode == "none":
		x.ok("lockdown", "the kernel is not locked down")
	case x.noiommu || x.groups == 0:
		x.warn("lockdown", "use an IOMMU, or switch Secure Boot off in the set-up of the firmware",
			"the kernel is locked down (%s): raw access to devices is forbidden, and noiommu mode may be", mode)
	default:
		x.ok("lockdown", "the kernel is locked down (%s), which allows VFIO behind an IOMMU", mode)
	}
}
