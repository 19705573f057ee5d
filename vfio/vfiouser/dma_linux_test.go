package vfiouser_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

const (
	rw     = 3
	page   = 4096
	iova   = uint64(0x1234_5000)
	memory = 16 * page
)

// TestDMA: windows of one file, reads, writes and windows in and across them.
func TestDMA(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, mem := memfd(t, memory, true)
	c := start(t, f, dev)
	c.master()
	// Two windows beside each other, the second of an earlier part of the file; one to be
	// read alone, one to be written alone.
	for _, w := range []struct {
		off, at uint64
		flags   int
	}{{2 * page, iova, rw}, {0, iova + page, rw}, {4 * page, iova + 4*page, 1}, {6 * page, iova + 6*page, 2}} {
		if errno := c.dmaMap(fd, w.off, w.at, page, w.flags); errno != 0 {
			t.Fatal(errno)
		}
	}
	if !f.Master() || !f.Maps(iova+page) {
		t.Errorf("mastering %v, mapped %v", f.Master(), f.Maps(iova+page))
	}
	for i := range mem {
		mem[i] = byte(i>>8) ^ byte(i)
	}
	for _, n := range []int{1, 2, 3, 4, 8, 16, 32, 1514, 2 * page} {
		got := make([]byte, n)
		if err := f.Read(iova, got); err != nil {
			t.Fatal(err)
		}
		want := append(append([]byte(nil), mem[2*page:3*page]...), mem[:page]...)[:n]
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes differ", n)
		}
		for i := range got {
			got[i] = ^got[i]
		}
		if err := f.Write(iova+uint64(2*page-n), got); err != nil {
			t.Fatal(err)
		}
		first := max(0, n-page) // of them in the first window
		if !bytes.Equal(got[:first], mem[3*page-first:3*page]) || !bytes.Equal(got[first:], mem[page-(n-first):page]) {
			t.Errorf("%d bytes written differ", n)
		}
	}
	var b [8]byte
	for _, x := range []struct {
		addr  uint64
		write bool
	}{{iova + 4*page, true}, {iova + 6*page, false}} {
		access := f.Read
		if x.write {
			access = f.Write
		}
		var e *vfiouser.DMAError
		if err := access(x.addr, b[:]); !errors.Is(err, os.ErrPermission) || !errors.As(err, &e) || e.Addr != x.addr || e.Write != x.write || e.Len != 8 {
			t.Errorf("%#x: %v", x.addr, err)
		}
	}
	if err := errors.Join(f.Read(iova+4*page, b[:]), f.Write(iova+6*page, b[:]), f.Read(0, nil)); err != nil {
		t.Error(err)
	}
	// Windows.
	w := f.Window(iova+16, 32)
	if len(w) != 32 || cap(w) != 32 {
		t.Fatalf("a window of %d, %d", len(w), cap(w))
	}
	w[0] ^= 0xff
	if mem[2*page+16] != w[0] {
		t.Error("the window shows something else")
	}
	for name, w := range map[string][]byte{
		"across": f.Window(iova+page-1, 2), "to be read": f.Window(iova+4*page, 4), "to be written": f.Window(iova+6*page, 4),
		"nowhere": f.Window(iova-1, 1), "negative": f.Window(iova, -1), "too long": f.Window(iova, math.MaxInt), "at the end": f.Window(^uint64(0), 1),
	} {
		if w != nil {
			t.Errorf("%s: a window of %d", name, len(w))
		}
	}
	if lo, mem := f.Extent(iova + page + 5); lo != iova+page || len(mem) != page {
		t.Errorf("the extent is %d bytes at %#x", len(mem), lo)
	}
	if w := f.Window(iova, page); len(w) != page {
		t.Error("no window of a whole range")
	}
	// Without bus mastering there is none of it, and the device was told.
	before, _ := dev.counts()
	c.write16(configRegion, 4, 2)
	if after, _ := dev.counts(); after != before+1 {
		t.Errorf("%d times told", after-before)
	}
	if err := f.Read(iova, b[:]); !errors.Is(err, vfiouser.ErrMaster) {
		t.Error(err)
	}
	if f.Window(iova, 1) != nil {
		t.Error("a window")
	}
	// What is mapped stays so.
	if f.Master() || !f.Maps(iova) || !f.Maps(iova+4*page) || f.Maps(iova-1) || f.Maps(iova+5*page) {
		t.Errorf("mastering %v, mapped %v %v %v %v", f.Master(), f.Maps(iova), f.Maps(iova+4*page), f.Maps(iova-1), f.Maps(iova+5*page))
	}
	if err := c.hangUp(); err != nil {
		t.Fatal(err)
	}
	if err := f.Read(iova, b[:]); !errors.Is(err, vfiouser.ErrNoClient) {
		t.Error(err)
	}
	if f.Maps(iova) {
		t.Error("mapped by a client that is gone")
	}
}

// TestMap: what overlaps, and files that are none to map.
func TestMap(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, _ := memfd(t, memory, true)
	c := start(t, f, dev)
	ok := unix.Errno(0)
	step := func(name string, got, want unix.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v instead of %v", name, got, want)
		}
	}
	step("map", c.dmaMap(fd, 0, iova, 4*page, rw), ok)
	step("again", c.dmaMap(fd, 0, iova, 4*page, rw), unix.EEXIST)
	step("without a file", c.dmaMap(-1, 0, iova, 4*page, rw), unix.EEXIST)
	step("inside", c.dmaMap(fd, 0, iova+page, page, rw), unix.EEXIST)
	step("around", c.dmaMap(fd, 0, iova-page, 8*page, rw), unix.EEXIST)
	step("the start", c.dmaMap(fd, 0, iova-page, 2*page, rw), unix.EEXIST)
	step("the end", c.dmaMap(fd, 0, iova+3*page, 2*page, rw), unix.EEXIST)
	step("before", c.dmaMap(fd, 0, iova-page, page, rw), ok)
	step("behind", c.dmaMap(fd, 0, iova+4*page, page, rw), ok)
	step("the last page of all", c.dmaMap(fd, 0, ^uint64(page-1), page, rw), ok)
	step("file too short", c.dmaMap(fd, memory-page, 1<<40, 2*page, rw), unix.EINVAL)
	step("behind the file", c.dmaMap(fd, 1<<50, 1<<40, page, rw), unix.EINVAL)
	step("far behind the file", c.dmaMap(fd, ^uint64(page-1), 1<<40, page, rw), unix.EINVAL)
	step("huge", c.dmaMap(fd, 0, 1<<40, 1<<62, rw), unix.EINVAL)
	if _, errno := c.call(dmaMap, body(32, rw, uint64(0), uint64(1<<40), uint64(page)), fd, fd); errno != unix.EINVAL {
		t.Errorf("two files: %v", errno)
	}
	// Unmapping what is not there, parts and everything.
	step("unmap nothing", c.dmaUnmap(1<<40, 1<<39), ok)
	step("unmap a part", c.dmaUnmap(iova+page, page), ok)
	c.master()
	for i, there := range []bool{true, false, true, true, true, false} {
		if w := f.Window(iova+uint64(i*page), page); (w != nil) != there {
			t.Errorf("page %d: a window of %d", i, len(w))
		}
	}
	step("map it again", c.dmaMap(fd, 8*page, iova+page, page, rw), ok)
	step("unmap a power of two", c.dmaUnmap(0, 1<<48), ok)
	if f.Window(iova, 1) != nil || f.Window(^uint64(0), 1) == nil {
		t.Error("the wrong windows are left")
	}
	if got := c.want(dmaUnmap, body(24, 2, uint64(0), uint64(0))); !bytes.Equal(got, body(24, 2, uint64(0), uint64(0))) {
		t.Errorf("% x", got)
	}
	if f.Window(^uint64(0), 1) != nil {
		t.Error("a window is left")
	}
	// Sparse memory that is larger than all that a client may show.
	big, err := unix.MemfdCreate("big", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(big)
	if err := unix.Ftruncate(big, 1<<42); err != nil {
		t.Skip("no large files: ", err)
	}
	step("4 TiB", c.dmaMap(big, 0, 0, page, rw), unix.ENOMEM)
}

// TestFilesThatAreNone: a window of what is no memory is reached by messages.
func TestFilesThatAreNone(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c.master()
	for i, fd := range []int{pipe[0], pipe[1], int(zero.Fd()), int(dir.Fd()), c.eventfd()} {
		at := iova + uint64(i*page)
		if errno := c.dmaMap(fd, 0, at, page, rw); errno != 0 {
			t.Errorf("file %d: %v", i, errno)
		}
		if f.Window(at, 1) != nil {
			t.Errorf("file %d: a window", i)
		}
		done := make(chan error)
		go func() { done <- f.Write(at, []byte{1}) }()
		m := c.recv()
		if m.cmd != dmaWrite || !bytes.Equal(m.body, body(at, uint64(1), []byte{1})) {
			t.Errorf("file %d: %+v", i, m)
		}
		c.sendRaw(body(m.id, m.cmd, 32, isReply, 0, at, uint64(1)))
		if err := <-done; err != nil {
			t.Errorf("file %d: %v", i, err)
		}
	}
	// A file that may be read alone.
	fd, mem := memfd(t, page, true)
	mem[5] = 77
	ro, err := os.Open(filepath.Join("/proc/self/fd", strconv.Itoa(fd)))
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	if errno := c.dmaMap(int(ro.Fd()), 0, 0, page, rw); errno != unix.EACCES {
		t.Errorf("a file to be read, for writing: %v", errno)
	}
	if errno := c.dmaMap(int(ro.Fd()), 0, 0, page, 1); errno != 0 {
		t.Error(errno)
	}
	var b [1]byte
	if err := f.Read(5, b[:]); err != nil || b[0] != 77 {
		t.Error(b, err)
	}
	// The same file for writing, while it is mapped for reading alone.
	if errno := c.dmaMap(fd, 0, page, page, rw); errno != 0 {
		t.Error(errno)
	}
	if err := f.Write(page+5, []byte{78}); err != nil || mem[5] != 78 {
		t.Error(err, mem[5])
	}
}

// TestCutFile: the client cuts memory that is mapped. It has given no windows, and a copy
// is an error.
func TestCutFile(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, mem := memfd(t, memory, false)
	c := start(t, f, dev)
	c.master()
	if errno := c.dmaMap(fd, 0, 0, memory, rw); errno != 0 {
		t.Fatal(errno)
	}
	if f.Window(0, 1) != nil {
		t.Error("a window of a file that can be cut")
	}
	b := make([]byte, 32)
	mem[8*page] = 1
	if err := f.Read(8*page, b); err != nil || b[0] != 1 {
		t.Error(b[0], err)
	}
	if err := unix.Ftruncate(fd, page); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 4, 8, 32} {
		if err := errors.Join(f.Read(8*page, b[:n])); !errors.Is(err, unix.EFAULT) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if err := f.Write(8*page, b[:n]); !errors.Is(err, unix.EFAULT) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := errors.Join(f.Read(0, b), f.Write(0, b)); err != nil {
		t.Error(err)
	}
	if errno := c.dmaUnmap(0, memory); errno != 0 {
		t.Error(errno)
	}
	// A file that has grown is mapped anew.
	if err := unix.Ftruncate(fd, 2*memory); err != nil {
		t.Fatal(err)
	}
	for _, at := range []uint64{0, memory} {
		if errno := c.dmaMap(fd, at, at, memory, rw); errno != 0 {
			t.Error(errno)
		}
	}
	if err := errors.Join(f.Write(0, b), f.Write(memory, b)); err != nil {
		t.Error(err)
	}
}

// TestLimits: the number of windows and of files.
func TestLimits(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 65535 {
			c.send(dmaMap, noReply, body(32, rw, uint64(0), uint64(2*i+2)*page, uint64(page)))
		}
		// The last window is of two pages and more, so that it can be cut in the middle.
		c.send(dmaUnmap, noReply, body(24, 0, uint64(2)*page, uint64(page)))
		c.send(dmaMap, noReply, body(32, rw, uint64(0), uint64(1<<40), uint64(3*page)))
		c.send(dmaMap, 0, body(32, rw, uint64(0), uint64(1<<50), uint64(page)))
		c.send(dmaUnmap, 0, body(24, 0, uint64(1<<40+page), uint64(page)))
		c.send(dmaUnmap, 0, body(24, 0, uint64(1<<40+page), uint64(2*page)))
		c.send(dmaUnmap, 0, body(24, 2, uint64(0), uint64(0)))
	}()
	for i, want := range []unix.Errno{unix.ENOSPC, unix.ENOSPC, 0, 0} {
		if r := c.recv(); unix.Errno(r.errno) != want {
			t.Errorf("step %d: %v instead of %v", i, unix.Errno(r.errno), want)
		}
	}
	<-sent
	for i := range 257 {
		fd, err := unix.MemfdCreate("many", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Ftruncate(fd, page)
		errno := c.dmaMap(fd, 0, uint64(i)*page, page, rw)
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]unix.Errno{true: unix.ENOMEM}[i == 256]; errno != want {
			t.Errorf("file %d: %v", i, errno)
		}
	}
	if errno := c.dmaUnmap(0, page); errno != 0 {
		t.Error(errno)
	}
	fd, _ := memfd(t, page, true)
	if errno := c.dmaMap(fd, 0, 0, page, rw); errno != 0 {
		t.Errorf("after one is unmapped: %v", errno)
	}
}

// TestMessages: memory without a file, and addresses that are not mapped, are asked for.
func TestMessages(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, mem := memfd(t, page, true)
	ours := connect(t, t.Context(), f, dev)
	ours.want(version, body(uint16(0), uint16(0), `{"capabilities":{"max_data_xfer_size":5000}}`))
	ours.master()
	if errno := ours.dmaMap(-1, 0, iova, 2*page, rw); errno != 0 {
		t.Fatal(errno)
	}
	if errno := ours.dmaMap(fd, 0, iova+2*page, page, rw); errno != 0 {
		t.Fatal(errno)
	}
	mem[0] = 0x55
	// A read from an address before all windows to the middle of the last, in pieces.
	got := make([]byte, 3*page+10)
	done := make(chan error)
	go func() { done <- f.Read(iova-page, got) }()
	for _, want := range []struct{ at, n uint64 }{{iova - page, page}, {iova, 5000}, {iova + 5000, 2*page - 5000}} {
		m := ours.recv()
		if m.cmd != dmaRead || m.flags != 0 || !bytes.Equal(m.body, body(want.at, want.n)) {
			t.Fatalf("%+v instead of %#x+%d", m, want.at, want.n)
		}
		ours.sendRaw(body(m.id, m.cmd, 32+int(want.n), isReply, 0, want.at, want.n, bytes.Repeat([]byte{byte(want.n)}, int(want.n))))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n5000, rest := 5000, uint64(2*page-5000); got[0] != 0 || got[page] != byte(n5000) || got[page+5000] != byte(rest) || got[3*page] != 0x55 {
		t.Error("the bytes that were read are others")
	}
	// Errors of the client.
	for errno, want := range map[int]unix.Errno{19: unix.ENODEV, 0: unix.EIO, -1: unix.EIO} {
		go func() { done <- f.Write(7, []byte{1, 2, 3}) }()
		m := ours.recv()
		if m.cmd != dmaWrite || !bytes.Equal(m.body, body(uint64(7), uint64(3), []byte{1, 2, 3})) {
			t.Fatalf("%+v", m)
		}
		ours.sendRaw(body(m.id, m.cmd, 16, isReply|isError, errno))
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("errno %d: %v", errno, err)
		}
	}
	// The count of an answer to a write may have four bytes.
	go func() { done <- f.Write(7, []byte{1, 2, 3}) }()
	m := ours.recv()
	ours.sendRaw(body(m.id, m.cmd, 28, isReply, 0, uint64(7), 3))
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Several at once, answered in another order, while commands are served.
	const several = 8
	var all sync.WaitGroup
	results := make([][1]byte, several)
	for i := range results {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := f.Read(uint64(0x100+i), results[i][:]); err != nil {
				t.Error(err)
			}
		}()
	}
	asked := make([]received, several)
	for i := range asked {
		asked[i] = ours.recv()
	}
	ours.write32(0, 0, 1)
	for i := range asked {
		m := asked[several-1-i]
		at := ne.Uint64(m.body)
		ours.sendRaw(body(m.id, m.cmd, 33, isReply, 0, at, uint64(1), []byte{byte(at)}))
	}
	all.Wait()
	for i, r := range results {
		if r[0] != byte(i) {
			t.Errorf("read %d has %#x", i, r[0])
		}
	}
	// The client goes while it is asked.
	go func() { done <- f.Read(7, got) }()
	ours.recv()
	if err := ours.hangUp(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, vfiouser.ErrNoClient) {
		t.Error(err)
	}
}

// TestWrongAnswers: what does not fit the question ends the connection.
func TestWrongAnswers(t *testing.T) {
	for name, answer := range map[string]func(id uint16) []byte{
		"command": func(id uint16) []byte { return body(id, uint16(dmaWrite), 36, isReply, 0, uint64(0x100), uint64(4), 0) },
		"short": func(id uint16) []byte {
			return body(id, uint16(dmaRead), 35, isReply, 0, uint64(0x100), uint64(4), []byte{1, 2, 3})
		},
		"long": func(id uint16) []byte {
			return body(id, uint16(dmaRead), 40, isReply, 0, uint64(0x100), uint64(4), uint64(0))
		},
		"address": func(id uint16) []byte { return body(id, uint16(dmaRead), 36, isReply, 0, uint64(0x101), uint64(4), 0) },
		"count":   func(id uint16) []byte { return body(id, uint16(dmaRead), 36, isReply, 0, uint64(0x100), uint64(5), 0) },
		"nothing": func(id uint16) []byte { return body(id, uint16(dmaRead), 16, isReply, 0) },
		"number": func(id uint16) []byte {
			return body(id+1, uint16(dmaRead), 36, isReply, 0, uint64(0x100), uint64(4), 0)
		},
	} {
		f, dev := newFunction(t, full())
		c := start(t, f, dev)
		c.master()
		done := make(chan error)
		go func() { done <- f.Read(0x100, make([]byte, 4)) }()
		c.sendRaw(answer(c.recv().id))
		if err := <-done; err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := <-c.end; !errors.Is(err, vfiouser.ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDMAInHandlers: a device may wait for a message in a posted write; in a read, which
// the client waits for, it gets an error, and further ones at once.
func TestDMAInHandlers(t *testing.T) {
	cfg := full()
	cfg.MessageTimeout = time.Millisecond
	f, dev := newFunction(t, cfg)
	got := make(chan error, 3)
	dev.read = func(_ int, _ uint64, p []byte) {
		for range 3 {
			got <- f.Read(0x100, make([]byte, 4))
		}
	}
	c := start(t, f, dev)
	c.master()
	id := c.send(regionRead, 0, body(uint64(0), 0, 4))
	var asked []received
	for {
		m := c.recv()
		if m.flags&isReply != 0 {
			if m.id != id {
				t.Fatalf("%+v", m)
			}
			break
		}
		asked = append(asked, m)
	}
	for range 3 {
		if err := <-got; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
	// The answers come late, and nobody minds.
	for _, m := range asked {
		c.sendRaw(body(m.id, m.cmd, 36, isReply, 0, uint64(0x100), uint64(4), 0))
	}
	c.write32(0, 0, 5)

	cfg.MessageTimeout = 0
	f, dev = newFunction(t, cfg)
	dev.write = func(_ int, _ uint64, p []byte) { got <- f.Read(0x100, p) }
	c = start(t, f, dev)
	c.master()
	c.send(regionWrite, noReply, body(uint64(0), 0, 4, 1))
	m := c.recv()
	c.sendRaw(body(m.id, m.cmd, 36, isReply, 0, uint64(0x100), uint64(4), 0))
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestUnmapWaits: no copy reaches memory after its unmapping was answered, and windows are
// given back before.
func TestUnmapWaits(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, mem := memfd(t, memory, true)
	c := start(t, f, dev)
	c.master()
	var (
		stop    atomic.Bool
		workers sync.WaitGroup
		mu      sync.Mutex // the device's: held while it uses a window
		held    []byte
		used    atomic.Int64
	)
	dev.mu.Lock()
	dev.drop = func() {
		mu.Lock()
		held = nil
		mu.Unlock()
	}
	dev.mu.Unlock()
	for i := range 3 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			b := []byte{1, 2, 3, 4}
			for ; !stop.Load(); runtime.Gosched() {
				switch i {
				case 0:
					if f.Write(iova, b) == nil {
						used.Add(1)
					}
				case 1:
					_ = f.Read(iova+page, b)
				case 2:
					mu.Lock()
					if held == nil {
						held = f.Window(iova, memory)
					}
					if held != nil {
						held[8]++
						used.Add(1)
					}
					mu.Unlock()
				}
			}
		}()
	}
	// The workers also ask for what is not mapped; the test answers.
	rounds := 0
	reply := func(id uint16) {
		for {
			m := c.recv()
			if m.flags&isReply != 0 {
				if m.id != id || m.flags&isError != 0 {
					t.Errorf("%+v", m)
				}
				return
			}
			c.sendRaw(body(m.id, m.cmd, 16, isReply|isError, int(unix.ENXIO)))
		}
	}
	for used.Load() < 500 || rounds < 20 {
		rounds++
		reply(c.send(dmaMap, 0, body(32, rw, uint64(0), iova, uint64(memory)), fd))
		reply(c.send(regionWrite, 0, body(uint64(0), 0, 4, 0)))
		reply(c.send(dmaUnmap, 0, body(24, 0, iova, uint64(memory))))
		// Now the memory is the test's alone.
		for i := range 64 {
			mem[i] = 0xaa
		}
		for i := range 64 {
			if mem[i] != 0xaa {
				t.Fatalf("byte %d was written after the unmapping", i)
			}
		}
	}
	stop.Store(true)
	// Who is being answered no more gets an error.
	if err := c.hangUp(); err != nil {
		t.Error(err)
	}
	workers.Wait()
	if drops, _ := dev.counts(); drops == 0 {
		t.Error("the device was never told to give windows back")
	}
}

// TestDMAAllocatesNothing.
func TestDMAAllocatesNothing(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		f, dev := newFunction(t, full())
		fd, _ := memfd(t, memory, sealed)
		c := start(t, f, dev)
		c.master()
		if errno := c.dmaMap(fd, 0, iova, memory, rw); errno != 0 {
			t.Fatal(errno)
		}
		desc, frame := make([]byte, 32), make([]byte, 1514)
		if n := testing.AllocsPerRun(100, func() {
			if f.Read(iova+64, desc) != nil || f.Write(iova+64, desc[:4]) != nil || f.Write(iova+page+2, frame) != nil {
				t.Error("an access failed")
			}
			if f.Window(iova, 32) == nil == sealed {
				t.Error("a window")
			}
		}); n != 0 {
			t.Errorf("sealed %v: %v allocations", sealed, n)
		}
	}
}

func BenchmarkDMA(b *testing.B) {
	f, dev := newFunction(b, full())
	fd, _ := memfd(b, memory, true)
	c := start(b, f, dev)
	c.master()
	for i := range uint64(64) { // 64 ranges, as a guest behind an IOMMU has
		if errno := c.dmaMap(fd, 0, iova+i*2*memory, memory, rw); errno != 0 {
			b.Fatal(errno)
		}
	}
	for name, n := range map[string]int{"read 4": 4, "read 32": 32, "read 1514": 1514} {
		p := make([]byte, n)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Read(iova+64, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("window 32, two ranges", func(b *testing.B) {
		b.ReportAllocs()
		for i := uint64(0); b.Loop(); i++ {
			if w := f.Window(iova+i&1*2*memory+64, 32); binary.NativeEndian.Uint32(w) == 1 {
				b.Fatal("it was 0")
			}
		}
	})
}
