package vfiouser

import (
	"bytes"
	"encoding/json"
	"io"
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// dispatch serves a command. What the reply has behind its header is appended to s.reply.
func (s *session) dispatch(m *message) error {
	if m.cmd == cmdVersion {
		return s.version(m.body)
	}
	if !s.negotiated {
		return refuse(syscall.EINVAL, "the first command has to be VERSION")
	}
	if len(m.fds) > 0 && m.cmd != cmdDMAMap && m.cmd != cmdSetIRQs {
		return refuse(syscall.EINVAL, "%d descriptors", len(m.fds))
	}
	switch m.cmd {
	case cmdDMAMap:
		return s.dmaMap(m)
	case cmdDMAUnmap:
		return s.dmaUnmap(m.body)
	case cmdGetInfo:
		return s.getInfo(m.body)
	case cmdGetRegionInfo:
		return s.getRegionInfo(m.body)
	case cmdGetIRQInfo:
		return s.getIRQInfo(m.body)
	case cmdSetIRQs:
		return s.setIRQs(m)
	case cmdRegionRead:
		return s.regionRead(m.body)
	case cmdRegionWrite:
		return s.regionWrite(m.body)
	case cmdReset:
		s.f.reset(s.dev)
		return nil
	case cmdWriteMulti:
		return s.writeMulti(m.body)
	}
	return refuse(syscall.EOPNOTSUPP, "not served")
}

// fixed checks the fixed part of a body; more may follow it.
func fixed(b []byte, n int) error {
	if len(b) < n {
		return refuse(syscall.EINVAL, "%d bytes, and %d are needed", len(b), n)
	}
	return nil
}

// argsz checks the fixed part of a body that starts with how many bytes of it, or of the
// reply, the client has room for.
func argsz(b []byte, n int) error {
	if err := fixed(b, n); err != nil {
		return err
	}
	if size := order.Uint32(b); size < uint32(n) {
		return refuse(syscall.EINVAL, "argsz is %d, and %d are needed", size, n)
	}
	return nil
}

func (s *session) put32(all ...uint32) {
	for _, v := range all {
		s.reply = order.AppendUint32(s.reply, v)
	}
}

func (s *session) put64(all ...uint64) {
	for _, v := range all {
		s.reply = order.AppendUint64(s.reply, v)
	}
}

// capabilities of the protocol. A field that is nil was not told, and is not answered.
type capabilities struct {
	MaxMsgFDs       *uint64 `json:"max_msg_fds,omitempty"`
	MaxDataXferSize *uint64 `json:"max_data_xfer_size,omitempty"`
	MaxDMAMaps      *uint64 `json:"max_dma_maps,omitempty"`
	PgSizes         *uint64 `json:"pgsizes,omitempty"`
	WriteMultiple   *bool   `json:"write_multiple,omitempty"`
}

type versionData struct {
	Capabilities capabilities `json:"capabilities"`
}

// version negotiates version 0.0 and capabilities.
func (s *session) version(b []byte) error {
	if s.negotiated {
		return refuse(syscall.EINVAL, "a second VERSION")
	}
	if err := fixed(b, versionSize); err != nil {
		return err
	}
	if major := order.Uint16(b); major != 0 {
		return refuse(syscall.EPROTONOSUPPORT, "version %d.%d, and 0.0 is served", major, order.Uint16(b[2:]))
	}
	var data versionData
	if text, _, _ := bytes.Cut(b[versionSize:], []byte{0}); len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		if err := d.Decode(&data); err != nil {
			return refuse(syscall.EINVAL, "the version data: %v", err)
		}
		if _, err := d.Token(); err != io.EOF {
			return refuse(syscall.EINVAL, "more than one object of version data")
		}
	}
	c := &data.Capabilities
	if n := c.MaxDataXferSize; n != nil {
		if *n == 0 {
			return refuse(syscall.EINVAL, "max_data_xfer_size is 0")
		}
		s.transfer = int(min(*n, maxTransfer))
	}
	if n := c.PgSizes; n != nil && *n&pageSize == 0 {
		return refuse(syscall.EINVAL, "pgsizes %#x without %#x", *n, pageSize)
	}
	set := func(field *uint64, v uint64) {
		if field != nil {
			*field = v
		}
	}
	set(c.MaxMsgFDs, maxFDs)
	set(c.MaxDataXferSize, maxTransfer)
	set(c.MaxDMAMaps, maxWindows)
	set(c.PgSizes, pageSize)
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	s.put32(0) // version 0.0
	s.reply = append(append(s.reply, text...), 0)
	s.negotiated = true
	return nil
}

// dmaMap adds a window.
func (s *session) dmaMap(m *message) error {
	b := m.body
	if err := argsz(b, mapSize); err != nil {
		return err
	}
	flags, offset, first, size := order.Uint32(b[4:]), order.Uint64(b[8:]), order.Uint64(b[16:]), order.Uint64(b[24:])
	switch {
	case flags == 0 || flags&^(mapRead|mapWrite) != 0:
		return refuse(syscall.EINVAL, "flags %#x", flags)
	case size == 0 || first+(size-1) < first || (first|size|offset)%pageSize != 0:
		return refuse(syscall.EINVAL, "%#x bytes at %#x, %#x in the file: whole pages are needed", size, first, offset)
	case len(m.fds) > 1:
		return refuse(syscall.EINVAL, "%d descriptors for one range", len(m.fds))
	}
	w := &window{first: first, last: first + (size - 1), read: flags&mapRead != 0, write: flags&mapWrite != 0}
	if len(m.fds) == 1 {
		end, carry := bits.Add64(offset, size, 0)
		if carry != 0 {
			return refuse(syscall.EINVAL, "%#x bytes at %#x in the file", size, offset)
		}
		f, err := s.mem.open(m.fds[0], end, w.write)
		if err != nil {
			return err
		}
		if f != nil {
			w.file, w.mem = f, f.mem[offset:end:end]
		}
	}
	if err := s.f.dma.insert(w); err != nil {
		s.letGo([]*window{w}) // the file, if it is of this one alone
		return err
	}
	return nil
}

// dmaUnmap removes windows, and answers when nobody uses them any more.
func (s *session) dmaUnmap(b []byte) error {
	if err := argsz(b, unmapSize); err != nil {
		return err
	}
	flags, first, size := order.Uint32(b[4:]), order.Uint64(b[8:]), order.Uint64(b[16:])
	last := first + (size - 1)
	switch {
	case flags&^unmapAll != 0:
		return refuse(syscall.EINVAL, "flags %#x", flags)
	case flags&unmapAll != 0:
		if first != 0 || size != 0 {
			return refuse(syscall.EINVAL, "%#x bytes at %#x are not all", size, first)
		}
		last = ^uint64(0)
	case size == 0 || last < first:
		return refuse(syscall.EINVAL, "%#x bytes at %#x", size, first)
	}
	gone, err := s.f.dma.remove(first, last)
	if err != nil {
		return err
	}
	s.letGo(gone)
	s.reply = append(s.reply, b[:unmapSize]...)
	return nil
}

// getInfo tells what the function has.
func (s *session) getInfo(b []byte) error {
	if err := argsz(b, infoSize); err != nil {
		return err
	}
	s.put32(infoSize, uapi.DeviceFlagReset|uapi.DeviceFlagPCI, uapi.PCINumRegions, uapi.PCINumIRQs)
	return nil
}

// regionSize is the size of a region; one of size 0 is not there.
func (s *session) regionSize(index uint32) (uint64, error) {
	switch {
	case index < uapi.PCIROM:
		return s.f.cfg.BARs[index].Size, nil
	case index == uapi.PCIConfig:
		return uint64(len(s.f.config.reset)), nil
	case index < uapi.PCINumRegions:
		return 0, nil
	}
	return 0, refuse(syscall.EINVAL, "region %d", index)
}

// getRegionInfo tells of a region. None can be mapped by the client.
func (s *session) getRegionInfo(b []byte) error {
	if err := argsz(b, regionInfoSize); err != nil {
		return err
	}
	index := order.Uint32(b[8:])
	size, err := s.regionSize(index)
	if err != nil {
		return err
	}
	var flags uint32
	if size > 0 {
		flags = uapi.RegionFlagRead | uapi.RegionFlagWrite
	}
	s.put32(regionInfoSize, flags, index, 0)
	s.put64(size, 0)
	return nil
}

// getIRQInfo tells of an interrupt index.
func (s *session) getIRQInfo(b []byte) error {
	if err := argsz(b, irqInfoSize); err != nil {
		return err
	}
	index := order.Uint32(b[8:])
	if index >= uapi.PCINumIRQs {
		return refuse(syscall.EINVAL, "interrupt index %d", index)
	}
	s.put32(irqInfoSize, irqFlags(index), index, uint32(len(s.f.irqs.index[index])))
	return nil
}

// setIRQs sets eventfds and masks, or fires interrupts.
func (s *session) setIRQs(m *message) error {
	const kinds = uapi.IRQDataNone | uapi.IRQDataBool | uapi.IRQDataEventfd
	const actions = uapi.IRQActionMask | uapi.IRQActionUnmask | uapi.IRQActionTrigger
	b := m.body
	if err := argsz(b, setIRQsSize); err != nil {
		return err
	}
	flags := order.Uint32(b[4:])
	r := request{index: order.Uint32(b[8:]), start: order.Uint32(b[12:]), count: order.Uint32(b[16:]), kind: flags & kinds, action: flags & actions, bools: b[setIRQsSize:]}
	switch {
	case bits.OnesCount32(r.kind) != 1 || bits.OnesCount32(r.action) != 1 || flags&^(kinds|actions) != 0:
		return refuse(syscall.EINVAL, "flags %#x", flags)
	case r.kind == uapi.IRQDataBool && uint64(len(r.bools)) < uint64(r.count):
		return refuse(syscall.EINVAL, "%d bytes for %d vectors", len(r.bools), r.count)
	case r.kind != uapi.IRQDataEventfd && len(m.fds) > 0:
		return refuse(syscall.EINVAL, "%d descriptors", len(m.fds))
	case len(m.fds) > 0 && uint64(len(m.fds)) != uint64(r.count):
		return refuse(syscall.EINVAL, "%d descriptors for %d vectors", len(m.fds), r.count)
	}
	for _, fd := range m.fds {
		if err := checkEvent(fd); err != nil {
			return err
		}
	}
	if r.kind == uapi.IRQDataEventfd && r.action == uapi.IRQActionUnmask && r.index == uapi.PCIINTx {
		return s.setUnmask(m, r)
	}
	fds := m.takeFDs()
	for _, fd := range fds {
		r.sinks = append(r.sinks, event{fd})
	}
	s.f.mu.Lock()
	old, taken, err := s.f.irqs.set(r)
	s.f.mu.Unlock()
	if !taken {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	s.close(old)
	return err
}

// setUnmask sets the eventfd by which the client unmasks INTx, or takes it away.
func (s *session) setUnmask(m *message, r request) error {
	f := s.f
	if r.start != 0 || r.count != 1 || !f.cfg.INTx {
		return refuse(syscall.EINVAL, "%d vectors from %d on", r.count, r.start)
	}
	var w io.Closer
	if fds := m.takeFDs(); len(fds) > 0 {
		watch, err := newWatch(fds[0], func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.irqs.unmaskLine()
		})
		if err != nil {
			return refuse(errnoOf(err), "%v", err)
		}
		w = watch
	}
	f.mu.Lock()
	old := f.irqs.setUnmask(w)
	f.mu.Unlock()
	if old != nil {
		s.close([]io.Closer{old})
	}
	return nil
}

// close closes what interrupts had.
func (s *session) close(old []io.Closer) {
	if err := closeAll(old); err != nil {
		s.f.report(s.f.fail("close eventfds", err))
	}
}

// regionRange checks a range of a region.
func (s *session) regionRange(index uint32, off uint64, n int) error {
	size, err := s.regionSize(index)
	if err != nil {
		return err
	}
	if n == 0 || off > size || uint64(n) > size-off {
		return refuse(syscall.EINVAL, "%d bytes at %#x of region %d, which has %#x", n, off, index, size)
	}
	return nil
}

// regionAccess takes the fixed part of an access to a region apart.
func regionAccess(b []byte) (off uint64, index, n uint32, err error) {
	if err := fixed(b, regionReadSize); err != nil {
		return 0, 0, 0, err
	}
	return order.Uint64(b), order.Uint32(b[8:]), order.Uint32(b[12:]), nil
}

// regionRead reads registers.
func (s *session) regionRead(b []byte) error {
	off, index, n, err := regionAccess(b)
	if err != nil {
		return err
	}
	if n > maxTransfer {
		return refuse(syscall.EINVAL, "%d bytes; %d are possible", n, maxTransfer)
	}
	if err := s.regionRange(index, off, int(n)); err != nil {
		return err
	}
	s.reply = append(s.reply, b[:regionReadSize]...)
	at := len(s.reply)
	s.reply = append(s.reply, make([]byte, n)...)
	p := s.reply[at:]
	if index == uapi.PCIConfig {
		s.f.readConfig(int(off), p)
	} else {
		s.f.accessBAR(s.dev, int(index), off, p, false)
	}
	return nil
}

// regionWrite writes registers.
func (s *session) regionWrite(b []byte) error {
	off, index, n, err := regionAccess(b)
	if err != nil {
		return err
	}
	if uint64(n) != uint64(len(b)-regionReadSize) {
		return refuse(syscall.EINVAL, "%d bytes of data, and %d are told", len(b)-regionReadSize, n)
	}
	if err := s.write(index, off, b[regionReadSize:]); err != nil {
		return err
	}
	s.reply = append(s.reply, b[:regionReadSize]...)
	return nil
}

func (s *session) write(index uint32, off uint64, p []byte) error {
	if err := s.regionRange(index, off, len(p)); err != nil {
		return err
	}
	if index == uapi.PCIConfig {
		s.f.writeConfig(s.dev, int(off), p)
	} else {
		s.f.accessBAR(s.dev, int(index), off, p, true)
	}
	return nil
}

// writeMulti does several writes of up to 8 bytes. The first that is wrong ends it; those
// before it are done.
func (s *session) writeMulti(b []byte) error {
	if err := fixed(b, multiHeaderSize); err != nil {
		return err
	}
	n := order.Uint64(b)
	rest := b[multiHeaderSize:]
	if n > maxTransfer/multiEntrySize || uint64(len(rest)) != n*multiEntrySize {
		return refuse(syscall.EINVAL, "%d bytes for %d writes", len(rest), n)
	}
	for ; len(rest) > 0; rest = rest[multiEntrySize:] {
		off, index, count := order.Uint64(rest), order.Uint32(rest[8:]), order.Uint32(rest[12:])
		if count > multiMaxBytes {
			return refuse(syscall.EINVAL, "a write of %d bytes among several", count)
		}
		if err := s.write(index, off, rest[16:16+count]); err != nil {
			return err
		}
	}
	s.put64(n)
	return nil
}
