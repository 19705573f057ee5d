package netns

import (
	"os"
	"path/filepath"
)

// resources counts the open file descriptors of the process and the network
// namespaces that its threads are in.
func resources() (fds, namespaces int) {
	open, _ := filepath.Glob("/proc/self/fd/*") // the pattern is good, and so is what is there without /proc
	links, _ := filepath.Glob("/proc/self/task/*/ns/net")
	seen := map[string]bool{}
	for _, l := range links {
		if ns, err := os.Readlink(l); err == nil { // the thread may have ended
			seen[ns] = true
		}
	}
	return len(open), len(seen)
}
