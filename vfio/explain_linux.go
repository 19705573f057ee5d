package vfio

import (
	"io/fs"
	"syscall"
)

// owner is who owns a file.
func owner(i fs.FileInfo) (uid, gid uint32, ok bool) {
	s, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return s.Uid, s.Gid, true
}
