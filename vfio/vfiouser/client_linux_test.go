package vfiouser_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// What the protocol says, in numbers of its own: the server's are not used here.
const (
	version, dmaMap, dmaUnmap, getInfo, getRegionInfo, getRegionFDs = 1, 2, 3, 4, 5, 6
	getIRQInfo, setIRQs, regionRead, regionWrite                    = 7, 8, 9, 10
	dmaRead, dmaWrite, deviceReset, writeMulti, feature             = 11, 12, 13, 15, 16

	isReply, noReply, isError = 1, 1 << 4, 1 << 5

	intx, msi, msix, errIRQ, reqIRQ             = 0, 1, 2, 3, 4
	dataNone, dataBool, dataEventfd             = 1, 2, 4
	actionMask, actionUnmask, actionTrigger     = 8, 16, 32
	configRegion, romRegion, vgaRegion, numBARs = 7, 6, 8, 6
)

// What QEMU 11.1.3 says of itself.
const qemuCaps = `{"capabilities":{"migration":{"pgsize":4096,"max_bitmap_size":268435456},"max_msg_fds":16,` +
	`"max_data_xfer_size":1048576,"max_dma_maps":65535,"pgsizes":4096,"write_multiple":true}}`

var ne = binary.NativeEndian

// body builds the part of a message behind its header.
func body(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch v := p.(type) {
		case uint16:
			b = ne.AppendUint16(b, v)
		case int:
			b = ne.AppendUint32(b, uint32(v))
		case uint32:
			b = ne.AppendUint32(b, v)
		case uint64:
			b = ne.AppendUint64(b, v)
		case []byte:
			b = append(b, v...)
		case string:
			b = append(append(b, v...), 0)
		default:
			panic(v)
		}
	}
	return b
}

// client speaks the protocol with a server.
type client struct {
	testing.TB
	conn *net.UnixConn
	id   uint16
	end  chan error // the result of the server
}

// pair returns two ends of a connection.
func pair(t testing.TB) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var c [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		n, err := net.FileConn(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		c[i] = n.(*net.UnixConn)
	}
	return c[0], c[1]
}

// connect serves a client that has said nothing yet.
func connect(t testing.TB, ctx context.Context, f *vfiouser.Function, dev vfiouser.Device) *client {
	t.Helper()
	ours, theirs := pair(t)
	c := &client{TB: t, conn: ours, end: make(chan error, 1)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c.end <- f.ServeConn(ctx, theirs, dev)
	}()
	t.Cleanup(func() {
		ours.Close()
		<-served
	})
	return c
}

// start serves a client that has negotiated as QEMU does.
func start(t testing.TB, f *vfiouser.Function, dev vfiouser.Device) *client {
	t.Helper()
	c := connect(t, context.Background(), f, dev)
	c.want(version, body(uint16(0), uint16(0), qemuCaps))
	return c
}

// send sends a message.
func (c *client) send(cmd uint16, flags uint32, b []byte, fds ...int) uint16 {
	c.Helper()
	c.id++
	c.sendRaw(body(c.id, cmd, 16+len(b), flags, 0, b), fds...)
	return c.id
}

func (c *client) sendRaw(b []byte, fds ...int) {
	c.Helper()
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := c.conn.WriteMsgUnix(b, oob, nil); err != nil {
		c.Fatal("send: ", err)
	}
}

// received is a message of the server.
type received struct {
	id, cmd      uint16
	flags, errno uint32
	body         []byte
}

// recv reads a message.
func (c *client) recv() received {
	c.Helper()
	r, err := c.read()
	if err != nil {
		c.Fatal("receive: ", err)
	}
	return r
}

func (c *client) read() (received, error) {
	var h [16]byte
	if _, err := io.ReadFull(c.conn, h[:]); err != nil {
		return received{}, err
	}
	size := ne.Uint32(h[4:])
	if size < 16 || size > 2<<20 {
		return received{}, errors.New("the size of a message of the server is wrong")
	}
	r := received{ne.Uint16(h[:]), ne.Uint16(h[2:]), ne.Uint32(h[8:]), ne.Uint32(h[12:]), make([]byte, size-16)}
	_, err := io.ReadFull(c.conn, r.body)
	return r, err
}

// call sends a command and returns its reply.
func (c *client) call(cmd uint16, b []byte, fds ...int) ([]byte, unix.Errno) {
	c.Helper()
	id := c.send(cmd, 0, b, fds...)
	r := c.recv()
	if r.id != id || r.cmd != cmd || r.flags&^isError != isReply {
		c.Fatalf("message %d, command %d, flags %#x answer message %d, command %d", r.id, r.cmd, r.flags, id, cmd)
	}
	if r.flags&isError != 0 {
		if len(r.body) > 0 || r.errno == 0 {
			c.Fatalf("an error reply with errno %d and %d bytes", r.errno, len(r.body))
		}
		return nil, unix.Errno(r.errno)
	}
	return r.body, 0
}

// want is call for what has to work.
func (c *client) want(cmd uint16, b []byte, fds ...int) []byte {
	c.Helper()
	r, errno := c.call(cmd, b, fds...)
	if errno != 0 {
		c.Fatalf("command %d: %v", cmd, errno)
	}
	return r
}

// read32 and write32 access a region.
func (c *client) read32(region int, off uint64) uint32 {
	c.Helper()
	return binary.LittleEndian.Uint32(c.readN(region, off, 4))
}

func (c *client) readN(region int, off uint64, n int) []byte {
	c.Helper()
	r := c.want(regionRead, body(off, region, n))
	if len(r) != 16+n || ne.Uint64(r) != off || ne.Uint32(r[8:]) != uint32(region) || ne.Uint32(r[12:]) != uint32(n) {
		c.Fatalf("a read of %d bytes at %#x of region %d: % x", n, off, region, r)
	}
	return r[16:]
}

func (c *client) writeN(region int, off uint64, p []byte) {
	c.Helper()
	r := c.want(regionWrite, body(off, region, len(p), p))
	if !slices.Equal(r, body(off, region, len(p))) {
		c.Fatalf("a write of %d bytes at %#x of region %d: % x", len(p), off, region, r)
	}
}

func (c *client) write16(region int, off uint64, v uint16) {
	c.Helper()
	c.writeN(region, off, binary.LittleEndian.AppendUint16(nil, v))
}

func (c *client) write32(region int, off uint64, v uint32) {
	c.Helper()
	c.writeN(region, off, binary.LittleEndian.AppendUint32(nil, v))
}

// master turns bus mastering on.
func (c *client) master() { c.Helper(); c.write16(configRegion, 4, 6) }

// dmaMap maps size bytes of a file from off on; fd -1 is none.
func (c *client) dmaMap(fd int, off, iova, size uint64, flags int) unix.Errno {
	c.Helper()
	var fds []int
	if fd >= 0 {
		fds = []int{fd}
	}
	r, errno := c.call(dmaMap, body(32, flags, off, iova, size), fds...)
	if len(r) != 0 {
		c.Fatalf("DMA_MAP: % x", r)
	}
	return errno
}

func (c *client) dmaUnmap(iova, size uint64) unix.Errno {
	c.Helper()
	b := body(24, 0, iova, size)
	r, errno := c.call(dmaUnmap, b)
	if errno == 0 && !slices.Equal(r, b) {
		c.Fatalf("DMA_UNMAP: % x", r)
	}
	return errno
}

// irqs sends a SET_IRQS.
func (c *client) irqs(index, flags, first, count int, rest []byte, fds ...int) unix.Errno {
	c.Helper()
	r, errno := c.call(setIRQs, body(20+len(rest), flags, index, first, count, rest), fds...)
	if len(r) != 0 {
		c.Fatalf("SET_IRQS: % x", r)
	}
	return errno
}

// eventfd is one of the client's.
func (c *client) eventfd() int {
	c.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { unix.Close(fd) })
	return fd
}

// fired is how often an eventfd was written to since it was asked last.
func (c *client) fired(fd int) uint64 {
	c.Helper()
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); errors.Is(err, unix.EAGAIN) {
		return 0
	} else if err != nil {
		c.Fatal(err)
	}
	return ne.Uint64(b[:])
}

// hangUp ends the connection and returns the server's result.
func (c *client) hangUp() error {
	c.conn.Close()
	return <-c.end
}

// memfd is memory to share, which cannot be cut if it is sealed.
func memfd(t testing.TB, size int64, sealed bool) (fd int, mem []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("vfiouser-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	if sealed {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
			t.Fatal(err)
		}
	}
	if mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return fd, mem
}

// device has memory for registers, and keeps a log.
type device struct {
	mu    sync.Mutex
	bars  [6][]byte
	log   []string
	write func(bar int, off uint64, p []byte) // called without the lock
	read  func(bar int, off uint64, p []byte)
	drop  func()

	drops, resets int
}

func newDevice(cfg vfiouser.Config) *device {
	d := &device{}
	for i, b := range cfg.BARs {
		d.bars[i] = make([]byte, b.Size)
	}
	return d
}

func (d *device) note(s string) { d.log = append(d.log, s) }

func (d *device) taken() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := strings.Join(d.log, " ")
	d.log = nil
	return s
}

func hex(off uint64, n int) string {
	const digits = "0123456789abcdef"
	var b []byte
	for s := 28; s >= 0; s -= 4 {
		if v := off >> s; v != 0 || s == 0 {
			b = append(b, digits[v&15])
		}
	}
	return string(b) + "+" + string(digits[n])
}

func (d *device) ReadBAR(bar int, off uint64, p []byte) {
	d.mu.Lock()
	copy(p, d.bars[bar][off:])
	d.note("R" + hex(off, len(p)))
	f := d.read
	d.mu.Unlock()
	if f != nil {
		f(bar, off, p)
	}
}

func (d *device) WriteBAR(bar int, off uint64, p []byte) {
	d.mu.Lock()
	copy(d.bars[bar][off:], p)
	d.note("W" + hex(off, len(p)))
	f := d.write
	d.mu.Unlock()
	if f != nil {
		f(bar, off, p)
	}
}

func (d *device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets++
	for _, b := range d.bars {
		clear(b)
	}
}

func (d *device) DropWindows() {
	d.mu.Lock()
	d.drops++
	f := d.drop
	d.mu.Unlock()
	if f != nil {
		f()
	}
}

func (d *device) counts() (drops, resets int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops, d.resets
}

// full has everything.
func full() vfiouser.Config {
	return vfiouser.Config{
		Vendor: 0x1f0a, Device: 0x6801, SubVendor: 0x1234, SubDevice: 0x5678, Revision: 3, Class: 0x020000,
		BARs: [6]vfiouser.BAR{{Size: 0x1_0000}, {Size: 0x100}, {Size: 0x4000, Wide: true, Prefetch: true}},
		INTx: true, MSI: vfiouser.MSI{Vectors: 8, Maskable: true}, MSIX: vfiouser.MSIX{Vectors: 70, BAR: 2, Table: 0x1000, PBA: 0x2000},
		PM: true, PCIe: true,
	}
}

// newFunction is a function and its device.
func newFunction(t testing.TB, cfg vfiouser.Config) (*vfiouser.Function, *device) {
	t.Helper()
	f, err := vfiouser.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, newDevice(cfg)
}

// countLines counts the lines that have a word.
func countLines(text []byte, word string) int {
	n := 0
	for l := range strings.Lines(string(text)) {
		if strings.Contains(l, word) {
			n++
		}
	}
	return n
}
