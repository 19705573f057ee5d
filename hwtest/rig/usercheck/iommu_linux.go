package usercheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Intel VT-d as q35 has it (Intel Virtualization Technology for Directed I/O 4.1, chapters
// 9 and 11): registers, and tables of three levels in RAM.
const (
	vtd          = 0xfed9_0000
	vtdCommand   = vtd + 0x18
	vtdStatus    = vtd + 0x1c
	vtdRootTable = vtd + 0x20
	vtdContext   = vtd + 0x28
	vtdIOTLB     = vtd + 0xf8 // as the extended capabilities say

	vtdEnable  = 1 << 31
	vtdSetRoot = 1 << 30

	rootTable, contextTable    = 0x10_0000, 0x10_1000
	level3, level2, level1     = 0x10_2000, 0x10_3000, 0x10_4000
	present, readable, writing = 1, 1, 2

	// The pages of which addresses are mapped, and where to.
	virtual  = 1 << 30
	physical = 0x30_0000
)

// invalidate makes the IOMMU look at the tables anew.
func (s *script) invalidate() {
	s.store(vtdContext, 8, 1<<63|1<<61)
	s.store(vtdIOTLB, 8, 1<<63|1<<60)
}

// setPage maps a page, by its number, or takes it away.
func (s *script) setPage(n uint64, flags uint64) {
	v := uint64(0)
	if flags != 0 {
		v = physical + 0x1000*n | flags
	}
	s.store(level1+8*n, 8, v)
	s.invalidate()
}

// translated: the addresses of the device are those of the IOMMU. Pages come and go, and
// an access to none is a fault.
func translated(s *script) {
	s.enable()
	s.store(rootTable, 8, contextTable|present)
	s.store(contextTable+slot<<3*16, 8, level3|present)
	s.store(contextTable+slot<<3*16+8, 8, 1) // three levels, domain 0
	s.store(level3+8*(virtual>>30), 8, level2|readable|writing)
	s.store(level2, 8, level1|readable|writing)
	s.store(vtdRootTable, 8, rootTable)
	s.store(vtdCommand, 4, vtdSetRoot)
	s.invalidate()
	s.store(vtdCommand, 4, vtdEnable)
	s.equal("the status of the IOMMU", s.load(vtdStatus, 4)&vtdEnable, vtdEnable)

	f, b := s.m.f, make([]byte, 8)
	faults := func(what string, access func(uint64, []byte) error, at uint64) {
		if err := access(at, b); s.err == nil && !isErrno(err) {
			s.check(what, fmt.Errorf("the error is %v", err))
		}
	}
	faults("a read of RAM past the IOMMU", f.Read, physical)
	faults("a read of no page", f.Read, virtual)
	for round := range uint64(5) {
		for n := range uint64(4) {
			s.setPage(n, readable|writing)
			s.store(physical+0x1000*n, 8, 0x1111*round+n)
		}
		for n := range uint64(4) {
			s.check("a read of a page", f.Read(virtual+0x1000*n, b))
			s.equal("a word of a page", binary.LittleEndian.Uint64(b), 0x1111*round+n)
			if w := f.Window(virtual+0x1000*n, 0x1000); s.err == nil && w == nil {
				s.check("a window", errors.New("there is none of a page"))
			}
		}
		// Across two pages.
		s.check("a write of two pages", f.Write(virtual+0xffc, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
		s.equal("the end of a page", s.load(physical+0xffc, 4), 0x04030201)
		s.equal("the start of the next", s.load(physical+0x1000, 4), 0x08070605)
		// One that may be read alone, and none.
		s.setPage(1, 0)
		faults("a read of a page that was taken away", f.Read, virtual+0x1000)
		s.setPage(1, readable)
		s.check("a read of a page that may be read", f.Read(virtual+0x1000, b))
		if err := f.Write(virtual+0x1000, b); s.err == nil && err == nil {
			s.check("a write of a page that may be read", errors.New("no error"))
		}
		for n := range uint64(4) {
			s.setPage(n, 0)
			if f.Window(virtual+0x1000*n, 1) != nil {
				s.check("a window", errors.New("there is one of a page that was taken away"))
			}
		}
	}
	// Off again, addresses are those of RAM.
	s.store(vtdCommand, 4, 0)
	s.check("a read of RAM without the IOMMU", f.Read(physical, b))
}

// isErrno says whether the client refused an access.
func isErrno(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != unix.EFAULT
}
