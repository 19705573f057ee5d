package vfiouser_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

func TestVersion(t *testing.T) {
	const ok = unix.Errno(0)
	for name, c := range map[string]struct {
		body  []byte
		errno unix.Errno
		caps  map[string]any // of the reply
	}{
		"as QEMU": {body(uint16(0), uint16(0), qemuCaps), ok, map[string]any{"max_msg_fds": 16., "max_data_xfer_size": 1048576., "max_dma_maps": 65535., "pgsizes": 4096., "write_multiple": true}},
		"later minor and twin socket": {body(uint16(0), uint16(7), `{"capabilities":{"twin_socket":{"supported":true},"max_msg_fds":1,"write_multiple":false,"other":[1]},"x":{}}`), ok,
			map[string]any{"max_msg_fds": 16., "write_multiple": false}},
		"no data":            {body(uint16(0), uint16(0)), ok, map[string]any{}},
		"empty data":         {body(uint16(0), uint16(0), ""), ok, map[string]any{}},
		"no NUL":             {body(uint16(0), uint16(0), []byte(`{"capabilities":{"pgsizes":4096}}`)), ok, map[string]any{"pgsizes": 4096.}},
		"bytes behind NUL":   {body(uint16(0), uint16(0), "{}", "}{"), ok, map[string]any{}},
		"major":              {body(uint16(1), uint16(0), "{}"), unix.EPROTONOSUPPORT, nil},
		"short":              {body(uint16(0)), unix.EINVAL, nil},
		"nothing":            {nil, unix.EINVAL, nil},
		"no JSON":            {body(uint16(0), uint16(0), "{"), unix.EINVAL, nil},
		"two objects":        {body(uint16(0), uint16(0), "{}{}"), unix.EINVAL, nil},
		"array":              {body(uint16(0), uint16(0), "[]"), unix.EINVAL, nil},
		"capabilities are 1": {body(uint16(0), uint16(0), `{"capabilities":1}`), unix.EINVAL, nil},
		"negative":           {body(uint16(0), uint16(0), `{"capabilities":{"max_msg_fds":-1}}`), unix.EINVAL, nil},
		"float":              {body(uint16(0), uint16(0), `{"capabilities":{"max_data_xfer_size":1e400}}`), unix.EINVAL, nil},
		"a string":           {body(uint16(0), uint16(0), `{"capabilities":{"pgsizes":"4096"}}`), unix.EINVAL, nil},
		"no data at a time":  {body(uint16(0), uint16(0), `{"capabilities":{"max_data_xfer_size":0}}`), unix.EINVAL, nil},
		"other pages":        {body(uint16(0), uint16(0), `{"capabilities":{"pgsizes":65536}}`), unix.EINVAL, nil},
		"deep":               {body(uint16(0), uint16(0), strings.Repeat("[", 20000)), unix.EINVAL, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, dev := newFunction(t, full())
			peer := connect(t, context.Background(), f, dev)
			got, errno := peer.call(version, c.body)
			if errno != c.errno {
				t.Fatalf("%v instead of %v", errno, c.errno)
			}
			if errno != 0 { // then the connection ends
				var e *vfiouser.Error
				if err := <-peer.end; !errors.As(err, &e) || e.Op != "VERSION" || e.Dev != "1f0a:6801" || !errors.Is(err, c.errno) {
					t.Error(err)
				}
				if _, err := peer.read(); err == nil {
					t.Error("the connection is open")
				}
				return
			}
			var data struct {
				Capabilities map[string]any `json:"capabilities"`
			}
			if len(got) < 6 || ne.Uint32(got) != 0 || got[len(got)-1] != 0 {
				t.Fatalf("%q", got)
			}
			if err := json.Unmarshal(got[4:len(got)-1], &data); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.caps, data.Capabilities); d != "" {
				t.Errorf("capabilities (-want +got):\n%s", d)
			}
			if _, errno := peer.call(version, c.body); errno != unix.EINVAL {
				t.Errorf("a second VERSION: %v", errno)
			}
			if got := peer.want(getInfo, body(16, 0, 0, 0)); !cmp.Equal(got, body(16, 3, 9, 5)) {
				t.Errorf("%v", got)
			}
			if err := peer.hangUp(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFirstIsVersion: nothing else is served before.
func TestFirstIsVersion(t *testing.T) {
	for _, cmd := range []uint16{0, dmaMap, getInfo, regionRead, deviceReset, 99} {
		f, dev := newFunction(t, full())
		c := connect(t, context.Background(), f, dev)
		if _, errno := c.call(cmd, body(16, 0, 0, 0)); errno != unix.EINVAL {
			t.Errorf("command %d: %v", cmd, errno)
		}
		if err := <-c.end; !errors.Is(err, unix.EINVAL) {
			t.Errorf("command %d: %v", cmd, err)
		}
		if _, resets := dev.counts(); resets != 0 {
			t.Error("the device was reset")
		}
	}
}

// TestFraming: what is no message ends the connection, with a reply where there can be one.
func TestFraming(t *testing.T) {
	for name, c := range map[string]struct {
		size, flags int
		errno       unix.Errno
	}{
		"no header":  {15, 0, unix.E2BIG},
		"size 0":     {0, 0, unix.E2BIG},
		"too long":   {32 + 1<<20 + 1, 0, unix.E2BIG},
		"largest":    {-1, 0, unix.E2BIG},
		"type 2":     {16, 2, unix.EINVAL},
		"type 15":    {16, 15, unix.EINVAL},
		"not a word": {16, 2 | noReply, unix.EINVAL},
	} {
		f, dev := newFunction(t, full())
		p := start(t, f, dev)
		p.sendRaw(body(uint16(77), uint16(getInfo), c.size, c.flags, 0))
		r := p.recv()
		if r.id != 77 || r.cmd != getInfo || r.flags != isReply|isError || unix.Errno(r.errno) != c.errno {
			t.Errorf("%s: %+v", name, r)
		}
		if err := <-p.end; !errors.Is(err, vfiouser.ErrMessage) || !errors.Is(err, c.errno) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, dev := newFunction(t, full())
	p := start(t, f, dev)
	p.sendRaw(body(uint16(77), uint16(dmaRead), 16, isReply, 0))
	if err := <-p.end; !errors.Is(err, vfiouser.ErrMessage) || !strings.Contains(err.Error(), "DMA_READ, which was not sent") {
		t.Errorf("an answer to nothing: %v", err)
	}
	for _, cut := range []int{1, 15, 17, 30} {
		p := start(t, f, dev)
		p.sendRaw(body(uint16(1), uint16(getInfo), 32, 0, 0, 16, 0, 0, 0)[:cut])
		if err := p.hangUp(); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("a message of %d bytes: %v", cut, err)
		}
	}
}

// TestPieces: a message may come byte by byte.
func TestPieces(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	for _, b := range body(uint16(9), uint16(getInfo), 32, 0, 0, 16, 0, 0, 0) {
		c.sendRaw([]byte{b})
	}
	if r := c.recv(); r.id != 9 || !cmp.Equal(r.body, body(16, 3, 9, 5)) {
		t.Errorf("%+v", r)
	}
}

// TestInfo: what there is.
func TestInfo(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	for i, size := range map[int]uint64{0: 0x1_0000, 1: 0x100, 2: 0x4000, 3: 0, 4: 0, 5: 0, romRegion: 0, configRegion: 4096, vgaRegion: 0} {
		flags := 0
		if size > 0 {
			flags = 3
		}
		want := body(32, flags, i, 0, size, uint64(0))
		if got := c.want(getRegionInfo, body(64, 0, i, 0, uint64(0), uint64(0))); !cmp.Equal(got, want) {
			t.Errorf("region %d: %v instead of %v", i, got, want)
		}
	}
	for i, want := range [][2]int{{7, 1}, {9, 8}, {1, 70}, {1, 1}, {1, 1}} {
		if got := c.want(getIRQInfo, body(16, 0, i, 0)); !cmp.Equal(got, body(16, want[0], i, want[1])) {
			t.Errorf("interrupt %d: %v", i, got)
		}
	}
	plain, dev := newFunction(t, vfiouser.Config{})
	c = start(t, plain, dev)
	if got := c.want(getRegionInfo, body(32, 0, configRegion, 0, uint64(0), uint64(0))); ne.Uint64(got[16:]) != 256 {
		t.Errorf("configuration space without PCI Express: %v", got)
	}
	for i, n := range []int{0, 0, 0, 1, 1} {
		if got := c.want(getIRQInfo, body(16, 0, i, 0)); ne.Uint32(got[12:]) != uint32(n) {
			t.Errorf("interrupt %d: %v", i, got)
		}
	}
}

// refused is what is wrong with commands, and what they are answered.
var refused = map[string]struct {
	cmd   uint16
	body  []byte
	errno unix.Errno
}{
	"unknown command":             {99, nil, unix.EOPNOTSUPP},
	"command 0":                   {0, nil, unix.EOPNOTSUPP},
	"DMA_READ of the client":      {dmaRead, body(uint64(0), uint64(4)), unix.EOPNOTSUPP},
	"region descriptors":          {getRegionFDs, body(16, 0, 0, 0), unix.EOPNOTSUPP},
	"feature":                     {feature, body(8, 1<<16|1), unix.EOPNOTSUPP},
	"info: short":                 {getInfo, body(16, 0, 0), unix.EINVAL},
	"info: argsz":                 {getInfo, body(15, 0, 0, 0), unix.EINVAL},
	"region info: short":          {getRegionInfo, body(32, 0, 0, 0), unix.EINVAL},
	"region info: argsz":          {getRegionInfo, body(31, 0, 0, 0, uint64(0), uint64(0)), unix.EINVAL},
	"region info: index":          {getRegionInfo, body(32, 0, 9, 0, uint64(0), uint64(0)), unix.EINVAL},
	"region info: largest index":  {getRegionInfo, body(32, 0, -1, 0, uint64(0), uint64(0)), unix.EINVAL},
	"irq info: short":             {getIRQInfo, nil, unix.EINVAL},
	"irq info: argsz":             {getIRQInfo, body(0, 0, 0, 0), unix.EINVAL},
	"irq info: index":             {getIRQInfo, body(16, 0, 5, 0), unix.EINVAL},
	"read: short":                 {regionRead, body(uint64(0), 0), unix.EINVAL},
	"read: region":                {regionRead, body(uint64(0), 9, 4), unix.EINVAL},
	"read: not there":             {regionRead, body(uint64(0), romRegion, 4), unix.EINVAL},
	"read: nothing":               {regionRead, body(uint64(0), 0, 0), unix.EINVAL},
	"read: behind the end":        {regionRead, body(uint64(0xfffd), 0, 4), unix.EINVAL},
	"read: far behind":            {regionRead, body(^uint64(0), 0, 4), unix.EINVAL},
	"read: wraps":                 {regionRead, body(^uint64(0)-3, 0, 8), unix.EINVAL},
	"read: config end":            {regionRead, body(uint64(1), configRegion, 4096), unix.EINVAL},
	"read: too much":              {regionRead, body(uint64(0), 0, 1<<20+1), unix.EINVAL},
	"read: largest count":         {regionRead, body(uint64(0), 0, -1), unix.EINVAL},
	"write: short":                {regionWrite, body(uint64(0), 0), unix.EINVAL},
	"write: data missing":         {regionWrite, body(uint64(0), 0, 8, uint32(1)), unix.EINVAL},
	"write: data left":            {regionWrite, body(uint64(0), 0, 4, uint64(1)), unix.EINVAL},
	"write: nothing":              {regionWrite, body(uint64(0), 0, 0), unix.EINVAL},
	"write: behind the end":       {regionWrite, body(uint64(0xfffd), 0, 4, uint32(1)), unix.EINVAL},
	"write: largest count":        {regionWrite, body(uint64(0), 0, -1, uint32(1)), unix.EINVAL},
	"multi: short":                {writeMulti, body(1), unix.EINVAL},
	"multi: none there":           {writeMulti, body(uint64(1)), unix.EINVAL},
	"multi: one too many":         {writeMulti, body(uint64(0), uint64(0), 0, 4, uint64(0)), unix.EINVAL},
	"multi: count wraps":          {writeMulti, body(uint64(1<<61), uint64(0), 0, 4, uint64(0)), unix.EINVAL},
	"multi: largest count":        {writeMulti, body(^uint64(0)), unix.EINVAL},
	"multi: 9 bytes":              {writeMulti, body(uint64(1), uint64(0), 0, 9, uint64(0)), unix.EINVAL},
	"multi: region":               {writeMulti, body(uint64(1), uint64(0), 77, 4, uint64(0)), unix.EINVAL},
	"map: short":                  {dmaMap, body(32, 3, uint64(0), uint64(0)), unix.EINVAL},
	"map: argsz":                  {dmaMap, body(31, 3, uint64(0), uint64(0), uint64(4096)), unix.EINVAL},
	"map: no access":              {dmaMap, body(32, 0, uint64(0), uint64(0), uint64(4096)), unix.EINVAL},
	"map: flags":                  {dmaMap, body(32, 7, uint64(0), uint64(0), uint64(4096)), unix.EINVAL},
	"map: nothing":                {dmaMap, body(32, 3, uint64(0), uint64(0), uint64(0)), unix.EINVAL},
	"map: half a page":            {dmaMap, body(32, 3, uint64(0), uint64(0), uint64(2048)), unix.EINVAL},
	"map: inside a page":          {dmaMap, body(32, 3, uint64(0), uint64(2048), uint64(4096)), unix.EINVAL},
	"map: offset":                 {dmaMap, body(32, 3, uint64(512), uint64(0), uint64(4096)), unix.EINVAL},
	"map: wraps":                  {dmaMap, body(32, 3, uint64(0), ^uint64(4095), uint64(8192)), unix.EINVAL},
	"unmap: short":                {dmaUnmap, body(24, 0, uint64(0)), unix.EINVAL},
	"unmap: argsz":                {dmaUnmap, body(23, 0, uint64(0), uint64(4096)), unix.EINVAL},
	"unmap: flags":                {dmaUnmap, body(24, 1, uint64(0), uint64(4096)), unix.EINVAL},
	"unmap: nothing":              {dmaUnmap, body(24, 0, uint64(0), uint64(0)), unix.EINVAL},
	"unmap: wraps":                {dmaUnmap, body(24, 0, uint64(4096), ^uint64(0)), unix.EINVAL},
	"unmap: all of something":     {dmaUnmap, body(24, 2, uint64(0), uint64(4096)), unix.EINVAL},
	"irqs: short":                 {setIRQs, body(20, dataNone|actionTrigger, msix, 0), unix.EINVAL},
	"irqs: argsz":                 {setIRQs, body(19, dataNone|actionTrigger, msix, 0, 0), unix.EINVAL},
	"irqs: index":                 {setIRQs, body(20, dataNone|actionTrigger, 5, 0, 0), unix.EINVAL},
	"irqs: largest index":         {setIRQs, body(20, dataNone|actionTrigger, -1, 0, 0), unix.EINVAL},
	"irqs: no data":               {setIRQs, body(20, actionTrigger, msix, 0, 1), unix.EINVAL},
	"irqs: two kinds":             {setIRQs, body(21, dataNone|dataBool|actionTrigger, msix, 0, 1, []byte{1}), unix.EINVAL},
	"irqs: no action":             {setIRQs, body(20, dataNone, msix, 0, 1), unix.EINVAL},
	"irqs: two actions":           {setIRQs, body(20, dataNone|actionMask|actionUnmask, msix, 0, 1), unix.EINVAL},
	"irqs: flags":                 {setIRQs, body(20, dataNone|actionMask|64, msix, 0, 1), unix.EINVAL},
	"irqs: one too many":          {setIRQs, body(20, dataNone|actionTrigger, msix, 0, 71), unix.EINVAL},
	"irqs: behind the end":        {setIRQs, body(20, dataNone|actionTrigger, msix, 70, 1), unix.EINVAL},
	"irqs: wraps":                 {setIRQs, body(20, dataNone|actionTrigger, msix, -1, 2), unix.EINVAL},
	"irqs: none from the second":  {setIRQs, body(20, dataNone|actionTrigger, msix, 1, 0), unix.EINVAL},
	"irqs: mask none":             {setIRQs, body(20, dataNone|actionMask, msix, 0, 0), unix.EINVAL},
	"irqs: no booleans":           {setIRQs, body(20, dataBool|actionTrigger, msix, 0, 2, []byte{1}), unix.EINVAL},
	"irqs: all booleans":          {setIRQs, body(20, dataBool|actionTrigger, msix, 0, -1, []byte{1}), unix.EINVAL},
	"irqs: an eventfd for masks":  {setIRQs, body(20, dataEventfd|actionMask, msix, 0, 1), unix.ENOTTY},
	"irqs: mask a notification":   {setIRQs, body(20, dataNone|actionMask, errIRQ, 0, 1), unix.ENOTTY},
	"irqs: unmask the wrong line": {setIRQs, body(20, dataEventfd|actionUnmask, intx, 1, 1), unix.EINVAL},
}

// TestRefused: each is answered with its errno, changes nothing, and the connection goes
// on; without an answer it is reported all the same.
func TestRefused(t *testing.T) {
	reports := make(chan error, 1)
	cfg := full()
	cfg.Report = func(err error) { reports <- err }
	f, dev := newFunction(t, cfg)
	c := start(t, f, dev)
	for name, r := range maps.All(refused) {
		_, errno := c.call(r.cmd, r.body)
		var e *vfiouser.Error
		if err := <-reports; errno != r.errno || !errors.Is(err, r.errno) || !errors.As(err, &e) || e.Dev != "1f0a:6801" {
			t.Errorf("%s: %v instead of %v; reported %v", name, errno, r.errno, err)
		}
		c.send(r.cmd, noReply, r.body)
		if err := <-reports; !errors.Is(err, r.errno) {
			t.Errorf("%s: reported %v", name, err)
		}
	}
	if log := dev.taken(); log != "" {
		t.Errorf("the device saw %s", log)
	}
	if _, resets := dev.counts(); resets != 0 {
		t.Error("the device was reset")
	}
	if got := c.want(getInfo, body(16, 0, 0, 0)); !cmp.Equal(got, body(16, 3, 9, 5)) {
		t.Errorf("afterwards: %v", got)
	}
	if err := c.hangUp(); err != nil {
		t.Error(err)
	}
}

// TestRegions: reads and writes of any size reach the device in aligned words.
func TestRegions(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	c.writeN(0, 0x10, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	c.writeN(0, 0x21, []byte{9})
	c.writeN(0, 0x32, []byte{10, 11})
	c.write32(0, 0xfffc, 0xdeadbeef)
	c.writeN(1, 0xf3, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	if got, want := dev.taken(), "W10+8 W21+1 W32+2 Wfffc+4 Wf3+1 Wf4+4 Wf8+8"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if got := c.readN(0, 0x10, 8); !cmp.Equal(got, []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("% x", got)
	}
	if got := c.read32(0, 0xfffc); got != 0xdeadbeef {
		t.Errorf("%#x", got)
	}
	if got := c.readN(1, 0xf1, 6); !cmp.Equal(got, []byte{0, 0, 1, 2, 3, 4}) {
		t.Errorf("% x", got)
	}
	if got, want := dev.taken(), "R10+8 Rfffc+4 Rf1+1 Rf2+2 Rf4+2 Rf6+1"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if got := c.readN(0, 0, 0x1_0000); len(got) != 0x1_0000 || got[0x21] != 9 || got[0x33] != 11 {
		t.Error("a read of a whole BAR")
	}
}

// TestPosted: writes without a reply come before the next command, as many as there are.
func TestPosted(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	const n = 1000
	for i := range n {
		c.send(regionWrite, noReply, body(uint64(4*i), 0, 4, i))
	}
	if got := c.read32(0, 4*(n-1)); got != n-1 {
		t.Errorf("%d", got)
	}
	if got := strings.Count(dev.taken(), "W"); got != n {
		t.Errorf("%d writes", got)
	}
	var several []byte
	for i := range 200 {
		several = append(several, body(uint64(8*i), 0, 1<<(i%4), uint64(i+1))...)
	}
	c.send(writeMulti, noReply, append(body(uint64(200)), several...))
	if got := c.readN(0, 8*199, 8); got[0] != 200 {
		t.Errorf("% x", got)
	}
	if got := c.want(writeMulti, append(body(uint64(200)), several...)); !cmp.Equal(got, body(uint64(200))) {
		t.Errorf("%v", got)
	}
	if got := c.want(writeMulti, body(uint64(0))); !cmp.Equal(got, body(uint64(0))) {
		t.Errorf("%v", got)
	}
	// Those before the one that is wrong are done.
	dev.taken()
	if _, errno := c.call(writeMulti, body(uint64(3), uint64(0), 0, 4, uint64(7), uint64(0), 9, 4, uint64(8), uint64(4), 0, 4, uint64(9))); errno != unix.EINVAL {
		t.Error(errno)
	}
	if got := dev.taken(); got != "W0+4" {
		t.Errorf("%s", got)
	}
}

// TestConfigSpace: identification, BARs, capabilities, and what can be written.
func TestConfigSpace(t *testing.T) {
	cfg := full()
	cfg.Capabilities = []vfiouser.Capability{{ID: 9, Body: []byte{5, 1, 2}, Writable: []byte{0, 0xf0, 0}}}
	f, dev := newFunction(t, cfg)
	c := start(t, f, dev)
	all := c.readN(configRegion, 0, 4096)
	le := binary.LittleEndian
	for _, v := range []struct {
		off  int
		want uint32
	}{{0, 0x6801_1f0a}, {4, 0x0010_0000}, {8, 0x020000_03}, {0x10, 0}, {0x14, 0}, {0x18, 0x0c}, {0x1c, 0}, {0x2c, 0x5678_1234}, {0x30, 0}, {0x34, 0x40}, {0x3c, 0x0100}, {0x100, 0}} {
		if got := le.Uint32(all[v.off:]); got != v.want {
			t.Errorf("%#x: %#x instead of %#x", v.off, got, v.want)
		}
	}
	caps := map[byte]int{}
	for at := int(all[0x34]); at != 0; at = int(all[at+1]) {
		if at%4 != 0 || at < 0x40 || caps[all[at]] != 0 {
			t.Fatalf("a capability %#x at %#x", all[at], at)
		}
		caps[all[at]] = at
	}
	if len(caps) != 5 || caps[1] == 0 || caps[5] == 0 || caps[0x10] == 0 || caps[0x11] == 0 || caps[9] == 0 {
		t.Fatalf("capabilities %v", caps)
	}
	// Sizes of BARs.
	for off, want := range map[uint64]uint32{0x10: 0xffff_0000, 0x14: 0xffff_ff00, 0x18: 0xffff_c00c, 0x1c: 0xffff_ffff, 0x20: 0, 0x24: 0, 0x30: 0} {
		c.write32(configRegion, off, 0xffff_ffff)
		if got := c.read32(configRegion, off); got != want {
			t.Errorf("BAR at %#x: %#x instead of %#x", off, got, want)
		}
	}
	// What every register keeps of ones, and of zeros.
	for _, v := range []struct {
		off        uint64
		ones, zero uint32
	}{
		{0, 0x6801_1f0a, 0x6801_1f0a}, {4, 0x0010_0546, 0x0010_0000}, {8, 0x020000_03, 0x020000_03}, {0xc, 0xff, 0}, {0x3c, 0x01ff, 0x0100},
		{uint64(caps[1]) + 4, 0x0b, 0x08},
		{uint64(caps[5]), 0x0187_0005 | uint32(all[caps[5]+1])<<8 | 0x70_0000, 0x0186_0005 | uint32(all[caps[5]+1])<<8},
		{uint64(caps[5]) + 4, 0xffff_fffc, 0}, {uint64(caps[5]) + 8, 0xffff_ffff, 0}, {uint64(caps[5]) + 12, 0xffff, 0}, {uint64(caps[5]) + 16, 0xff, 0}, {uint64(caps[5]) + 20, 0, 0},
		{uint64(caps[0x11]), 0xc045_0011 | uint32(all[caps[0x11]+1])<<8, 0x0045_0011 | uint32(all[caps[0x11]+1])<<8},
		{uint64(caps[0x11]) + 4, 0x1002, 0x1002}, {uint64(caps[0x11]) + 8, 0x2002, 0x2002},
		{uint64(caps[9]), 0xf105_0009, 0x0105_0009}, {uint64(caps[9]) + 4, 2, 2}, {0x100, 0, 0}, {0xffc, 0, 0},
	} {
		c.write32(configRegion, v.off, 0xffff_ffff)
		ones := c.read32(configRegion, v.off)
		c.write32(configRegion, v.off, 0)
		if zero := c.read32(configRegion, v.off); ones != v.ones || zero != v.zero {
			t.Errorf("%#x: %#x and %#x instead of %#x and %#x", v.off, ones, zero, v.ones, v.zero)
		}
	}
}

// TestReset: by command and by the bit of PCI Express.
func TestReset(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	pcie := uint64(0)
	all := c.readN(configRegion, 0, 256)
	for at := int(all[0x34]); at != 0; at = int(all[at+1]) {
		if all[at] == 0x10 {
			pcie = uint64(at)
		}
	}
	if binary.LittleEndian.Uint32(all[pcie+4:])&(1<<28) == 0 {
		t.Error("no function-level reset")
	}
	for i, reset := range []func(){
		func() { c.want(deviceReset, nil) },
		func() { c.write16(configRegion, pcie+8, 0x8010) },
		func() { c.writeN(configRegion, pcie+9, []byte{0x80}) },
	} {
		c.master()
		c.write32(configRegion, 0x10, 0xfe00_0000)
		c.write32(2, 0x1000, 0xfee0_0000)
		c.write32(0, 0, 7)
		f.SetINTx(true)
		reset()
		if _, resets := dev.counts(); resets != i+1 {
			t.Errorf("%d resets after %d", resets, i+1)
		}
		got := []uint32{c.read32(configRegion, 4), c.read32(configRegion, 0x10), c.read32(2, 0x1000), c.read32(2, 0x100c), c.read32(0, 0), c.read32(configRegion, pcie+8)}
		if d := cmp.Diff([]uint32{0x0010_0000, 0, 0, 1, 0, 0}, got); d != "" {
			t.Errorf("reset %d (-want +got):\n%s", i, d)
		}
	}
}

// TestConfigIsChecked: what is no PCI function is refused.
func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*vfiouser.Config){
		"vendor":              func(c *vfiouser.Config) { c.Vendor = 0xffff },
		"class":               func(c *vfiouser.Config) { c.Class = 1 << 24 },
		"timeout":             func(c *vfiouser.Config) { c.MessageTimeout = -1 },
		"BAR size":            func(c *vfiouser.Config) { c.BARs[0].Size = 0x3000 },
		"BAR too small":       func(c *vfiouser.Config) { c.BARs[0].Size = 8 },
		"BAR too large":       func(c *vfiouser.Config) { c.BARs[0].Size = 1 << 32 },
		"BAR much too large":  func(c *vfiouser.Config) { c.BARs[2].Size = 1 << 63 },
		"BAR of 64 bits":      func(c *vfiouser.Config) { c.BARs[3].Size = 16 },
		"the last of 64 bits": func(c *vfiouser.Config) { c.BARs[5] = vfiouser.BAR{Size: 16, Wide: true} },
		"MSI":                 func(c *vfiouser.Config) { c.MSI.Vectors = 3 },
		"MSI many":            func(c *vfiouser.Config) { c.MSI.Vectors = 64 },
		"MSI negative":        func(c *vfiouser.Config) { c.MSI.Vectors = -1 },
		"MSI-X many":          func(c *vfiouser.Config) { c.MSIX.Vectors = 2049 },
		"MSI-X negative":      func(c *vfiouser.Config) { c.MSIX.Vectors = -1 },
		"MSI-X BAR":           func(c *vfiouser.Config) { c.MSIX.BAR = 3 },
		"MSI-X BAR 6":         func(c *vfiouser.Config) { c.MSIX.BAR = 6 },
		"MSI-X table":         func(c *vfiouser.Config) { c.MSIX.Table = 0x3ff8 },
		"MSI-X table wraps":   func(c *vfiouser.Config) { c.MSIX.Table = ^uint64(7) },
		"MSI-X table odd":     func(c *vfiouser.Config) { c.MSIX.Table = 0x1004 },
		"MSI-X PBA":           func(c *vfiouser.Config) { c.MSIX.PBA = 0x4000 },
		"MSI-X overlap":       func(c *vfiouser.Config) { c.MSIX.PBA = 0x1008 },
		"capability":          func(c *vfiouser.Config) { c.Capabilities = []vfiouser.Capability{{ID: 5, Body: []byte{1}}} },
		"capability 0":        func(c *vfiouser.Config) { c.Capabilities = []vfiouser.Capability{{}} },
		"capability too long": func(c *vfiouser.Config) { c.Capabilities = []vfiouser.Capability{{ID: 9, Body: make([]byte, 200)}} },
		"capability, writable": func(c *vfiouser.Config) {
			c.Capabilities = []vfiouser.Capability{{ID: 9, Body: make([]byte, 2), Writable: make([]byte, 3)}}
		},
	} {
		c := full()
		change(&c)
		_, err := vfiouser.New(c)
		var e *vfiouser.Error
		if !errors.Is(err, vfiouser.ErrConfig) || !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := full()
	c.Name = "nic"
	c.Vendor = 0xffff
	if _, err := vfiouser.New(c); !strings.HasPrefix(fmt.Sprint(err), "vfio-user nic: new: ") {
		t.Error(err)
	}
}
