package bus

import (
	"io/fs"
	"os"
	"slices"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// openFile is a capture file in use.
type openFile struct {
	h    *Handle
	info fs.FileInfo
}

// pcap opens the files of a wire=pcap and makes the wire.
func (o *Opener) pcap(h *Handle, s *simSpec) (sim.Wire, error) {
	fail := func(key, name string, err error) (sim.Wire, error) {
		return nil, &AddressError{Address: h.Address.String(), Part: key + "=" + name, Err: err}
	}
	in, err := o.openInput(h, s.in)
	if err != nil {
		return fail("in", s.in, err)
	}
	out, err := o.openOutput(h, s.out)
	if err != nil {
		return fail("out", s.out, err)
	}
	// A nil *os.File is not a nil io.Reader.
	var opts sim.PcapOptions
	var w *sim.PcapWire
	switch {
	case in == nil:
		w, err = sim.NewPcapWire(nil, out, opts)
	case out == nil:
		w, err = sim.NewPcapWire(in, nil, opts)
	default:
		w, err = sim.NewPcapWire(in, out, opts)
	}
	if err != nil {
		return fail("in", s.in, err)
	}
	h.Pcap = w
	return w, nil
}

// openInput opens a file to play. It is of the regular kind, because the model
// reads it while it holds its lock.
func (o *Opener) openInput(h *Handle, name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	// Before opening: that of a pipe waits for somebody who writes.
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, invalid("is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return f, o.use(h, f)
}

// openOutput creates a file to record to, unless this Opener has it open: what
// is being played would be gone.
func (o *Opener) openOutput(h *Handle, name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	if info, err := os.Stat(name); err == nil {
		o.mu.Lock()
		used := slices.ContainsFunc(o.files, func(f openFile) bool { return os.SameFile(f.info, info) })
		o.mu.Unlock()
		if used {
			return nil, invalid("is in use by this or another address")
		}
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return f, o.use(h, f)
}

// use makes the closing of h close f, and remembers until then that it is open.
func (o *Opener) use(h *Handle, f *os.File) error {
	h.closers = append(h.closers, func() error {
		o.mu.Lock()
		o.files = slices.DeleteFunc(o.files, func(f openFile) bool { return f.h == h })
		o.mu.Unlock()
		return f.Close()
	})
	info, err := f.Stat()
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.files = append(o.files, openFile{h, info})
	o.mu.Unlock()
	return nil
}
