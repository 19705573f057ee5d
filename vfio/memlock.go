package vfio

import (
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Capabilities of a process, as bits of CapEff (linux/capability.h).
const (
	capDACOverride = 1 << 1
	capIPCLock     = 1 << 14
	capSysRawIO    = 1 << 17
	capSysAdmin    = 1 << 21
)

// memlock is what a process may lock of its memory, in bytes.
type memlock struct {
	limit  uint64 // the soft RLIMIT_MEMLOCK; unlimited for none
	locked uint64 // counted by mlock and by mappings of a type1 container
	pinned uint64 // counted by iommufd and others that pin pages
	exempt bool   // CAP_IPC_LOCK: the limit is not looked at
}

const unlimited = math.MaxUint64

// readMemlock reads what this process may lock and has locked. Whoever maps
// memory meanwhile, in whatever goroutine, makes it out of date.
func readMemlock(k Kernel) (memlock, error) {
	limits, err := fs.ReadFile(k.FS(), "proc/self/limits")
	if err != nil {
		return memlock{}, failed("read the limits of the process", err, "mount proc: `sudo mount -t proc proc /proc`")
	}
	status, err := fs.ReadFile(k.FS(), "proc/self/status")
	if err != nil {
		return memlock{}, failed("read the status of the process", err, "mount proc: `sudo mount -t proc proc /proc`")
	}
	m, err := parseMemlock(string(limits), string(status))
	if err != nil {
		return memlock{}, failed("read the limits of the process", err, "see `cat /proc/self/limits`")
	}
	// The kernel asks for the capability in the first user namespace.
	m.exempt = m.exempt && firstUserNamespace(k)
	return m, nil
}

// parseMemlock reads the texts of limits and status of a process below proc.
func parseMemlock(limits, status string) (m memlock, err error) {
	soft, ok := "", false
	for line := range strings.Lines(limits) {
		if rest, found := strings.CutPrefix(line, "Max locked memory "); found {
			if f := strings.Fields(rest); len(f) > 0 {
				soft, ok = f[0], true
			}
			break
		}
	}
	switch {
	case !ok:
		return memlock{}, fmt.Errorf("it has no line of the locked memory: %w", fs.ErrInvalid)
	case soft == "unlimited":
		m.limit = unlimited
	default:
		if m.limit, err = strconv.ParseUint(soft, 10, 64); err != nil {
			return memlock{}, fmt.Errorf("the limit of locked memory is %q: %w", soft, fs.ErrInvalid)
		}
	}
	// A kernel without one of these fields counts nothing there.
	m.locked = kilobytes(status, "VmLck")
	m.pinned = kilobytes(status, "VmPin")
	m.exempt = effectiveCaps(status)&capIPCLock != 0
	return m, nil
}

// statusValue is a field of the text of status of a process below proc, or "".
func statusValue(status, field string) string {
	for line := range strings.Lines(status) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes is a field in kB as bytes, 0 if it is missing or makes no sense.
func kilobytes(status, field string) uint64 {
	number, found := strings.CutSuffix(statusValue(status, field), " kB")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
	if !found || err != nil || n > math.MaxUint64>>10 {
		return 0
	}
	return n << 10
}

// effectiveCaps are the effective capabilities.
func effectiveCaps(status string) uint64 {
	caps, err := strconv.ParseUint(statusValue(status, "CapEff"), 16, 64)
	if err != nil {
		return 0
	}
	return caps
}

// firstUserNamespace says that the user ids of the process are those of the
// machine: that it is in no container of its own users.
func firstUserNamespace(k Kernel) bool {
	m, err := fs.ReadFile(k.FS(), "proc/self/uid_map")
	if err != nil {
		return true // a kernel without user namespaces
	}
	f := strings.Fields(string(m))
	return len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

// used is what at least one of the kernel's two accounts has.
func (m memlock) used() uint64 { return max(m.locked, m.pinned) }

// by is the account of a backend.
func (m memlock) by(b Backend) uint64 {
	if b == IOMMUFD {
		return m.pinned
	}
	return m.locked
}

// check says whether the process may lock so many bytes beside those that are used.
// Its error wraps ErrMemlock.
func (m memlock) check(used, need uint64) error {
	if m.exempt || m.limit == unlimited || used <= m.limit && need <= m.limit-used {
		return nil
	}
	total, carry := bits.Add64(used, need, 0)
	if carry != 0 {
		total = unlimited
	}
	return &Error{
		Err:    fmt.Errorf("%d bytes more are to be locked, and %d of %d are used: %w", need, used, m.limit, ErrMemlock),
		Remedy: memlockRemedy(total),
	}
}

// memlockRemedy says how to allow a process to lock so many bytes.
func memlockRemedy(total uint64) string {
	// A power of two leaves room for what else the process locks.
	const mib = 1 << 20
	var bytes, kib, unit string
	if total > math.MaxInt64 {
		bytes, kib, unit = "unlimited", "unlimited", "infinity"
	} else {
		n := uint64(mib)
		for n < total {
			n <<= 1
		}
		bytes, kib, unit = strconv.FormatUint(n, 10), strconv.FormatUint(n>>10, 10), strconv.FormatUint(n/mib, 10)+"M"
	}
	return fmt.Sprintf("raise the limit in the shell that starts the program, `sudo prlimit --pid $$ --memlock=%s:%s` (`ulimit -l` shows it), "+
		"for a systemd unit with LimitMEMLOCK=%s, for a user at the next login with `echo \"$USER - memlock %s\" | sudo tee /etc/security/limits.d/70-vfio.conf`; "+
		"or give the program CAP_IPC_LOCK, `sudo setcap cap_ipc_lock+ep PROGRAM`; or take a smaller pool", bytes, bytes, unit, kib)
}
