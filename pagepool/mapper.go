package pagepool

// Mapper makes memory reachable for a device. vfio devices, the simulated ones
// and a user's own transport satisfy it.
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
