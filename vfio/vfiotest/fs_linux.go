package vfiotest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	statusFile  = "proc/self/status"
	limitsFile  = "proc/self/limits"
	pagemapFile = "proc/self/pagemap"
	smapsFile   = "proc/self/smaps"
)

// procFiles are made when they are opened.
var procFiles = []string{statusFile, limitsFile, pagemapFile, smapsFile}

// FS implements vfio.Kernel. The file proc/self/pagemap is an io.ReaderAt.
func (k *Kernel) FS() fs.FS { return view{k, os.DirFS(k.dir)} }

// view is the directory of the kernel with the files of proc/self.
type view struct {
	k   *Kernel
	dir fs.FS
}

var _ fs.ReadLinkFS = view{}

// ReadLink implements fs.ReadLinkFS.
func (v view) ReadLink(name string) (string, error) { return fs.ReadLink(v.dir, name) }

// Lstat implements fs.ReadLinkFS.
func (v view) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(v.dir, name) }

// Open implements fs.FS.
func (v view) Open(name string) (fs.File, error) {
	switch name {
	case statusFile:
		return &procFile{name: name, at: text(v.k.status())}, nil
	case limitsFile:
		return &procFile{name: name, at: text(v.k.limits())}, nil
	case smapsFile:
		s, err := v.k.smaps()
		if err != nil {
			return nil, err
		}
		return &procFile{name: name, at: text(s)}, nil
	case pagemapFile:
		if v.k.cfg.Pagemap == PagemapAbsent {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return &procFile{name: name, at: v.k.pagemap}, nil
	}
	return v.dir.Open(name)
}

// status has the lines that are about locked memory and capabilities.
func (k *Kernel) status() string {
	const ipcLock, sysRawIO, sysAdmin = 14, 17, 21
	k.mu.Lock()
	defer k.unlock()
	eff := uint64(boolInt(k.cfg.CapIPCLock))<<ipcLock | uint64(boolInt(k.cfg.CapSysRawIO))<<sysRawIO |
		uint64(boolInt(k.cfg.Pagemap == PagemapReadable))<<sysAdmin
	const kib = 1024
	return fmt.Sprintf("Name:\tvfiotest\nVmLck:\t%8d kB\nVmPin:\t%8d kB\nCapEff:\t%016x\n", k.locked/kib, k.pinned/kib, eff)
}

func (k *Kernel) limits() string {
	limit := "unlimited"
	if k.cfg.Memlock != unlimited {
		limit = fmt.Sprint(k.cfg.Memlock)
	}
	line := func(name, soft, hard, units string) string {
		return fmt.Sprintf("%-25s %-20s %-20s %-10s\n", name, soft, hard, units)
	}
	return line("Limit", "Soft Limit", "Hard Limit", "Units") +
		line("Max open files", "1024", "1048576", "files") +
		line("Max locked memory", limit, limit, "bytes")
}

// smaps has the memory of the process with the size of its pages: huge for what
// HugeMemory returned.
func (k *Kernel) smaps() (string, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.unlock()
	var huge []span
	for _, mem := range k.huge {
		first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
		huge = append(huge, span{first, first + uint64(len(mem))})
	}
	slices.SortFunc(huge, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var out strings.Builder
	entry := func(s span, rest string, page int) {
		const kib = 1024
		if s.first < s.end {
			fmt.Fprintf(&out, "%x-%x %s\nSize: %15d kB\nKernelPageSize: %8d kB\nMMUPageSize: %11d kB\n",
				s.first, s.end, rest, (s.end-s.first)/kib, page/kib, page/kib)
		}
	}
	for line := range strings.Lines(string(maps)) {
		// "first-end rw-p offset device inode name"
		var s span
		if n, _ := fmt.Sscanf(line, "%x-%x ", &s.first, &s.end); n != 2 {
			continue
		}
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		// The machine may have joined huge memory, which is ordinary, with its neighbours.
		for _, h := range huge {
			if s.end <= h.first || h.end <= s.first {
				continue
			}
			entry(span{s.first, h.first}, rest, k.cfg.PageSize)
			entry(span{max(s.first, h.first), min(s.end, h.end)}, rest, hugePage)
			s.first = h.end
		}
		entry(s, rest, k.cfg.PageSize)
	}
	return out.String(), nil
}

// span is a range of virtual addresses.
type span struct{ first, end uint64 }

// pagemap reads entries of 8 bytes, which have to be read as a whole.
func (k *Kernel) pagemap(p []byte, off int64) (int, error) {
	const size = 8
	if off < 0 || off%size != 0 || len(p)%size != 0 {
		return 0, unix.EINVAL
	}
	k.mu.Lock()
	defer k.unlock()
	for i := 0; i < len(p); i += size {
		binary.NativeEndian.PutUint64(p[i:], k.pagemapEntry((uint64(off)+uint64(i))/size))
	}
	return len(p), nil
}

// text is a file of a string.
func text(s string) func([]byte, int64) (int, error) {
	return func(p []byte, off int64) (int, error) {
		if off < 0 {
			return 0, unix.EINVAL
		}
		if off >= int64(len(s)) {
			return 0, io.EOF
		}
		n := copy(p, s[off:])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
}

// procFile is an open file of proc/self, and its own information.
type procFile struct {
	name string
	at   func(p []byte, off int64) (int, error)
	off  int64
}

// ReadAt implements io.ReaderAt.
func (f *procFile) ReadAt(p []byte, off int64) (int, error) { return f.at(p, off) }

// Read implements fs.File.
func (f *procFile) Read(p []byte) (int, error) {
	n, err := f.at(p, f.off)
	f.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// Close implements fs.File.
func (f *procFile) Close() error { return nil }

// Stat implements fs.File.
func (f *procFile) Stat() (fs.FileInfo, error) { return f, nil }

// Name and the rest implement fs.FileInfo; files of proc have no size.
func (f *procFile) Name() string       { return path.Base(f.name) }
func (f *procFile) Size() int64        { return 0 }
func (f *procFile) Mode() fs.FileMode  { return 0o444 }
func (f *procFile) ModTime() time.Time { return time.Time{} }
func (f *procFile) IsDir() bool        { return false }
func (f *procFile) Sys() any           { return nil }
