package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// Config says what is booted.
type Config struct {
	// Tree has QEMU. It must be given.
	Tree *debian.Tree
	// Kernel decides the architecture. It must be given.
	Kernel *kernel.Kernel
	// Dir is a folder for the initrd, the logs and what else is made; it must be there.
	// Two guests that run at a time have two.
	Dir string
	// Modules are put into the guest; Guest.Load loads them. No two have one name.
	Modules []kernel.Module
	// Programs are files of this machine by their names in the guest's folder /bin. They need
	// no libraries; see Build.
	Programs map[string]string
	// Init is the program of the folder init for this architecture; "" builds it in Dir.
	Init string
	// MiB is the memory, 0 the default of the architecture: 512 and 1024.
	MiB int
	// Processors is their number, 0 is one. The board npcm845-evb is described with one.
	Processors int
	// IOMMU gives a PC an Intel IOMMU that remaps DMA and interrupts. Devices behind it see
	// bus addresses that the guest's kernel chose.
	IOMMU bool
	// Devices are values of QEMU's option -device; see VFIOUser. A board has none.
	Devices []string
	// Args are other arguments of QEMU; see BackToBack.
	Args []string
	// Files are passed to QEMU as the descriptors 5, 6, and so on. They stay open here.
	Files []*os.File
	// CommandLine is added to the kernel's command line.
	CommandLine string
	// DeviceTree is the source of the board's device tree; "" is that of two GMACs.
	DeviceTree string
	// Log gets the lines that jobs write, with their names; nil drops them. It is called by
	// one goroutine.
	Log func(job, line string)
}

// Descriptors of QEMU.
const (
	fdConsole = 3
	fdLine    = 4
	fdFiles   = 5
)

// board is what an architecture has.
type board struct {
	processor string // QEMU's name
	qemu      string // the package that has it
	goarch    string
	mib       int
	machine   func(c Config) []string
	// commandLine is for the kernel: the console, what makes a slow emulation good enough,
	// and what saves time.
	commandLine string
	tree        bool // it needs a device tree
}

// lineDevice is the serial line to the rig, as the guest names it on both boards.
const lineDevice = "ttyS1"

// common is for every kernel: an oops in a driver is a panic, because the process that it
// hits may be the only one, and a panic ends QEMU.
const common = " panic=-1 oops=panic gostmmac.line=" + lineDevice

func boardOf(arch string) (board, error) {
	switch arch {
	case "amd64":
		return board{"x86_64", debian.QEMUX86, "amd64", 512, pc,
			// A loaded machine lets timers look broken, and the TSC seem to have another rate: a
			// kernel that took 2300 MHz for 103 had a clock that was 22 times too fast, and waited
			// in vain for everything.
			"console=ttyS0 no_timer_check tsc=unstable clocksource=hpet mitigations=off nokaslr audit=0 cryptomgr.notests" + common, false}, nil
	case "arm64":
		return board{"aarch64", debian.QEMUArm, "arm64", 1024, npcm845,
			"console=ttyS0,115200 earlycon=uart8250,mmio32,0xf0000000 nokaslr audit=0 cryptomgr.notests" + common, true}, nil
	}
	return board{}, fmt.Errorf("%w: a kernel for %q", ErrConfig, arch)
}

// pc are the arguments of the PC. Its RAM is a memfd so that a device in another process can
// map it.
func pc(c Config) []string {
	args := []string{
		"-object", fmt.Sprintf("memory-backend-memfd,id=ram,size=%dM,share=on", c.MiB), "-machine", "q35,memory-backend=ram",
		"-accel", "tcg,thread=multi", "-cpu", "qemu64", "-smp", fmt.Sprint(c.Processors), "-m", fmt.Sprintf("%dM", c.MiB),
	}
	if c.IOMMU {
		// Without the caching mode a device behind it is not told of mappings.
		args = append(args, "-device", "intel-iommu,intremap=on,caching-mode=on")
	}
	return args
}

// npcm845 are the arguments of the board. QEMU puts the board's boot ROM and the code that
// starts a kernel both at address 0, where the ROM wins: an empty one leaves the other.
func npcm845(c Config) []string {
	return []string{"-machine", "npcm845-evb", "-m", fmt.Sprintf("%dM", c.MiB), "-bios", os.DevNull}
}

// complete checks the configuration and fills in what is left out.
func (c *Config) complete() (board, error) {
	if c.Tree == nil || c.Kernel == nil || c.Dir == "" {
		return board{}, fmt.Errorf("%w: Tree, Kernel and Dir have to be given", ErrConfig)
	}
	b, err := boardOf(c.Kernel.Arch)
	if err != nil {
		return board{}, err
	}
	if c.MiB == 0 {
		c.MiB = b.mib
	}
	if c.Processors == 0 {
		c.Processors = 1
	}
	const most = 16 << 10
	switch {
	case c.MiB < 128 || c.MiB > most:
		return board{}, fmt.Errorf("%w: %d MiB of memory are not 128 to %d", ErrConfig, c.MiB, most)
	case c.Processors < 1 || c.Processors > 16:
		return board{}, fmt.Errorf("%w: %d processors are not 1 to 16", ErrConfig, c.Processors)
	case b.tree && (c.IOMMU || c.Processors > 1 || len(c.Devices) > 0):
		return board{}, fmt.Errorf("%w: the board has one processor, no IOMMU and no place for devices", ErrConfig)
	case !b.tree && c.DeviceTree != "":
		return board{}, fmt.Errorf("%w: a PC has no device tree", ErrConfig)
	case slices.Contains(c.Files, nil):
		return board{}, fmt.Errorf("%w: one of Files is nil", ErrConfig)
	}
	return b, c.Tree.Has(b.qemu)
}

// args are the arguments of QEMU.
func (c *Config) args(b board, initrd, dtb string) []string {
	line := b.commandLine
	if c.IOMMU {
		line += " intel_iommu=on"
	}
	if c.CommandLine != "" {
		line += " " + c.CommandLine
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "none",
		"-chardev", fmt.Sprintf("socket,id=console,fd=%d", fdConsole), "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=line,fd=%d", fdLine), "-serial", "chardev:line",
	}
	args = append(args, b.machine(*c)...)
	for _, d := range c.Devices {
		args = append(args, "-device", d)
	}
	args = append(args, c.Args...)
	args = append(args, "-kernel", c.Kernel.Image(), "-initrd", initrd, "-append", line)
	if dtb != "" {
		args = append(args, "-dtb", dtb)
	}
	return args
}

// VFIOUser is the device that a vfio-user server shows at a socket, for Config.Devices: slot
// 1 to 30 of the PCI bus, function 0. A busy machine may let the server take long, so QEMU
// waits for it a minute for each message. Writes are not posted, but have arrived when the
// driver goes on: of one that waits in QEMU its end is seen late, and a driver whose time to
// poll for that ran out meanwhile gives up (Linux's iopoll.h reads once more then; an MDIO
// transaction failed so for good).
func VFIOUser(socket string, slot int) string {
	b, err := json.Marshal(map[string]any{
		"driver": "vfio-user-pci", "socket": map[string]string{"type": "unix", "path": socket}, "x-msg-timeout": 60_000,
		"x-no-posted-writes": true, "addr": fmt.Sprintf("%x", slot),
	})
	if err != nil {
		return "" // there is nothing that JSON cannot say
	}
	return string(b)
}

// BackToBack joins the first two GMACs of npcm845-evb by a cable, for Config.Args.
func BackToBack() []string {
	var args []string
	for _, id := range []string{"cable0", "cable1"} {
		args = append(args, "-netdev", "hubport,hubid=1,id="+id, "-net", "nic,model=npcm-gmac,netdev="+id)
	}
	return args
}
