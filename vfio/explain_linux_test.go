package vfio

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wantFinding is a finding: its severity, check and, if it is one of the device, a '*'; and
// what its text and remedy contain.
type wantFinding struct {
	finding string
	says    []string
}

// check explains a device and compares the complete list of findings.
func (k *tree) check(arch, addr string, wants []wantFinding) {
	k.t.Helper()
	r, err := explain(k, arch, addr)
	if err != nil {
		k.t.Fatal(err)
	}
	var got, expected []string
	for _, f := range r.Findings {
		s := f.Severity.String() + " " + f.Check
		if f.Dev != "" {
			s += " *"
		}
		got = append(got, s)
	}
	for _, w := range wants {
		expected = append(expected, w.finding)
	}
	if d := cmp.Diff(expected, got); d != "" {
		k.t.Errorf("-want +got:\n%s", d)
		for _, f := range r.Findings {
			k.t.Logf("%v %s: %s\n%s", f.Severity, f.Check, f.Text, f.Remedy)
		}
		return
	}
	for n, w := range wants {
		f := r.Findings[n]
		for _, s := range w.says {
			if !strings.Contains(f.Text+"\n"+f.Remedy, s) {
				k.t.Errorf("%s: no %q in %q, %q", w.finding, s, f.Text, f.Remedy)
			}
		}
		if f.Severity == Failure && f.Remedy == "" {
			k.t.Errorf("%s: there is no remedy: %q", w.finding, f.Text)
		}
		if f.Dev != "" && !strings.Contains(addr, f.Dev) && f.Dev != nic {
			k.t.Errorf("%s: it is of %q", w.finding, f.Dev)
		}
	}
	if r.Failed() != slices.ContainsFunc(expected, func(s string) bool { return strings.HasPrefix(s, "failure") }) {
		k.t.Errorf("Failed is %v", r.Failed())
	}
}

// rootProcess and userProcess are processes.
const (
	rootProcess = `proc/100/status: "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \nVmLck:\t0 kB\nVmPin:\t0 kB\nCapEff:\t000001ffffffffff\n"
		proc/100/uid_map: 0 0 4294967295
		proc/100/limits: "Max locked memory         8388608              8388608              bytes\n"`
	userProcess = `proc/100/status: "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t24 27 1000 \nVmLck:\t0 kB\nVmPin:\t0 kB\nCapEff:\t0000000000000000\n"
		proc/100/uid_map: 0 0 4294967295
		proc/100/limits: "Max locked memory         8388608              8388608              bytes\n"`
)

// debian is a PC with VT-d and the kernel of Debian.
const debian = `
	proc/self -> 100
	proc/100/fd/0 -> /dev/null
	proc/200/fd/0 -> /dev/vfio/99
	proc/sys/kernel/osrelease: 6.12.0-amd64
	proc/cmdline: root=/dev/sda1 intel_iommu=on
	proc/cpuinfo: "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vmx\n"
	proc/interrupts: " 16:  0  0  IR-PCI-MSI-0000:00:14.0  0-edge  xhci_hcd\n"
	boot/config-6.12.0-amd64: "CONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\nCONFIG_VFIO_CONTAINER=y\nCONFIG_VFIO_IOMMU_TYPE1=m\n# CONFIG_VFIO_NOIOMMU is not set\nCONFIG_VFIO_PCI=m\nCONFIG_HUGETLBFS=y\n"
	lib/modules/6.12.0-amd64/modules.dep: "kernel/drivers/vfio/vfio.ko.xz:\nkernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n"
	lib/modules/6.12.0-amd64/modules.builtin: kernel/fs/ext4/ext4.ko
	sys/class/iommu/dmar0/
	sys/kernel/security/lockdown: [none] integrity confidentiality
	sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages: 0
`

// withVFIO is debian after modprobe vfio-pci.
const withVFIO = `
	sys/module/vfio/initstate: live
	sys/module/vfio_pci/initstate: live
	sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts: N
	sys/bus/pci/drivers/vfio-pci/
`

// debianPC is such a PC with a Motorcomm YT6801 alone in group 14 and with VFIO, and in group
// 15 another NIC beside a USB controller and a bridge.
func debianPC(t *testing.T, process string) *tree {
	k := newTree(t, debian, withVFIO, process)
	k.pci(nic, "1f0a:6801", "020000", "vfio-pci", 14)
	k.pci("0000:04:00.0", "1f0a:6801", "020000", "vfio-pci", 15)
	k.pci("0000:00:1c.0", "8086:7ab8", "060400", "pcieport", 15)
	k.pci("0000:04:00.1", "1b21:1242", "0c0330", "xhci_hcd", 15)
	k.pci("0000:04:00.2", "1b21:1080", "060401", "", 15)
	for _, g := range []string{"14", "15"} {
		k.add("sys/kernel/iommu_groups/" + g + `/reserved_regions: "0x00000000fee00000 0x00000000feefffff msi\n"`)
		k.node("dev/vfio/"+g, 0o600, 0, 0)
	}
	k.node("dev/vfio/vfio", 0o666, 0, 0)
	return k
}

var pcMachine = []wantFinding{
	{"ok kernel", []string{"kernel 6.12.0-amd64: VFIO=m, VFIO_GROUP=y, VFIO_CONTAINER=y, VFIO_IOMMU_TYPE1=m, VFIO_PCI=m, VFIO_PLATFORM=n,", "IOMMUFD=n", "HUGETLBFS=y"}},
	{"ok vfio", []string{"/sys/module/vfio"}},
	{"ok vfio-pci", nil},
	{"ok iommu", []string{"Intel VT-d is on with 2 groups"}},
	{"ok interrupts", nil},
	{"ok lockdown", []string{"not locked down"}},
	{"ok access", []string{"/dev/vfio/vfio may be opened: owner 0:0, mode 0666"}},
	{"ok memlock", []string{"CAP_IPC_LOCK"}},
	{"ok hugepages", []string{"none is needed"}},
	{"ok pages", []string{"4096"}},
}

func TestExplainPC(t *testing.T) {
	for _, tc := range []struct {
		name, addr string
		set        func(k *tree)
		wants      []wantFinding
	}{
		{"the machine", "", nil, nil},
		{"all is well", nic, nil, []wantFinding{
			{"ok device *", []string{"pci 0000:03:00.0 1f0a:6801 is there, with the driver vfio-pci"}},
			{"ok driver *", nil},
			{"ok group *", []string{"alone in IOMMU group 14"}},
			{"ok node *", []string{"/dev/vfio/14 may be opened", "nobody has it open"}},
			{"ok reserved *", nil},
			{"ok reset *", []string{"flr bus"}},
			{"ok registers *", []string{"base address register 0 has 65536 bytes at 0xfe000000"}},
			{"ok power *", []string{"D0"}},
		}},
		{"not viable", "0000:04:00.0", nil, []wantFinding{
			{"ok device *", nil},
			{"ok driver *", nil},
			{"failure group *", []string{"IOMMU group 15 is not viable: pci 0000:04:00.1 1b21:1242 is with xhci_hcd\n", "`sudo stmmacctl bind pci:0000:04:00.1`"}},
			{"ok node *", nil},
			{"ok reserved *", nil},
			{"ok reset *", nil},
			{"ok registers *", nil},
			{"ok power *", nil},
		}},
		{"in use, and much that is not well", nic, func(k *tree) {
			k.add("proc/200/fd/8 -> /dev/vfio/14\nproc/200/comm: qemu")
			k.add("sys/kernel/iommu_groups/14/reserved_regions: \"0x00000000000e0000 0x00000000000fffff direct-relaxable\\n0x000000007b800000 0x000000007bffffff direct\\n\"")
			k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/reset_method")))
			k.add("sys/bus/pci/devices/" + nic + "/resource: \"0x0000000000000000 0x0000000000000000 0x0000000000000000\\n\"")
			k.add("sys/bus/pci/devices/" + nic + "/power_state: D3cold")
			k.add("sys/bus/pci/devices/" + nic + "/physfn -> ../0000:04:00.0")
			k.add("sys/bus/pci/devices/" + nic + "/driver -> ../../drivers/vfio-pci")
		}, []wantFinding{
			{"ok device *", nil},
			{"ok driver *", nil},
			{"ok group *", nil},
			{"failure node *", []string{"/dev/vfio/14 is in use (EBUSY): it is held by pid 200 (qemu)", "`sudo kill 200`"}},
			{"warning reserved *", []string{"0x7b800000 to 0x7bffffff", "EINVAL", "`sudo dmesg | grep -i '1:1'`"}},
			{"warning reset *", []string{"no way to reset it", "soft reset"}},
			{"failure registers *", []string{"`echo 1 | sudo tee /sys/bus/pci/devices/0000:03:00.0/remove; echo 1 | sudo tee /sys/bus/pci/rescan`"}},
			{"warning power *", []string{"D3cold", "`echo on | sudo tee /sys/bus/pci/devices/0000:03:00.0/power/control`"}},
			{"warning vf *", []string{"virtual function of 0000:04:00.0, which is with vfio-pci", "VF token", "UUID"}},
		}},
		{"with its kernel driver", "enp3s0", func(k *tree) {
			k.join("pci", nic, "dwmac-motorcomm", 14)
			k.add("sys/bus/pci/devices/0000:03:00.0/net/enp3s0/\nsys/class/net/enp3s0/flags: 0x1003")
			k.add("sys/kernel/iommu_groups/14/reserved_regions: \"0x00000000000e0000 0x00000000000fffff direct-relaxable\\n\"")
			k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/reset_method")))
			k.add("sys/bus/pci/devices/" + nic + "/reset:")
			k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/power_state")))
			k.add("sys/bus/pci/devices/" + nic + "/physfn -> ../0000:00:1c.0")
		}, []wantFinding{
			{"ok device *", []string{"with the driver dwmac-motorcomm"}},
			{"failure driver *", []string{
				"kernel driver dwmac-motorcomm", "interface enp3s0", "`sudo ip link set enp3s0 down && sudo stmmacctl bind pci:0000:03:00.0`",
				"`sudo modprobe vfio-pci; echo vfio-pci | sudo tee /sys/bus/pci/devices/0000:03:00.0/driver_override; " +
					"echo 0000:03:00.0 | sudo tee /sys/bus/pci/devices/0000:03:00.0/driver/unbind; echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers_probe`",
			}},
			{"ok group *", nil},
			{"warning reserved *", []string{"0xe0000 to 0xfffff", "VFIO takes that away"}},
			{"ok reset *", nil},
			{"ok registers *", nil},
			{"warning vf *", []string{"if that is given to vfio-pci too"}},
		}},
		{"no such device", "0000:09:00.0", nil, []wantFinding{{"failure device *", []string{"no PCI function at this address", "stmmacctl list"}}}},
		{"two of them", "1f0a:6801", nil, []wantFinding{{"failure device *", []string{"2 devices fit, 0000:03:00.0, 0000:04:00.0", "`stmmacctl list -all`"}}}},
		{"nonsense", "../x", nil, []wantFinding{{"failure device *", []string{`"../x" is no name`}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := debianPC(t, rootProcess)
			if tc.set != nil {
				tc.set(k)
			}
			k.check("amd64", tc.addr, slices.Concat(pcMachine, tc.wants))
		})
	}
}

// TestExplainUser: a user without rights is told which.
func TestExplainUser(t *testing.T) {
	k := debianPC(t, userProcess)
	k.node("dev/vfio/vfio", 0o660, 0, 36)
	k.node("dev/iommu", 0o660, 0, 27)
	k.deny["sys/kernel/security"] = syscall.EACCES
	k.deny["sys/kernel/iommu_groups/14/reserved_regions"] = syscall.EACCES
	k.deny["sys/bus/pci/devices/0000:03:00.0/reset_method"] = syscall.EACCES
	k.deny["proc/200/fd"] = syscall.EACCES
	rule := `SUBSYSTEM=="vfio", GROUP="1000", MODE="0660"`
	machine := slices.Clone(pcMachine)
	machine[5] = wantFinding{"warning lockdown", []string{"permission denied", "`sudo cat /sys/kernel/security/lockdown`"}}
	machine[6] = wantFinding{"warning access", []string{"/dev/vfio/vfio may not be opened: owner 0:36, mode 0660, and this is user 1000 of group 1000", rule, "/etc/udev/rules.d/70-vfio.rules", "udevadm control --reload"}}
	machine = slices.Insert(machine, 7, wantFinding{"ok access", []string{"/dev/iommu may be opened: owner 0:27, mode 0660"}})
	machine[8] = wantFinding{"warning memlock", []string{"8192 KiB of memory may be locked", "64 MiB", "--memlock=67108864:67108864", "\nor give the program CAP_IPC_LOCK", "\nor take a smaller pool"}}
	k.check("amd64", nic, append(machine, []wantFinding{
		{"ok device *", nil},
		{"ok driver *", nil},
		{"ok group *", nil},
		{"failure node *", []string{"/dev/vfio/14 may not be opened: owner 0:0, mode 0600", rule}},
		{"warning reserved *", []string{"permission denied", "sudo cat"}},
		{"warning reset *", []string{"cannot be read"}},
		{"warning reset *", []string{"no way to reset"}},
		{"ok registers *", nil},
		{"ok power *", nil},
	}...))

	// After the udev rule.
	k.node("dev/vfio/14", 0o660, 0, 1000)
	k.node("dev/vfio/vfio", 0o666, 0, 0)
	r, err := explain(k, "amd64", nic)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "node" })
	if f := r.Findings[i]; f.Severity != OK || !strings.Contains(f.Text, "one of 1 processes of others has it open cannot be told") {
		t.Errorf("%+v", f)
	}

	// Nothing at all may be opened.
	k.node("dev/vfio/vfio", 0o660, 0, 36)
	k.node("dev/iommu", 0o600, 0, 0)
	if r, err = explain(k, "amd64", ""); err != nil || !r.Failed() {
		t.Errorf("%v %+v", err, r)
	}
}

// TestExplainNothing: PCs that VFIO was not set up on.
func TestExplainNothing(t *testing.T) {
	const without = "`sudo modprobe vfio enable_unsafe_noiommu_mode=1`"
	tail := []wantFinding{{"ok memlock", nil}, {"ok hugepages", nil}, {"ok pages", nil}}
	for _, tc := range []struct {
		name  string
		text  string
		wants []wantFinding
	}{
		{"off on the command line", "proc/cmdline: amd_iommu=off\nsys/bus/pci/devices/", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", []string{"it is not loaded", "`sudo modprobe vfio-pci`"}},
			{"warning vfio-pci", []string{"it is not loaded", "`sudo modprobe vfio-pci`"}},
			{"failure iommu", []string{"take amd_iommu=off off the kernel's command line", "`sudo grubby --update-kernel=ALL --remove-args=amd_iommu=off`"}},
		}},
		{"Intel, off in the firmware", "proc/cmdline: quiet", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", nil},
			{"failure iommu", []string{"switch VT-d on in the set-up", "intel_iommu=on\"' | sudo tee -a /etc/default/grub && sudo update-grub`"}},
		}},
		{"Intel, on in the firmware", "sys/firmware/acpi/tables/DMAR:", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", nil},
			{"failure iommu", []string{"the firmware has VT-d on", "--args=intel_iommu=on"}},
		}},
		{"AMD", `proc/cpuinfo: "vendor_id: AuthenticAMD\nflags: svm\n"`, []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", nil},
			{"failure iommu", []string{"switch AMD-Vi"}},
		}},
		{"AMD, on in the firmware", `proc/cpuinfo: "vendor_id: AuthenticAMD\nflags: svm\n"` + "\nsys/firmware/acpi/tables/IVRS:", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", nil},
			{"failure iommu", []string{"`sudo dmesg | grep AMD-Vi`"}},
		}},
		{"a virtual machine, and a kernel that says nothing", `proc/cpuinfo: "vendor_id: GenuineIntel\nflags: fpu hypervisor\n"` + "\nproc/sys/kernel/osrelease: 7.3.0\nsys/bus/pci/devices/", []wantFinding{
			{"warning kernel", []string{"kernel 7.3.0", "/boot/config-7.3.0"}},
			{"failure vfio", []string{"cannot be told", "`sudo modprobe vfio-pci`"}},
			{"warning vfio-pci", []string{"cannot be told"}},
			{"failure iommu", []string{"-device intel-iommu,intremap=on`", without}},
		}},
		{"a kernel without VFIO", `boot/config-6.12.0-amd64: "# CONFIG_VFIO is not set\n"` + "\nlib/modules/6.12.0-amd64/modules.dep: kernel/x.ko:", []wantFinding{
			{"failure kernel", []string{"built without VFIO", "CONFIG_VFIO=m and CONFIG_VFIO_PCI=m"}},
			{"failure vfio", []string{"the kernel has no such module", "take a kernel with CONFIG_VFIO=m"}},
			{"failure iommu", nil},
		}},
		{"modules that were not installed", "lib/modules/6.12.0-amd64/modules.dep: kernel/x.ko:\nsys/bus/pci/devices/", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", []string{"the kernel has no such module", "install the modules of kernel 6.12.0-amd64 or take a kernel with CONFIG_VFIO=m"}},
			{"warning vfio-pci", []string{"CONFIG_VFIO_PCI=m"}},
			{"failure iommu", nil},
		}},
		{"a kernel with VFIO that opens nothing", `boot/config-6.12.0-amd64: "CONFIG_VFIO=y\n# CONFIG_VFIO_GROUP is not set\n"` + "\nlib/modules/6.12.0-amd64/modules.builtin: kernel/drivers/vfio/vfio.ko", []wantFinding{
			{"failure kernel", []string{"no way to open a device", "CONFIG_VFIO_DEVICE_CDEV=y and CONFIG_IOMMUFD=m"}},
			{"ok vfio", []string{"part of the kernel"}},
			{"failure iommu", nil},
			{"ok lockdown", nil},
			{"failure access", []string{"neither /dev/vfio/vfio nor /dev/iommu", "`sudo modprobe -a vfio_iommu_type1 iommufd`"}},
		}},
		{"a container", ".dockerenv:\nsys/bus/pci/devices/", []wantFinding{
			{"ok kernel", nil},
			{"failure vfio", []string{"on the host of this container: `sudo modprobe vfio-pci`"}},
			{"warning vfio-pci", []string{"on the host"}},
			{"failure iommu", nil},
			{"ok lockdown", nil},
			{"warning container", []string{"its host has no VFIO"}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newTree(t, debian, rootProcess, tc.text)
			wants := slices.Clone(tc.wants)
			if wants[len(wants)-1].finding == "failure iommu" {
				wants = append(wants, wantFinding{"ok lockdown", nil})
			}
			k.check("amd64", "", append(wants, tail...))
		})
	}
}

// TestExplainSystem only looks: there is nothing to know about the machine of a test.
func TestExplainSystem(t *testing.T) {
	r, err := Explain(System(), "")
	if err != nil || len(r.Findings) == 0 {
		t.Fatal(err)
	}
	devices, err := List(System())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range devices {
		if _, err := Explain(System(), i.Name); err != nil {
			t.Error(err)
		}
	}
	if r, err = Explain(System(), "no-such-device"); err != nil || !r.Failed() {
		t.Errorf("%v, %+v", err, r)
	}
	for _, f := range r.Findings {
		if f.Text == "" || f.Check == "" {
			t.Errorf("%+v", f)
		}
	}
}

// armBoard is an arm64 board with a MAC on the platform bus, behind an SMMU.
func armBoard(t *testing.T, more string) *tree {
	k := newTree(t, `
		proc/self -> 100
		proc/100/fd/0 -> /dev/null
		proc/sys/kernel/osrelease: 7.3.0
		proc/cmdline: console=ttyAMA0 iommu.passthrough=1
		sys/module/vfio/initstate: live
		sys/module/vfio_platform/parameters/reset_required: Y
		sys/bus/platform/drivers/vfio-platform/
		sys/bus/platform/drivers/dwmac-generic/module -> ../../../../module/dwmac_generic
		sys/class/iommu/smmu3.0x0000000002b40000/device/of_node -> ../../../../firmware/devicetree/base/soc/iommu@2b40000
		sys/firmware/devicetree/base/soc/iommu@2b40000/compatible: "arm,smmu-v3\x00"
		sys/firmware/devicetree/base/soc/#address-cells: "\x00\x00\x00\x02"
		sys/firmware/devicetree/base/soc/#size-cells: "\x00\x00\x00\x02"
		sys/firmware/devicetree/base/soc/ethernet@f0804000/compatible: "snps,dwmac-4.20a\x00snps,dwmac\x00"
		sys/firmware/devicetree/base/soc/ethernet@f0804000/clocks: "\x00"
		sys/firmware/devicetree/base/soc/ethernet@f0804000/reg: "\x00\x00\x00\x00\xf0\x80\x40\x00\x00\x00\x00\x00\x00\x00\x20\x00"
		sys/bus/platform/devices/f0804000.ethernet/of_node -> ../../../../firmware/devicetree/base/soc/ethernet@f0804000
		sys/bus/platform/devices/f0804000.ethernet/iommu -> ../../../../class/iommu/smmu3.0x0000000002b40000
		sys/bus/platform/devices/f0804000.ethernet/driver_override: (null)
		sys/kernel/iommu_groups/3/reserved_regions: "0x0000000008000000 0x00000000080fffff msi\n"
	`, rootProcess)
	k.join("platform", mac, "dwmac-generic", 3)
	k.node("dev/vfio/vfio", 0o666, 0, 0)
	k.node("dev/vfio/3", 0o600, 0, 0)
	k.add(more)
	return k
}

var boardMachine = []wantFinding{
	{"warning kernel", nil},
	{"ok vfio", nil},
	{"ok vfio-platform", nil},
	{"ok iommu", []string{"Arm SMMUv3 is on with 1 groups; pass-through is for kernel drivers"}},
	{"ok access", nil},
	{"ok memlock", nil},
	{"ok hugepages", nil},
	{"ok pages", nil},
}

func TestExplainBoard(t *testing.T) {
	const dt = "sys/firmware/devicetree/base/soc/"
	tegra := dt + `ethernet@f0804000/compatible: "nvidia,tegra186-eqos\x00snps,dwc-qos-ethernet-4.10\x00"`
	device := wantFinding{"ok device *", []string{"platform f0804000.ethernet"}}
	bound := "sys/bus/platform/devices/f0804000.ethernet/driver -> ../../drivers/vfio-platform\nsys/module/vfio_platform/parameters/reset_required: N\n"
	head := []wantFinding{device, {"ok driver *", nil}, {"ok group *", nil}, {"ok node *", nil}, {"ok reserved *", nil}, {"ok reset *", []string{"without a reset function"}}}
	for _, tc := range []struct {
		name, more string
		wants      []wantFinding
	}{
		{"with its kernel driver", "", []wantFinding{
			device,
			{"failure driver *", []string{
				"`sudo stmmacctl bind platform:f0804000.ethernet`",
				"`sudo modprobe vfio-platform reset_required=0; echo vfio-platform | sudo tee /sys/bus/platform/devices/f0804000.ethernet/driver_override;",
			}},
			{"ok group *", []string{"IOMMU group 3"}},
			{"ok reserved *", nil},
			{"failure reset *", []string{"reset_required is Y", "`sudo modprobe -r vfio-platform && sudo modprobe vfio-platform reset_required=0`", "/etc/modprobe.d/vfio.conf"}},
			{"warning clocks *", []string{"dwmac-generic switches the clocks", "hangs or aborts", "blacklist dwmac_generic", "--args=clk_ignore_unused"}},
			{"warning coherent *", []string{"not dma-coherent", "EINVAL"}},
			{"ok registers *", []string{"can be mapped"}},
		}},
		{"a driver that is built in", "sys/bus/platform/devices/f0804000.ethernet/driver -> ../../drivers/rk_gmac-dwmac\nsys/bus/platform/drivers/rk_gmac-dwmac/", []wantFinding{
			device,
			{"failure driver *", nil},
			{"ok group *", nil},
			{"ok reserved *", nil},
			{"failure reset *", nil},
			{"warning clocks *", []string{"rk_gmac-dwmac switches", "that has it as a module"}},
			{"warning coherent *", nil},
			{"ok registers *", nil},
		}},
		{"Tegra", tegra, []wantFinding{
			device,
			{"failure driver *", nil},
			{"ok group *", nil},
			{"ok reserved *", nil},
			{"failure reset *", nil},
			{"warning clocks *", nil},
			{"failure coherent *", []string{"Tegra186 (Jetson TX2)", "EINVAL", "dma-coherent to the nodes"}},
			{"ok registers *", nil},
		}},
		{"with VFIO and coherent", bound + dt + "dma-coherent:", append(slices.Clone(head), wantFinding{"ok coherent *", nil}, wantFinding{"ok registers *", nil})},
		{"its bus is coherent and it is not", bound + dt + "dma-coherent:\n" + dt + "ethernet@f0804000/dma-noncoherent:",
			append(slices.Clone(head), wantFinding{"warning coherent *", []string{"that of its IOMMU is", "stmmacctl loopback platform:f0804000.ethernet"}}, wantFinding{"ok registers *", nil})},
		{"half a page of registers", bound + dt + "dma-coherent:\n" + dt + `ethernet@f0804000/reg: "\x00\x00\x00\x00\xf0\x80\x40\x00\x00\x00\x00\x00\x00\x00\x08\x00"`,
			append(slices.Clone(head), wantFinding{"ok coherent *", nil}, wantFinding{"warning registers *", []string{"0x800 bytes at bus address 0xf0804000", "system calls"}})},
		{"a MAC that has a reset", "sys/firmware/devicetree/base/soc/ethernet@f0804000/compatible: \"amd,xgbe-seattle-v1a\\x00\"\nsys/firmware/devicetree/base/soc/dma-coherent:\n" +
			"sys/bus/platform/devices/f0804000.ethernet/driver -> ../../drivers/vfio-platform",
			append(slices.Clone(head[:5]), wantFinding{"ok reset *", []string{"has a reset function"}}, wantFinding{"ok coherent *", nil}, wantFinding{"ok registers *", nil})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := armBoard(t, tc.more)
			k.check("arm64", mac, slices.Concat(boardMachine, tc.wants))
		})
	}
	t.Run("pages of 64 KiB", func(t *testing.T) {
		k := armBoard(t, bound+dt+"dma-coherent:")
		k.page = 64 << 10
		machine := slices.Clone(boardMachine)
		machine[len(machine)-1] = wantFinding{"warning pages", []string{"64 KiB", "CONFIG_ARM64_4K_PAGES=y"}}
		k.check("arm64", mac, slices.Concat(machine, head, []wantFinding{{"ok coherent *", nil}, {"warning registers *", []string{"0x2000 bytes", "0x10000"}}}))
	})
	t.Run("riscv64", func(t *testing.T) {
		k := armBoard(t, "")
		k.must(os.RemoveAll(k.Path("sys/bus/platform/drivers/vfio-platform")))
		r, err := explain(k, "riscv64", mac)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []struct{ check, says string }{{"arch", "no type1"}, {"vfio-platform", "arm and arm64 alone"}, {"coherent", "coherent with the caches"}} {
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == w.check })
			if i < 0 || !strings.Contains(r.Findings[i].Text, w.says) {
				t.Errorf("no %q: %+v", w.says, r.Findings)
			}
		}
	})
}

// TestExplainNoIOMMU is a machine without an IOMMU on which the mode was switched on.
func TestExplainNoIOMMU(t *testing.T) {
	k := newTree(t, debian, withVFIO, `
		proc/cmdline: quiet
		sys/module/vfio/parameters/enable_unsafe_noiommu_mode: Y
		sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts: Y
		sys/kernel/security/lockdown: none [integrity] confidentiality
	`, rootProcess)
	k.pci(nic, "1f0a:6801", "020000", "vfio-pci", 0)
	k.add("sys/kernel/iommu_groups/0/name: vfio-noiommu")
	k.node("dev/vfio/vfio", 0o666, 0, 0)
	k.node("dev/vfio/noiommu-0", 0o600, 0, 0)
	machine := []wantFinding{
		{"ok kernel", nil},
		{"ok vfio", nil},
		{"ok vfio-pci", nil},
		{"warning iommu", []string{"noiommu mode alone", "switch VT-d on"}},
		{"warning noiommu", []string{"reading and overwriting all memory", "tainted"}},
		{"warning interrupts", []string{"any interrupt of the machine"}},
		{"warning lockdown", []string{"(integrity)", "noiommu mode may be", "Secure Boot"}},
		{"ok access", nil},
		{"ok memlock", nil},
		{"failure hugepages", []string{"of 2048 kB is free", "`sudo sysctl vm.nr_hugepages=64`"}},
		{"ok pages", nil},
	}
	device := []wantFinding{
		{"ok device *", nil},
		{"ok driver *", nil},
		{"warning group *", []string{"noiommu mode: no IOMMU is between"}},
		{"ok node *", []string{"/dev/vfio/noiommu-0 may be opened"}},
		{"ok reset *", nil},
		{"ok registers *", nil},
		{"ok power *", nil},
	}
	k.check("amd64", nic, slices.Concat(machine, device))
	// Those of another size are not used.
	k.add("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages: 1")
	k.check("amd64", nic, slices.Concat(machine, device))

	k.add("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages: 5\nsys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages: 1")
	k.add(userProcess)
	machine[9] = wantFinding{"ok hugepages", []string{"1 of 1048576kB, 5 of 2048kB"}}
	machine[8] = wantFinding{"warning memlock", nil}
	machine = slices.Insert(machine, 5, wantFinding{"failure noiommu", []string{"lacks CAP_SYS_RAWIO and CAP_SYS_ADMIN"}})
	device[3] = wantFinding{"failure node *", []string{"may not be opened"}}
	k.check("amd64", nic, slices.Concat(machine, device))
}

// TestExplainHugepages: hugepages are needed by devices that no IOMMU is behind, also beside
// others that one is behind.
func TestExplainHugepages(t *testing.T) {
	for _, tc := range []struct {
		name, dev string
		group     string // of the NIC: its name
		want      Severity
		says      string
	}{
		{"the machine", "", "vfio-noiommu", Warning, "no memory for a device that no IOMMU is behind"},
		{"a device without", nic, "vfio-noiommu", Failure, "no hugepage of 2048 kB is free"},
		{"a device behind", nic, "", OK, "none is needed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := debianPC(t, rootProcess)
			k.add("sys/module/vfio/parameters/enable_unsafe_noiommu_mode: Y\nsys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages: 0")
			if tc.group != "" {
				k.add("sys/kernel/iommu_groups/14/name: " + tc.group)
			}
			r, err := explain(k, "amd64", tc.dev)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "hugepages" })
			if i < 0 || r.Findings[i].Severity != tc.want || !strings.Contains(r.Findings[i].Text, tc.says) {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

// TestExplainContainer is a container on the PC that was given nothing, and then the
// container's node alone.
func TestExplainContainer(t *testing.T) {
	k := debianPC(t, rootProcess)
	k.add("proc/100/uid_map: 0 100000 65536\nrun/.containerenv:")
	k.must(os.RemoveAll(k.Path("dev/vfio")))
	machine := slices.Clone(pcMachine)
	machine[6] = wantFinding{"failure container", []string{"(podman)", "`podman run --device /dev/vfio/vfio --device /dev/vfio/GROUP --ulimit memlock=-1 --cap-add IPC_LOCK IMAGE`"}}
	machine[7] = wantFinding{"warning memlock", nil} // root of the container alone
	tail := []wantFinding{
		{"ok device *", nil},
		{"ok driver *", nil},
		{"ok group *", nil},
		{"failure node *", []string{"/dev/vfio/14 is not in the container", "--device /dev/vfio/14"}},
		{"ok reserved *", nil},
		{"ok reset *", nil},
		{"ok registers *", nil},
		{"ok power *", nil},
	}
	k.check("amd64", nic, slices.Concat(machine, tail))

	k.node("dev/vfio/vfio", 0o666, 65534, 65534)
	machine[6] = wantFinding{"ok container", nil}
	machine = slices.Insert(machine, 7, wantFinding{"ok access", nil})
	k.check("amd64", nic, slices.Concat(machine, tail))

	k.node("dev/vfio/14", 0o600, 65534, 65534)
	tail[3] = wantFinding{"failure node *", []string{"container with users of its own"}}
	k.check("amd64", nic, slices.Concat(machine, tail))
}

func TestReadContainer(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"proc/1/cgroup: 0::/", ""},
		{".dockerenv:", "docker"},
		{"run/.containerenv:", "podman"},
		{"proc/1/cgroup: 0::/kubepods.slice/cri-containerd-1.scope", "kubepods"},
		{"proc/self/cgroup: 4:devices:/lxc/x", "lxc"},
	} {
		if got := readContainer(newTree(t, tc.text).FS()); got != tc.want {
			t.Errorf("%s: %q", tc.text, got)
		}
	}
}

// TestInterrupts: the ways in which interrupts are not remapped.
func TestInterrupts(t *testing.T) {
	for _, tc := range []struct {
		text, deny string
		severity   Severity
		says       string
	}{
		{"", "", OK, "remapped"},
		{`proc/interrupts: " 16: 0 PCI-MSI 1-edge\n"`, "", Warning, "x2APIC"},
		{"proc/cmdline: intremap=off", "", Failure, "--remove-args=intremap=off"},
		{"sys/module/iommufd/parameters/allow_unsafe_interrupts: Y", "", Warning, "of iommufd is on"},
		{"", "proc/interrupts", Warning, "sudo cat /proc/interrupts"},
	} {
		k := debianPC(t, rootProcess)
		k.add(tc.text)
		if tc.deny != "" {
			k.deny[tc.deny] = syscall.EACCES
		}
		r, err := explain(k, "amd64", "")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "interrupts" })
		if f := r.Findings[i]; f.Severity != tc.severity || !strings.Contains(f.Text+f.Remedy, tc.says) {
			t.Errorf("%q: %+v", tc.text, f)
		}
	}
}

// TestGroupless: devices that no IOMMU is behind, and nodes that are not there.
func TestGroupless(t *testing.T) {
	for _, tc := range []struct {
		name  string
		set   func(k *tree)
		check string
		want  Severity
		says  string
	}{
		{"beside others", func(k *tree) { k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/iommu_group"))) }, "group", Failure, "though there are 2"},
		{"with a node of its own", func(k *tree) {
			k.must(os.Remove(k.Path("dev/vfio/14")))
			k.add("sys/bus/pci/devices/" + nic + "/vfio-dev/vfio7/dev: 511:7")
			k.node("dev/vfio/devices/vfio7", 0o600, 0, 0)
		}, "node", OK, "/dev/vfio/devices/vfio7"},
		{"with a node that is of no use", func(k *tree) {
			k.add("sys/bus/pci/devices/" + nic + "/vfio-dev/vfio7/dev: 244:7")
			k.node("dev/vfio/devices/vfio7", 0o666, 0, 0)
			k.node("dev/iommu", 0o600, 0, 0)
			k.add(userProcess)
		}, "node", Failure, "of no use without /dev/iommu"},
		{"without a node", func(k *tree) { k.must(os.Remove(k.Path("dev/vfio/14"))) }, "node", Failure, "udevadm trigger"},
		{"without any", func(k *tree) { k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/iommu_group"))) }, "node", Failure, "dmesg"},
		{"members unknown", func(k *tree) { k.deny["sys/kernel/iommu_groups/14/devices"] = syscall.EACCES }, "group", Warning, "sudo ls /sys/kernel/iommu_groups/14/devices"},
		{"this is nobody", func(k *tree) { k.deny["proc/self/status"] = syscall.EACCES }, "node", Warning, "ls -l /dev/vfio/14; id"},
		{"no limits", func(k *tree) { k.deny["proc/self/limits"] = syscall.EACCES }, "memlock", Warning, "mount proc"},
		{"a closed directory", func(k *tree) { k.deny["dev/vfio"] = syscall.EACCES }, "node", Failure, "its directory is closed"},
		{"the only group gone", func(k *tree) {
			k.must(os.RemoveAll(k.Path("sys/kernel/iommu_groups")))
			k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/iommu_group")))
		}, "group", Failure, "because no IOMMU is on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := debianPC(t, rootProcess)
			tc.set(k)
			r, err := explain(k, "amd64", nic)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == tc.check })
			if f := r.Findings[i]; f.Severity != tc.want || !strings.Contains(f.Text+f.Remedy, tc.says) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestOneFinding: what differs in one finding alone.
func TestOneFinding(t *testing.T) {
	status := func(caps string) string { return strings.Replace(rootProcess, "000001ffffffffff", caps, 1) }
	limit := func(bytes string) string { return strings.ReplaceAll(userProcess, "8388608 ", bytes+" ") }
	noiommu := "sys/module/vfio/parameters/enable_unsafe_noiommu_mode: "
	for _, tc := range []struct {
		name, arch, text string
		check            string
		severity         Severity
		says             string
	}{
		{"an IOMMU without a maker", "arm64", "sys/class/iommu/10b0000.iommu/", "iommu", OK, "an IOMMU is on"},
		{"locked down", "amd64", "sys/kernel/security/lockdown: none integrity [confidentiality]", "lockdown", OK, "(confidentiality), which allows VFIO"},
		{"without limit", "amd64", limit("unlimited"), "memlock", OK, "without limit"},
		{"a high limit", "amd64", limit("1073741824"), "memlock", OK, "1024 MiB of memory may be locked, and 0 are"},
		{"a limit that is none", "amd64", limit("many"), "memlock", Warning, "`cat /proc/self/limits`"},
		{"noiommu off", "amd64", noiommu + "N", "noiommu", OK, "off"},
		{"noiommu, and bus addresses hidden", "amd64", noiommu + "Y\n" + status("0000000000020000"), "noiommu", Warning, "/proc/self/pagemap"},
		{"root without rights", "amd64", status("0000000000000000"), "access", OK, "/dev/vfio/vfio"},
		{"32 bits", "arm", "", "arch", Warning, "32 bits (arm)"},
		{"loong64", "loong64", "", "arch", Warning, "CONFIG_IOMMUFD=m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := debianPC(t, rootProcess)
			k.add(tc.text)
			r, err := explain(k, tc.arch, "")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Check == tc.check && f.Severity == tc.severity && strings.Contains(f.Text+f.Remedy, tc.says)
			}) {
				t.Errorf("no %v %s with %q: %+v", tc.severity, tc.check, tc.says, r.Findings)
			}
		})
	}
}

// TestSwitchOn: where there is an IOMMU to be found.
func TestSwitchOn(t *testing.T) {
	for _, tc := range []struct{ arch, text, says string }{
		{"amd64", "proc/cpuinfo: x", "switch the IOMMU on in the set-up"},
		{"arm64", "proc/cpuinfo: x", "CONFIG_ARM_SMMU_V3=y"},
		{"riscv64", "proc/cpuinfo: x", "if the machine has one"},
	} {
		k := newTree(t, debian, rootProcess, tc.text)
		r, err := explain(k, tc.arch, "")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "iommu" })
		if f := r.Findings[i]; f.Severity != Failure || !strings.Contains(f.Remedy, tc.says) {
			t.Errorf("%s: %+v", tc.arch, f)
		}
	}
}

// TestOffenders: who keeps VFIO from a group.
func TestOffenders(t *testing.T) {
	for _, tc := range []struct {
		driver string
		class  uint32
		want   bool
	}{
		{"", 0x020000, false}, {"vfio-pci", 0x020000, false}, {"pci-stub", 0x030000, false}, {"pcieport", 0x060400, false}, {"", 0x060400, false},
		{"r8169", 0x020000, true}, {"uio_pci_generic", 0x020000, true}, {"lpc_ich", 0x060100, true}, {"shpchp", 0x060400, true},
		{"mlx5_vfio_pci", 0x020000, false}, {"pds-vfio-pci", 0x020000, false}, {"vfio-platform", 0, false},
	} {
		m := []Info{{Bus: PCI, Name: "a", Driver: "r8169"}, {Bus: PCI, Name: "b", Driver: tc.driver, Class: tc.class}}
		if bad := offenders(m, &m[0]); (len(bad) == 1) != tc.want {
			t.Errorf("%s of class %06x: %v", tc.driver, tc.class, bad)
		}
	}
}

// nowhere is a kernel without files.
type nowhere struct{ Kernel }

func (nowhere) FS() fs.FS { return noFiles{} }

type noFiles struct{}

func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

func TestExplainNowhere(t *testing.T) {
	_, err := Explain(nowhere{}, "x")
	errorSays(t, err, errors.ErrUnsupported, "vfio x: explain")
}

func TestReportJSON(t *testing.T) {
	r := Report{[]Finding{{Failure, "group", nic, "bad", "do"}, {OK, "vfio", "", "good", ""}}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"findings":[{"severity":"failure","check":"group","device":"0000:03:00.0","text":"bad","remedy":"do"},{"severity":"ok","check":"vfio","text":"good"}]}`
	if string(b) != text {
		t.Errorf("%s", b)
	}
	var again Report
	if err := json.Unmarshal(b, &again); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(r, again); d != "" {
		t.Error(d)
	}
	var s Severity
	if err := s.UnmarshalText([]byte("worse")); !errors.Is(err, os.ErrInvalid) {
		t.Error(err)
	}
	for s, want := range map[Severity]string{Warning: "warning", -1: "severity -1", 3: "severity 3"} {
		if s.String() != want {
			t.Errorf("%d: %s", int(s), s)
		}
	}
}

// TestRemediesQuoted: a command in back quotes is one, and quotes are in pairs.
func TestRemediesQuoted(t *testing.T) {
	for _, k := range []*tree{debianPC(t, userProcess), armBoard(t, ""), newTree(t, debian, userProcess)} {
		for _, addr := range []string{"", nic, mac} {
			r, err := explain(k, "amd64", addr)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				for line := range strings.Lines(f.Remedy) {
					if strings.Count(line, "`")%2 != 0 || strings.Contains(line, "%!") {
						t.Errorf("%s: %s", f.Check, line)
					}
				}
			}
		}
	}
}
