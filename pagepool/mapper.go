package pagepool

// Mapper makes memory reachable for a device. vfio devices, the simulated ones
// and a user's own transport satisfy it. One may have two more methods:
//
//   - PinsDMA() bool says that memory which it maps stays in memory and where it
//     is, so that a pool need not lock it: locked and mapped it would count twice
//     against RLIMIT_MEMLOCK.
//   - MaxContiguousDMA() int is the most bytes that can lie together on the bus, 0
//     for any number: the arenas of a pool are no larger.
type Mapper interface {
	// MapDMA makes mem, which starts and ends on a page, reachable for the
	// device and returns the bus address of its first byte; the addresses of
	// the others follow without a gap.
	MapDMA(mem []byte) (iova uint64, err error)
	// UnmapDMA undoes MapDMA or AllocDMA for the n bytes at iova.
	UnmapDMA(iova uint64, n int) error
	// Coherent says that the device sees what the CPU wrote, and the CPU what
	// the device wrote, without cache maintenance.
	Coherent() bool
	// AllocDMA returns n bytes of memory that the device brings with it,
	// aligned to align, and their bus address. A device that has none returns
	// an error that is [errors.ErrUnsupported]; it is asked first.
	AllocDMA(n, align int) (mem []byte, iova uint64, err error)
}

// pins says whether m keeps what it maps in memory.
func pins(m Mapper) bool {
	p, ok := m.(interface{ PinsDMA() bool })
	return ok && p.PinsDMA()
}

// maxContiguous is the most bytes that can lie together for m.
func maxContiguous(m Mapper) int {
	if c, ok := m.(interface{ MaxContiguousDMA() int }); ok {
		if n := c.MaxContiguousDMA(); n > 0 {
			return n
		}
	}
	return maxArenaBytes
}
