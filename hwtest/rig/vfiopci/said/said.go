package said

// Exchange is the result of frames that went both ways.
type Exchange struct {
	Frames, Bytes int
	// Backend is how the driver reached the device, by its own words, and Because why.
	Backend, Because string
	// Interrupts are those of the kernel's VFIO while the devices were open, by the kind
	// and the PCI function: /proc/interrupts.
	Interrupts map[string]map[string]uint64
}

// Watching is the line on standard error that says that memory is watched.
const Watching = "watching"

// Watch is the result of memory that was watched.
type Watch struct {
	Bytes   int
	Changed int    // bytes that were not as they were left
	At      uint64 // the bus address of the first of them
}

// Fault is the result of memory that was taken from a device which used it.
type Fault struct {
	Frames int    // that went through before
	Rings  uint64 // a bus address that was mapped and is not any more
	Error  string // of the receive queue, afterwards
	Fatal  bool   // it is stmmac.ErrFatalBus
	Close  string // what closing said
}

// Failure is why a command failed.
type Failure struct {
	Text string
	// What errors.Is and errors.As say of it.
	Permission, Memlock, NoDevice, NotViable bool
	// Call, Remedy and Device are those of a vfio.Error in it.
	Call, Remedy, Device string
}

// Count adds a frame.
func (e *Exchange) Count(frame []byte) {
	e.Frames++
	e.Bytes += len(frame)
}
