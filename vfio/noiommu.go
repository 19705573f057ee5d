package vfio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// noContainer is a container without an IOMMU: nothing is mapped, and the device
// is told where memory lies. The kernel does not pin it.
type noContainer struct{ *container }

func (c noContainer) limits() (limits, error) {
	return limits{page: uint64(c.k.PageSize()), left: -1}, nil
}

func (c noContainer) pins() bool     { return false }
func (c noContainer) physical() bool { return true }

// mapDMA finds where mem lies. It must be of huge pages, which the kernel does not
// move: mlock keeps it from swapping a page, not from moving it.
func (c noContainer) mapDMA(mem []byte, _ uint64) (uint64, error) {
	size, err := pageSizeOf(c.k, vaddr(mem))
	if err != nil {
		return 0, err
	}
	if size <= uint64(c.k.PageSize()) {
		return 0, &Error{Call: "noiommu", Err: fmt.Errorf("the kernel may move pages of %d bytes under the device: %w", size, errors.ErrUnsupported),
			Remedy: "memory for the device must be of huge pages: sysctl vm.nr_hugepages=64"}
	}
	return c.locate(vaddr(mem), 0, uint64(len(mem)))
}

func (c noContainer) locate(start, _, n uint64) (uint64, error) { return physical(c.k, start, n) }

func (c noContainer) unmapDMA(uint64, uint64) error { return nil }

// CheckMemory looks, for devices without an IOMMU, whether the memory that is mapped
// for them still lies where they were told: nil, or an error that names what moved. It
// is for debugging, and reads a file for each mapping. Behind an IOMMU nothing can move.
func (m *Domain) CheckMemory() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.space.(interface {
		locate(start, iova, n uint64) (bus uint64, err error)
	})
	if !ok {
		return nil
	}
	var errs []error
	for _, o := range m.mappings {
		now, err := s.locate(o.start, o.iova, o.n)
		if err == nil && now != o.bus {
			err = fmt.Errorf("%d bytes at %#x moved from %#x to %#x in memory: %w", o.n, o.start, o.bus, now, ErrNotContiguous)
		}
		errs = append(errs, err)
	}
	return wrap("check memory", "", errors.Join(errs...))
}

// noIOAS is an address space without an IOMMU (Linux 7.3): the kernel pins what is
// mapped and tells where it lies.
type noIOAS struct{ *ioas }

func (s noIOAS) physical() bool { return true }

func (s noIOAS) mapDMA(mem []byte, iova uint64) (uint64, error) {
	if _, err := s.ioas.mapDMA(mem, iova); err != nil {
		return 0, err
	}
	bus, err := s.locate(0, iova, uint64(len(mem)))
	if err != nil {
		return 0, errors.Join(err, s.unmapDMA(iova, uint64(len(mem))))
	}
	return bus, nil
}

// locate asks where n bytes lie, which must be together.
func (s noIOAS) locate(_, iova, n uint64) (bus uint64, err error) {
	for done := uint64(0); done < n; {
		arg := uapi.IOASGetPA{IOASID: s.id, IOVA: iova + done, Length: n - done}
		arg.Size = uint32(len(uapi.Bytes(&arg)))
		if _, err := s.k.Ioctl(s.fd, uapi.IOASNoIOMMUGetPA, uapi.Bytes(&arg)); err != nil {
			e := &Error{Call: "IOMMU_IOAS_NOIOMMU_GET_PA", Err: err}
			if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOTTY) {
				e.Remedy = "the kernel has no CONFIG_IOMMUFD_NOIOMMU (Linux 7.3): use the group of the device"
			}
			return 0, e
		}
		switch {
		case arg.Length == 0:
			return 0, &Error{Call: "IOMMU_IOAS_NOIOMMU_GET_PA", Err: fmt.Errorf("no bytes at %#x: %w", iova+done, os.ErrInvalid)}
		case done == 0:
			bus = arg.OutPhys
		case arg.OutPhys != bus+done:
			return 0, notContiguous(done, n)
		}
		done += min(arg.Length, n-done)
	}
	return bus, nil
}

func notContiguous(at, n uint64) error {
	return &Error{Call: "noiommu", Err: fmt.Errorf("of %d bytes those from %d on lie elsewhere in memory: %w", n, at, ErrNotContiguous),
		Remedy: "use memory of huge pages, at most one for each piece: sysctl vm.nr_hugepages=64"}
}

// Entries of /proc/self/pagemap; Linux: Documentation/admin-guide/mm/pagemap.rst.
const (
	pagePresent = 1 << 63
	pageFrame   = 1<<55 - 1
)

// physical finds where n bytes from start on, whole pages of the process, lie in
// memory. Frame 0 is a frame like any other for a process that may see frames at all.
func physical(k Kernel, start, n uint64) (uint64, error) {
	fail := func(err error, remedy string) (uint64, error) {
		return 0, &Error{Call: "/proc/self/pagemap", Err: err, Remedy: remedy}
	}
	const hidden = "the kernel shows where memory lies only with CAP_SYS_ADMIN: run as root"
	f, err := k.FS().Open("proc/self/pagemap")
	if err != nil {
		return fail(err, hidden)
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		return fail(fmt.Errorf("it cannot be read at an offset: %w", errors.ErrUnsupported), "")
	}
	page := uint64(k.PageSize())
	pages := n / page
	entries := make([]byte, 8*pages)
	if _, err := r.ReadAt(entries, int64(start/page*8)); err != nil {
		return fail(err, hidden)
	}
	all := seesFrames(k)
	var first uint64
	for i := range pages {
		e := binary.NativeEndian.Uint64(entries[8*i:])
		frame := e & pageFrame
		switch {
		case e&pagePresent == 0:
			return fail(fmt.Errorf("page %d is not in memory: %w", i, os.ErrInvalid), "touch or lock the memory first")
		case frame == 0 && !all:
			// Who may not see frames reads 0 for each.
			return fail(fmt.Errorf("frame numbers are hidden: %w", fs.ErrPermission), hidden)
		case i == 0:
			first = frame
		case frame != first+i:
			return 0, notContiguous(i*page, n)
		}
	}
	return first * page, nil
}

// seesFrames says whether the process has CAP_SYS_ADMIN, by which pagemap shows
// frame numbers.
func seesFrames(k Kernel) bool {
	status, err := fs.ReadFile(k.FS(), "proc/self/status")
	return err == nil && effectiveCaps(string(status))&capSysAdmin != 0 && firstUserNamespace(k)
}

// pageSizeOf is the size of the pages that the mapping at addr has: KernelPageSize
// of /proc/self/smaps.
func pageSizeOf(k Kernel, addr uint64) (uint64, error) {
	b, err := fs.ReadFile(k.FS(), "proc/self/smaps")
	if err != nil {
		return 0, &Error{Call: "/proc/self/smaps", Err: err}
	}
	inside := false
	for line := range strings.SplitSeq(string(b), "\n") {
		var lo, hi, kib uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &lo, &hi); n == 2 {
			inside = lo <= addr && addr < hi
		} else if n, _ := fmt.Sscanf(line, "KernelPageSize: %d kB", &kib); n == 1 && inside {
			return kib << 10, nil
		}
	}
	return 0, &Error{Call: "/proc/self/smaps", Err: fmt.Errorf("nothing is mapped at %#x: %w", addr, os.ErrNotExist)}
}
