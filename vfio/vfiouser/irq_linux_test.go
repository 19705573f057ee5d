package vfiouser_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// capability finds one in configuration space.
func (c *client) capability(id byte) uint64 {
	c.Helper()
	all := c.readN(configRegion, 0, 256)
	for at := int(all[0x34]); at != 0; at = int(all[at+1]) {
		if all[at] == id {
			return uint64(at)
		}
	}
	c.Fatalf("no capability %#x", id)
	return 0
}

// told fails unless an eventfd was written to n times since it was asked last.
func (c *client) told(what string, fd int, n uint64) {
	c.Helper()
	// The answer to a command comes behind what commands before it did.
	c.want(getInfo, body(16, 0, 0, 0))
	if got := c.fired(fd); got != n {
		c.Errorf("%s: told %d times instead of %d", what, got, n)
	}
}

// allowed fails unless a SET_IRQS was served.
func (c *client) allowed(errno unix.Errno) {
	c.Helper()
	if errno != 0 {
		c.Fatal(errno)
	}
}

// TestINTx: the level of the line, and its masks.
func TestINTx(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	fd := c.eventfd()
	status := func(high bool) {
		t.Helper()
		if got := c.read32(configRegion, 4)>>16&8 != 0; got != high {
			t.Errorf("the status register shows %v instead of %v", got, high)
		}
	}
	f.SetINTx(true) // with nobody to tell
	status(true)
	c.allowed(c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, fd))
	c.told("a line that is high already", fd, 1)
	f.SetINTx(true)
	c.told("a line that is masked by itself", fd, 0)
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.told("unmasked while high", fd, 1)
	f.SetINTx(false)
	status(false)
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.told("unmasked while low", fd, 0)
	f.SetINTx(true)
	c.told("high again", fd, 1)
	f.SetINTx(false)
	c.allowed(c.irqs(intx, dataBool|actionUnmask, 0, 1, []byte{0}))
	f.SetINTx(true)
	c.told("not unmasked", fd, 0)
	c.allowed(c.irqs(intx, dataBool|actionUnmask, 0, 1, []byte{1}))
	c.told("unmasked by a boolean", fd, 1)
	f.SetINTx(false)
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.allowed(c.irqs(intx, dataNone|actionMask, 0, 1, nil))
	f.SetINTx(true)
	c.told("masked", fd, 0)
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.told("unmasked after a mask", fd, 1)

	// The command register.
	f.SetINTx(false)
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.write16(configRegion, 4, 1<<10)
	f.SetINTx(true)
	status(true)
	c.told("disabled", fd, 0)
	c.write16(configRegion, 4, 0)
	c.told("enabled while high", fd, 1)

	// An eventfd that unmasks. Its goroutine writes when it has run.
	f.SetINTx(true)
	unmask := c.eventfd()
	c.allowed(c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil, unmask))
	block := func() {
		t.Helper()
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(p, -1); err == nil {
				return
			} else if err != unix.EINTR {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		if _, err := unix.Write(unmask, body(uint64(1))); err != nil {
			t.Fatal(err)
		}
		block()
		c.told("unmasked by an eventfd", fd, 1)
	}
	c.allowed(c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil)) // no eventfd any more
	if _, err := unix.Write(unmask, body(uint64(1))); err != nil {
		t.Fatal(err)
	}
	c.told("no eventfd unmasks", fd, 0)

	// The client fires it, masked or not, and takes it away.
	c.allowed(c.irqs(intx, dataNone|actionTrigger, 0, 1, nil))
	c.allowed(c.irqs(intx, dataBool|actionTrigger, 0, 1, []byte{1}))
	c.allowed(c.irqs(intx, dataBool|actionTrigger, 0, 1, []byte{0}))
	c.told("fired by the client", fd, 2)
	c.allowed(c.irqs(intx, dataNone|actionTrigger, 0, 0, nil))
	c.allowed(c.irqs(intx, dataNone|actionUnmask, 0, 1, nil))
	c.told("taken away", fd, 0)

	plain, dev := newFunction(t, vfiouser.Config{})
	c = start(t, plain, dev)
	plain.SetINTx(true)
	if got := c.read32(configRegion, 4); got != 0 {
		t.Errorf("a function without a pin: %#x", got)
	}
	if errno := c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil, c.eventfd()); errno != unix.EINVAL {
		t.Error(errno)
	}
	if errno := c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, c.eventfd()); errno != unix.EINVAL {
		t.Error(errno)
	}
}

// TestMSIX: vectors, masks in all places, pending bits.
func TestMSIX(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	const table, pba = 0x1000, 0x2000
	at := c.capability(0x11) + 2
	fds := make([]int, 16)
	for i := range fds {
		fds[i] = c.eventfd()
	}
	pending := func(want0, want1 uint32) {
		t.Helper()
		if a, b, last := c.read32(2, pba), c.read32(2, pba+4), c.readN(2, pba+8, 8); a != want0 || b != want1 || last[0] != 0 {
			t.Errorf("pending %#x, %#x, % x instead of %#x, %#x", a, b, last, want0, want1)
		}
	}
	if got := c.read32(2, table+12); got != 1 {
		t.Errorf("vector 0 starts with control %#x", got)
	}
	// Vectors without eventfds, while MSI-X is off: lost.
	f.SignalMSIX(3)
	pending(0, 0)
	// QEMU switches MSI-X on first, and gives eventfds then.
	c.write16(configRegion, at, 1<<15)
	f.SignalMSIX(3)
	f.SignalMSIX(40)
	pending(1<<3, 1<<8)
	c.allowed(c.irqs(msix, dataEventfd|actionTrigger, 0, 1, nil)) // de-assigns none
	c.allowed(c.irqs(msix, dataEventfd|actionTrigger, 0, 16, nil, fds...))
	c.told("a vector that fired before", fds[3], 1)
	pending(0, 1<<8)
	f.SignalMSIX(2)
	f.Signal(2)
	f.SignalMSI(2)
	f.SignalMSIX(-1)
	f.SignalMSIX(70)
	c.told("vector 2", fds[2], 2)
	c.told("vector 3", fds[3], 0)

	// Masked by message.
	c.allowed(c.irqs(msix, dataBool|actionMask, 1, 3, []byte{1, 0, 1}))
	for v := 1; v <= 3; v++ {
		f.SignalMSIX(v)
		f.SignalMSIX(v)
	}
	pending(1<<1|1<<3, 1<<8)
	c.told("not masked", fds[2], 2)
	c.allowed(c.irqs(msix, dataNone|actionUnmask, 0, 16, nil))
	c.told("unmasked", fds[1], 1)
	c.told("unmasked", fds[3], 1)
	pending(0, 1<<8)

	// Masked in the table. Until the client writes an entry it is QEMU's business.
	c.writeN(2, table+16*5, body(uint64(0xfee0_0000), uint32(5), uint32(0xffff_ffff)))
	if got := c.readN(2, table+16*5, 16); string(got) != string(body(uint64(0xfee0_0000), 5, 1)) {
		t.Errorf("% x", got)
	}
	f.SignalMSIX(5)
	f.SignalMSIX(6)
	pending(1<<5, 1<<8)
	c.told("in the table", fds[5], 0)
	c.told("not in the table", fds[6], 1)
	c.writeN(2, table+16*5+12, []byte{0})
	c.told("unmasked in the table", fds[5], 1)

	// Dealt with while it was masked, and fired again.
	c.allowed(c.irqs(msix, dataNone|actionMask, 5, 2, nil))
	f.Signal(5)
	f.Signal(6)
	f.Withdraw(5)
	for _, v := range []int{-1, 7, 70} {
		f.Withdraw(v)
	}
	pending(1<<6, 1<<8)
	c.allowed(c.irqs(msix, dataNone|actionUnmask, 5, 2, nil))
	c.told("taken back", fds[5], 0)
	c.told("not taken back", fds[6], 1)
	f.Signal(5)
	f.Withdraw(5)
	c.told("fired before it was taken back", fds[5], 1)

	// The whole function.
	c.write16(configRegion, at, 3<<14)
	f.SignalMSIX(0)
	pending(1, 1<<8)
	c.writeN(2, pba, []byte{0, 0, 0, 0}) // does nothing
	pending(1, 1<<8)
	c.write16(configRegion, at, 1<<15)
	c.told("the whole function unmasked", fds[0], 1)

	// Off: nothing is pending.
	c.write16(configRegion, at, 0)
	pending(0, 0)
	// An eventfd for another, and none.
	other := c.eventfd()
	c.allowed(c.irqs(msix, dataEventfd|actionTrigger, 7, 1, nil, other))
	f.SignalMSIX(7)
	c.told("the one before", fds[7], 0)
	c.told("the other", other, 1)
	c.allowed(c.irqs(msix, dataEventfd|actionTrigger, 7, 1, nil))
	f.SignalMSIX(7)
	c.told("none", other, 0)
	c.allowed(c.irqs(msix, dataBool|actionTrigger, 6, 3, []byte{0, 1, 1}))
	c.told("fired by the client", fds[8], 1)
	c.told("not fired by the client", fds[6], 0)

	// One kind at a time, as the kernel has it.
	for _, index := range []int{intx, msi} {
		if errno := c.irqs(index, dataEventfd|actionTrigger, 0, 1, nil, other); errno != unix.EINVAL {
			t.Errorf("interrupt %d beside MSI-X: %v", index, errno)
		}
	}
	c.allowed(c.irqs(msix, dataNone|actionTrigger, 0, 0, nil))
	f.SignalMSIX(8)
	c.told("all taken away", fds[8], 0)
	c.allowed(c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, other))

	// The registers beside the table are the device's.
	dev.taken()
	c.write32(2, table-4, 1)
	c.write32(2, table+70*16, 2)
	c.write32(2, pba+16, 3)
	c.read32(2, table+70*16-4)
	if got := dev.taken(); got != "Wffc+4 W1460+4 W2010+4" {
		t.Error(got)
	}
}

// TestMSI: vectors that the driver gave, and mask bits.
func TestMSI(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	at := c.capability(5)
	var fds []int
	for range 8 {
		fds = append(fds, c.eventfd())
	}
	f.Signal(0) // nothing is on
	c.write16(configRegion, at+2, 1|3<<4)
	c.allowed(c.irqs(msi, dataEventfd|actionTrigger, 0, 8, nil, fds...))
	f.SignalMSI(7)
	f.Signal(7)
	f.SignalMSI(8)
	f.SignalMSI(-1)
	c.told("vector 7", fds[7], 2)
	c.told("vector 0", fds[0], 0)
	c.write32(configRegion, at+16, 1<<4)
	f.SignalMSI(4)
	f.SignalMSI(5)
	c.told("masked", fds[4], 0)
	c.told("not masked", fds[5], 1)
	if got := c.read32(configRegion, at+20); got != 1<<4 {
		t.Errorf("pending %#x", got)
	}
	if got := c.readN(configRegion, at+20, 1); got[0] != 1<<4 {
		t.Errorf("pending %#x", got)
	}
	c.write32(configRegion, at+16, 0)
	c.told("unmasked", fds[4], 1)
	c.write32(configRegion, at+16, 3<<4)
	f.Signal(4)
	f.Signal(5)
	f.Withdraw(5)
	f.Withdraw(-1)
	c.write32(configRegion, at+16, 0)
	c.told("not taken back", fds[4], 1)
	c.told("taken back", fds[5], 0)
	// Fewer vectors than there are.
	c.write16(configRegion, at+2, 1|1<<4)
	for v := range 8 {
		f.SignalMSI(v)
	}
	c.told("vector 0 of two", fds[0], 4)
	c.told("vector 1 of two", fds[1], 4)
	c.write32(configRegion, at+16, 3)
	f.Signal(4)
	f.Signal(7)
	f.Withdraw(3)
	c.write32(configRegion, at+16, 0)
	c.told("vector 0 of two, for 4", fds[0], 1)
	c.told("vector 1 of two, taken back for 7", fds[1], 0)
	c.write16(configRegion, at+2, 1|7<<4) // more than there are
	f.SignalMSI(7)
	c.told("vector 7 again", fds[7], 1)
	c.write32(configRegion, at+16, 2)
	f.SignalMSI(1)
	c.write16(configRegion, at+2, 0)
	if got := c.read32(configRegion, at+20); got != 0 {
		t.Errorf("pending after it is off: %#x", got)
	}
}

// TestNotifications: of errors and of the wish to have the device back.
func TestNotifications(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	f.ReportError() // nobody listens, and it is not kept
	f.RequestRelease()
	e, r := c.eventfd(), c.eventfd()
	c.allowed(c.irqs(errIRQ, dataEventfd|actionTrigger, 0, 1, nil, e))
	c.allowed(c.irqs(reqIRQ, dataEventfd|actionTrigger, 0, 1, nil, r))
	c.allowed(c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, c.eventfd()))
	c.told("before", e, 0)
	c.told("before", r, 0)
	f.ReportError()
	c.told("an error", e, 1)
	f.RequestRelease()
	c.told("a request", r, 1)
}

// TestNoEventfd: what is no eventfd is refused, all of a message together.
func TestNoEventfd(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	good := c.eventfd()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	mem, _ := memfd(t, page, true)
	for name, bad := range map[string]int{"pipe": pipe[1], "memory": mem} {
		if errno := c.irqs(msix, dataEventfd|actionTrigger, 0, 2, nil, good, bad); errno != unix.EINVAL {
			t.Errorf("%s: %v", name, errno)
		}
		if errno := c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil, bad); errno != unix.EINVAL {
			t.Errorf("%s: %v", name, errno)
		}
	}
	f.SignalMSIX(0)
	c.told("a part of what was refused", good, 0)
	for name, fds := range map[string][]int{"too few": {good}, "too many": {good, good, good}} {
		if errno := c.irqs(msix, dataEventfd|actionTrigger, 0, 2, nil, fds...); errno != unix.EINVAL {
			t.Errorf("%s: %v", name, errno)
		}
	}
	if errno := c.irqs(msix, dataNone|actionTrigger, 0, 1, nil, good); errno != unix.EINVAL {
		t.Errorf("without the flag: %v", errno)
	}
	if _, errno := c.call(getInfo, body(16, 0, 0, 0), good); errno != unix.EINVAL {
		t.Errorf("with another command: %v", errno)
	}
}

// TestFullEventfd: one that blocks, and is full, holds nobody up.
func TestFullEventfd(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // it blocks
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	c.allowed(c.irqs(msix, dataEventfd|actionTrigger, 0, 1, nil, fd))
	if _, err := unix.Write(fd, body(^uint64(1))); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.SignalMSIX(0)
	}
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); err != nil || ne.Uint64(b[:]) != ^uint64(1) {
		t.Errorf("% x, %v", b, err)
	}
	f.SignalMSIX(0)
	if _, err := unix.Read(fd, b[:]); err != nil || ne.Uint64(b[:]) != 1 {
		t.Errorf("% x, %v", b, err)
	}
}
