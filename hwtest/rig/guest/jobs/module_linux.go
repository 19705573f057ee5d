package jobs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func loadModule(file, params string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return unix.FinitModule(int(f.Fd()), params, 0)
}

func unloadModule(name string) error { return unix.DeleteModule(name, unix.O_NONBLOCK) }
