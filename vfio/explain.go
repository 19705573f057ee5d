package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Severity says what a [Finding] means.
type Severity int

// Severities, the worst last.
const (
	OK      Severity = iota
	Warning          // it works, but not as well or not for everybody; or it cannot be told
	Failure          // a device cannot be opened
)

// severities are the names of the severities.
var severities = [...]string{OK: "ok", Warning: "warning", Failure: "failure"}

// String returns "ok", "warning" or "failure".
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severities) {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severities[s]
}

// MarshalText implements encoding.TextMarshaler; the text is that of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its error wraps os.ErrInvalid.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is no severity: %w", text, os.ErrInvalid)
	}
	*s = Severity(i)
	return nil
}

// Finding is one thing that was looked at.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is what was looked at, a short name that stays the same: "iommu", "group",
	// "driver", "memlock".
	Check string `json:"check"`
	// Dev is the device, or "" for the machine.
	Dev  string `json:"device,omitempty"`
	Text string `json:"text"`
	// Remedy says what to do about it, each way on a line of its own, with commands
	// in back quotes; "" for nothing.
	Remedy string `json:"remedy,omitempty"`
}

// Report is what [Explain] found, the machine first.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Failed says that a finding is a Failure.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Failure })
}

// Explain says what keeps the device that [Lookup] finds by the name addr from being
// opened with VFIO by this process, and what to do about it; with the name "", what
// keeps any device. It only reads files, opens no device and needs no rights: what it
// may not read is a Warning. Permissions are those of mode and owner, without access
// control lists and security modules.
//
// A device that is not found is a Failure in the report. The error is that there is
// nothing to read; it wraps errors.ErrUnsupported where the system is not Linux.
func Explain(k Kernel, addr string) (Report, error) { return explain(k, runtime.GOARCH, addr) }

// explain is Explain on a processor by its GOARCH.
func explain(k Kernel, arch, addr string) (Report, error) {
	if _, err := fs.Stat(k.FS(), "."); err != nil {
		return Report{}, &Error{Op: "explain", Dev: addr, Err: err}
	}
	x := &examiner{k: k, arch: arch}
	var i Info
	var err error
	if addr != "" {
		if i, err = Lookup(k, addr); err == nil {
			x.bus = i.Bus
			x.exposed = i.Group < 0 || i.NoIOMMU()
		}
	}
	x.learn()
	x.machine()
	switch {
	case addr == "":
	case err != nil:
		x.dev = addr
		x.lookupFailed(err)
	default:
		x.dev = i.Name
		x.device(&i)
	}
	return Report{x.findings}, nil
}

// examiner makes a report.
type examiner struct {
	k    Kernel
	arch string // GOARCH
	dev  string // the device that the findings are of, "" for the machine
	bus  Bus    // of the device that was asked for, "" for none
	// exposed says that no IOMMU is behind that device.
	exposed bool
	facts
	hasVFIO  bool // as the finding "vfio" says
	shared   bool // one of the nodes that all devices share may be opened
	findings []Finding
}

// facts are what several checks need to know.
type facts struct {
	release   string        // of the kernel
	modules   moduleList    // what there is on disk
	options   kernelOptions // what the kernel was built with
	params    []string      // the command line of the kernel
	self      process
	groups    int      // IOMMU groups that an IOMMU is behind
	units     []string // IOMMUs
	noiommu   bool     // noiommu mode is on
	container string   // the kind of container that this is, or ""
	nested    bool     // the machine is virtual
	vendor    string   // of the processor, on x86
}

// learn reads the facts.
func (x *examiner) learn() {
	fsys := x.k.FS()
	x.release, _ = attribute(fsys, "proc/sys/kernel/osrelease")
	x.modules = readModules(fsys, x.release)
	x.options = readOptions(fsys, x.release)
	cmdline, _ := attribute(fsys, "proc/cmdline")
	x.params = strings.Fields(cmdline)
	x.self = readProcess(x.k)
	x.units = names(fsys, "sys/class/iommu")
	for _, g := range names(fsys, "sys/kernel/iommu_groups") {
		if name, _ := attribute(fsys, "sys/kernel/iommu_groups/"+g+"/name"); name != noiommuGroup {
			x.groups++
		}
	}
	mode, _ := attribute(fsys, noiommuParameter)
	x.noiommu = mode == "Y"
	x.container = readContainer(fsys)
	cpu, _ := fs.ReadFile(fsys, "proc/cpuinfo")
	x.vendor, x.nested = parseCPU(string(cpu))
}

// machine makes the findings of the machine.
func (x *examiner) machine() {
	x.kernel()
	x.core()
	x.architecture()
	x.busDrivers()
	x.iommu()
	x.noIOMMU()
	x.interrupts()
	x.lockdown()
	x.inContainer()
	x.access()
	x.memlock()
	x.hugepages()
	x.pages()
}

// device makes the findings of a device.
func (x *examiner) device(i *Info) {
	x.found(i)
	x.driver(i)
	x.group(i)
	x.node(i)
	x.reserved(i)
	if i.Bus == PCI {
		x.pci(i)
	} else {
		x.platform(i)
	}
}

func (x *examiner) add(s Severity, check, remedy, text string) {
	x.findings = append(x.findings, Finding{Severity: s, Check: check, Dev: x.dev, Text: text, Remedy: remedy})
}

func (x *examiner) ok(check, format string, args ...any) {
	x.add(OK, check, "", fmt.Sprintf(format, args...))
}

func (x *examiner) warn(check, remedy, format string, args ...any) {
	x.add(Warning, check, remedy, fmt.Sprintf(format, args...))
}

func (x *examiner) fail(check, remedy, format string, args ...any) {
	x.add(Failure, check, remedy, fmt.Sprintf(format, args...))
}

// read reads a file of one line. It adds a finding if there is such a file and it may
// not be read.
func (x *examiner) read(check, name string) (text string, ok bool) {
	text, err := attribute(x.k.FS(), name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.warn(check, "look as root: `sudo cat /"+name+"`", "/%s cannot be read: %v", name, withoutPath(err))
	}
	return text, err == nil
}

// listed says that a kernel parameter was given on the command line.
func (x *examiner) listed(param string) bool { return slices.Contains(x.params, param) }
