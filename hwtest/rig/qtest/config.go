package qtest

import (
	"fmt"
	"net"
	"time"
)

// Machines whose GMACs can be had. QEMU has them from version 11 on, together with
// the qtest accelerator in Debian's packages.
const (
	NPCM845 = "npcm845-evb" // four GMACs
	NPCM750 = "npcm750-evb" // two
)

// Config says what to start. The zero value of a field that has a default means
// the default.
type Config struct {
	// Command is QEMU for arm64 (qemu-system-aarch64): the program and the
	// arguments that go before all others, such as a dynamic loader and -L. It
	// must be given.
	Command []string
	// Env is added to the environment of this process, for example
	// QEMU_MODULE_DIR.
	Env []string
	// Machine is NPCM845 (default) or NPCM750.
	Machine string
	// NIC is the number of the GMAC, 0 to 3 on NPCM845 and 0 to 1 on NPCM750.
	NIC int
	// RAM is the memory of the board in bytes: 128, 256, 512 (default) or 1024
	// MiB. It takes room only where it is written.
	RAM int64
	// Addr is the MAC address that QEMU is told; the model does not filter by
	// it. The default is locally administered.
	Addr net.HardwareAddr
	// Log is the file that gets what QEMU writes to stdout and stderr. It is
	// truncated. "" keeps nothing but what an error shows.
	Log string
	// Timeout is how long QEMU may take to answer one request before it is
	// taken for dead; default one minute. It is a guard against a hang, so it
	// is generous: a busy machine is slow.
	Timeout time.Duration
	// Args go behind all other arguments, for example -trace.
	Args []string
}

// board is what is known of a machine: QEMU's hw/arm/npcm8xx.c and npcm7xx.c.
type board struct {
	nics int
}

func boards(name string) (board, bool) {
	switch name {
	case NPCM845:
		return board{nics: 4}, true
	case NPCM750:
		return board{nics: 2}, true
	}
	return board{}, false
}

const (
	// regBase and regStride are where the registers of the GMACs lie in the
	// board's address space; regSize is the part of each that is modelled.
	regBase   = 0xf080_2000
	regStride = 0x2000
	regSize   = 0x2000

	// lowestDMA is where the memory for DMA starts: below lie the boot ROM's
	// vectors and, with an accelerator that runs code, the program.
	lowestDMA = 1 << 20

	mib = 1 << 20
)

// complete fills in the defaults and checks the rest.
func (c *Config) complete() error {
	if c.Machine == "" {
		c.Machine = NPCM845
	}
	if c.RAM == 0 {
		c.RAM = 512 * mib
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.Addr == nil {
		c.Addr = net.HardwareAddr{2, 0, 0, 0, 0, byte(c.NIC)}
	}
	b, known := boards(c.Machine)
	switch {
	case len(c.Command) == 0:
		return fmt.Errorf("%w: Command is empty: name QEMU for arm64", ErrConfig)
	case !known:
		return fmt.Errorf("%w: machine %q: there are %s and %s", ErrConfig, c.Machine, NPCM845, NPCM750)
	case c.NIC < 0 || c.NIC >= b.nics:
		return fmt.Errorf("%w: NIC %d: %s has 0 to %d", ErrConfig, c.NIC, c.Machine, b.nics-1)
	case c.RAM != 128*mib && c.RAM != 256*mib && c.RAM != 512*mib && c.RAM != 1024*mib:
		return fmt.Errorf("%w: RAM of %d bytes: 128, 256, 512 and 1024 MiB are possible", ErrConfig, c.RAM)
	case c.Timeout < 0:
		return fmt.Errorf("%w: timeout %v is negative", ErrConfig, c.Timeout)
	case len(c.Addr) != 6:
		return fmt.Errorf("%w: MAC address %v: six bytes are needed", ErrConfig, c.Addr)
	}
	return nil
}

// dev names the MAC in errors.
func (c *Config) dev() string { return fmt.Sprintf("%s/gmac%d", c.Machine, c.NIC) }

// Path is the name of the MAC in QEMU's object tree.
func (c *Config) Path() string { return fmt.Sprintf("/machine/soc/gmac[%d]", c.NIC) }

// netdev is the name of the cable of the MAC.
func (c *Config) netdev() string { return fmt.Sprintf("n%d", c.NIC) }

// Files that QEMU inherits, in the order of exec.Cmd.ExtraFiles.
const (
	fdControl = 3 + iota // qtest socket
	fdRAM                // memfd
	fdWire               // datagram socket
	fdMonitor            // QMP socket
	fdEnd
)

// args is the command line behind Command.
func (c *Config) args() []string {
	a := []string{
		"-machine", c.Machine + ",memory-backend=ram0",
		"-m", fmt.Sprintf("%dM", c.RAM/mib),
		"-object", fmt.Sprintf("memory-backend-file,id=ram0,size=%d,mem-path=/proc/self/fd/%d,share=on", c.RAM, fdRAM),
		"-display", "none", "-nodefaults", "-serial", "null",
		// With -S, or without the log turned off, frames would wait for ever
		// or every access be written to stderr.
		"-chardev", fmt.Sprintf("socket,id=qt,fd=%d", fdControl),
		"-qtest", "chardev:qt", "-qtest-log", "none", "-accel", "qtest",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", fdMonitor), "-mon", "chardev=qmp,mode=control",
	}
	// QEMU hands NICs out in order, so those before ours get one without a cable.
	for i := range c.NIC {
		a = append(a, "-netdev", fmt.Sprintf("hubport,id=n%d,hubid=%d", i, i),
			"-net", fmt.Sprintf("nic,netdev=n%d,model=npcm-gmac", i))
	}
	a = append(a,
		"-netdev", fmt.Sprintf("dgram,id=%s,local.type=fd,local.str=%d", c.netdev(), fdWire),
		"-net", fmt.Sprintf("nic,netdev=%s,model=npcm-gmac,macaddr=%s", c.netdev(), c.Addr))
	return append(a, c.Args...)
}
