//go:build !linux

package vfio

import (
	"errors"
	"io/fs"
	"os"
)

// System is the kernel that the program runs on. On other systems than Linux
// every call fails with errors.ErrUnsupported.
func System() Kernel { return system{} }

type system struct{}

func (system) FS() fs.FS                                  { return nothing{} }
func (system) Path(name string) string                    { return "/" + name }
func (system) PageSize() int                              { return os.Getpagesize() }
func (system) WriteFile(string, string) error             { return errors.ErrUnsupported }
func (system) Open(string) (int, error)                   { return -1, errors.ErrUnsupported }
func (system) Close(int) error                            { return errors.ErrUnsupported }
func (system) Ioctl(int, uint32, []byte) (int, error)     { return -1, errors.ErrUnsupported }
func (system) IoctlInt(int, uint32, int) (int, error)     { return -1, errors.ErrUnsupported }
func (system) Pread(int, []byte, int64) (int, error)      { return -1, errors.ErrUnsupported }
func (system) Pwrite(int, []byte, int64) (int, error)     { return -1, errors.ErrUnsupported }
func (system) Mmap(int, int64, int, bool) ([]byte, error) { return nil, errors.ErrUnsupported }
func (system) HugeMemory(int) ([]byte, error)             { return nil, errors.ErrUnsupported }
func (system) Munmap([]byte) error                        { return errors.ErrUnsupported }

// nothing is a file system in which there is nothing.
type nothing struct{}

func (nothing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

func (nothing) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

func (nothing) Lstat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "lstat", Path: name, Err: errors.ErrUnsupported}
}

func keepFromChildren([]byte) {}
