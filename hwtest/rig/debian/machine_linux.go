package debian

import (
	"errors"
	"os"
	"syscall"
)

// freeBytes is what a user who is not root may still write below dir.
func freeBytes(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// lockFile waits until nobody else has the lock of the file.
func lockFile(file string) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "flock", Path: file, Err: err}, f.Close())
	}
	return f.Close, nil
}
