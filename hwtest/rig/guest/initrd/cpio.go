package initrd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"
)

// Kinds of files (S_IFMT of inode(7)).
const (
	kindChar = 0o020000
	kindDir  = 0o040000
	kindFile = 0o100000
	kindLink = 0o120000
)

const (
	magic   = "070701"
	trailer = "TRAILER!!!" // the name of the last entry
)

// Writer writes an archive. Everything in it belongs to root. Folders are made when
// something is put into them. It is for one goroutine. After an error of the writer below,
// all calls return that error.
type Writer struct {
	w     io.Writer
	err   error
	inode uint32
	made  map[string]bool
}

// NewWriter writes an archive to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, made: map[string]bool{}} }

// File adds a file with size bytes of content from r, at most 4 GiB less 1 byte. The name is
// a path, with or without a slash before it. perm are the bits of chmod(2).
func (w *Writer) File(name string, perm uint32, size int64, r io.Reader) error {
	return w.add(entry{name: name, mode: kindFile | perm&0o7777, size: size, content: r})
}

// Bytes adds a file.
func (w *Writer) Bytes(name string, perm uint32, content []byte) error {
	return w.File(name, perm, int64(len(content)), strings.NewReader(string(content)))
}

// Copy adds a file of this machine.
func (w *Writer) Copy(name string, perm uint32, from string) (err error) {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	i, err := f.Stat()
	if err != nil {
		return err
	}
	return w.File(name, perm, i.Size(), f)
}

// Dir adds a folder.
func (w *Writer) Dir(name string) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	return w.dir(name)
}

// Link adds a symbolic link.
func (w *Writer) Link(name, target string) error {
	return w.add(entry{name: name, mode: kindLink | 0o777, size: int64(len(target)), content: strings.NewReader(target)})
}

// CharDevice adds a character device: before a first process mounts a devtmpfs it has
// no others.
func (w *Writer) CharDevice(name string, perm, major, minor uint32) error {
	return w.add(entry{name: name, mode: kindChar | perm&0o7777, major: major, minor: minor, content: strings.NewReader("")})
}

// Close ends the archive. It does not close the writer below.
func (w *Writer) Close() error { return w.write(entry{name: trailer, content: strings.NewReader("")}) }

// entry is one file with its header.
type entry struct {
	name         string
	mode         uint32
	size         int64
	content      io.Reader
	major, minor uint32
}

// clean is a name as it is in the archive: relative, and not out of it.
func clean(name string) (string, error) {
	c := strings.TrimPrefix(path.Clean("/"+name), "/")
	if c == "" || c == trailer || strings.ContainsRune(name, 0) || len(c) > 4000 {
		return "", fmt.Errorf("initrd: %q is no name of a file: %w", name, os.ErrInvalid)
	}
	return c, nil
}

func (w *Writer) add(e entry) error {
	name, err := clean(e.name)
	if err != nil {
		return err
	}
	if w.made[name] {
		return fmt.Errorf("initrd: %s: %w", name, os.ErrExist)
	}
	if e.size < 0 || e.size > math.MaxUint32 {
		return fmt.Errorf("initrd: %s has %d bytes, the format takes up to %d: %w", name, e.size, uint32(math.MaxUint32), os.ErrInvalid)
	}
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	w.made[name] = true
	e.name = name
	return w.write(e)
}

// dir adds a folder, behind those that it is in.
func (w *Writer) dir(name string) error {
	if name == "." || w.made[name] {
		return nil
	}
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	w.made[name] = true
	return w.write(entry{name: name, mode: kindDir | 0o755, content: strings.NewReader("")})
}

// write writes a header, the name and the content, each filled up to 4 bytes.
func (w *Writer) write(e entry) error {
	if w.err != nil {
		return w.err
	}
	w.inode++
	links := 1
	if e.mode&^0o7777 == kindDir {
		links = 2
	}
	// Magic, inode, mode, user, group, links, time, size, the device of the file
	// system, that which the file is, the length of the name and no checksum.
	head := magic
	for _, v := range []uint32{w.inode, e.mode, 0, 0, uint32(links), 0, uint32(e.size), 0, 0, e.major, e.minor, uint32(len(e.name) + 1), 0} {
		head += fmt.Sprintf("%08x", v)
	}
	head += e.name + "\x00"
	_, w.err = io.WriteString(w.w, head+fill(len(head)))
	if w.err != nil {
		return w.err
	}
	n, err := io.Copy(w.w, io.LimitReader(e.content, e.size))
	if err == nil && n != e.size {
		err = fmt.Errorf("initrd: %s has %d bytes instead of %d: %w", e.name, n, e.size, io.ErrUnexpectedEOF)
	}
	if err == nil {
		_, err = io.WriteString(w.w, fill(int(e.size%4)))
	}
	w.err = err
	return err
}

// fill is what takes n bytes to a multiple of 4.
func fill(n int) string { return "\x00\x00\x00"[:(4-n%4)%4] }
