package vfio

import (
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// procs is a tree of processes; 100 is the one that asks.
const procs = `
	proc/self -> 100
	proc/100/fd/0 -> /dev/null
	proc/100/fd/1 -> pipe:[77]
	proc/200/fd/3 -> /dev/vfio/vfio
	proc/200/fd/9 -> /dev/vfio/12
	proc/200/comm: qemu-system-x86
	proc/300/fd/4 -> /dev/vfio/120
	proc/300/comm: other
	proc/400/fd/0 -> anon_inode:[vfio-device]
	proc/sys/kernel/osrelease: 7.3.0
	proc/-1/fd/0 -> /dev/vfio/12
	proc/9x/fd/0 -> /dev/vfio/12
`

func TestHolders(t *testing.T) {
	for _, tc := range []struct {
		name string
		more string
		deny map[string]error
		node string

		held   []holder
		unread int
		busy   string
	}{
		{name: "one", node: "dev/vfio/12", held: []holder{{200, "qemu-system-x86"}}, busy: "it is held by pid 200 (qemu-system-x86)"},
		{name: "two", node: "dev/vfio/12", more: "proc/300/fd/5 -> /dev/vfio/12", held: []holder{{200, "qemu-system-x86"}, {300, "other"}},
			busy: "it is held by pid 200 (qemu-system-x86) and pid 300 (other)"},
		{name: "nobody", node: "dev/vfio/13", busy: "no process that can be seen here holds it, one outside of this container may: `sudo fuser -v /dev/vfio/13` shows it there"},
		{name: "this process alone", node: "dev/vfio/devices/vfio0", more: "proc/100/fd/7 -> /dev/vfio/devices/vfio0",
			busy: "it is held by this process, which has it open already"},
		{name: "this process and another", node: "dev/vfio/12", more: "proc/100/fd/7 -> /dev/vfio/12", held: []holder{{200, "qemu-system-x86"}},
			busy: "it is held by pid 200 (qemu-system-x86)"},
		{name: "of another user", node: "dev/vfio/12", deny: map[string]error{"proc/200/fd": syscall.EACCES, "proc/300/fd": syscall.EACCES}, unread: 2,
			busy: "it is held by one of 2 processes that this user may not look at: `sudo fuser -v /dev/vfio/12` shows it"},
		{name: "files of another user", node: "dev/vfio/12", deny: map[string]error{"proc/300/fd/4": syscall.EACCES}, held: []holder{{200, "qemu-system-x86"}}, unread: 1,
			busy: "it is held by pid 200 (qemu-system-x86)"},
		{name: "ended meanwhile", node: "dev/vfio/12", deny: map[string]error{"proc/200/fd/3": syscall.ENOENT, "proc/200/fd/9": syscall.ENOENT, "proc/300/fd": syscall.ESRCH},
			busy: "no process that can be seen here holds it, one outside of this container may: `sudo fuser -v /dev/vfio/12` shows it there"},
		{name: "a name for terminals", node: "dev/vfio/120", more: `proc/300/comm: "\x1b[31m\"x\"\n"`, held: []holder{{300, "\x1b[31m\"x\""}},
			busy: `it is held by pid 300 (\x1b[31m\"x\")`},
		{name: "without a name", node: "dev/vfio/12", deny: map[string]error{"proc/200/comm": syscall.EACCES}, held: []holder{{200, ""}}, busy: "it is held by pid 200"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newTree(t, procs, tc.more)
			k.deny = tc.deny
			held, unread := holders(k, tc.node)
			if d := cmp.Diff(tc.held, held); d != "" || unread != tc.unread {
				t.Errorf("%d unread, want %d; -want +got:\n%s", unread, tc.unread, d)
			}
			if got := busy(k, tc.node); got != tc.busy {
				t.Errorf("%q, want %q", got, tc.busy)
			}
		})
	}
}

// TestHoldersOfMachine looks at the processes of this machine: the test has a file
// open, and is not among the others that have.
func TestHoldersOfMachine(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	held, self, _ := openers(System(), "dev/null")
	if !self {
		t.Errorf("this process does not have it open, and %v have", held)
	}
	me := linkBase(System().FS(), "proc/self")
	for _, h := range held {
		if h.PID <= 0 || h.String() == "pid "+me {
			t.Errorf("%+v", h)
		}
	}
}
