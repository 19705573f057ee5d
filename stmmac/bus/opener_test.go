package bus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func mustOpen(t *testing.T, o *Opener, addr string) *Handle {
	t.Helper()
	h, err := o.Open(context.Background(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestOpenerSchemes(t *testing.T) {
	o := NewOpener()
	_, err := o.Open(context.Background(), "nope:x")
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "sim") {
		t.Errorf("unknown scheme: %v", err)
	}
	if _, err := o.Open(context.Background(), "nonsense"); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no scheme: %v", err)
	}
	if _, err := new(Opener).Open(context.Background(), "sim:gmac4"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an opener without schemes: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := o.Open(ctx, "sim:gmac4"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
	want := &Handle{}
	o.Schemes["test"] = func(_ context.Context, a Address) (*Handle, error) {
		if a.Location != "here" {
			t.Errorf("location %q", a.Location)
		}
		return want, nil
	}
	if h, err := o.Open(context.Background(), "test:here"); h != want || err != nil {
		t.Errorf("an own scheme: %v, %v", h, err)
	}
}

func TestSimErrors(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("this is no capture file at all"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		addr string
		part string
		is   error
		text string
	}{
		{"sim:gmac5", "location", os.ErrInvalid, "gmac4"},
		{"sim:xgmac", "location", errors.ErrUnsupported, "gmac4"},
		{"sim:mac100", "location", errors.ErrUnsupported, "gmac and gmac4"},
		{"sim:gmac,rxq=2", "rxq=2", os.ErrInvalid, "of a gmac it is 1"},
		{"sim:gmac,txq=8", "txq=8", os.ErrInvalid, "of a gmac it is 1"},
		{"sim:gmac,width=48", "width=48", os.ErrInvalid, "of a gmac it is 32"},
		{"sim:gmac,irq=each", "irq=each", os.ErrInvalid, "one interrupt vector"},
		{"sim:gmac,version=5.20", "version=5.20", os.ErrInvalid, "3.00"},
		{"sim:gmac,version=3.80", "version=3.80", os.ErrInvalid, "3.70"},
		{"sim:gmac4,version=3.50", "version=3.50", os.ErrInvalid, "4.00"},
		{"sim:gmac4,hwfeature=none", "hwfeature=none", os.ErrInvalid, "gmac"},
		{"sim:gmac,hwfeature=off", "hwfeature=off", os.ErrInvalid, "none"},
		{"sim:gmac4,color=red", "color=red", os.ErrInvalid, "wire, in, out, fault, rxq, txq, rxfifo, txfifo, bus, width, version, hwfeature, phy, irq, features, profile, audit"},
		{"sim:gmac4,inline=1", "inline=1", os.ErrInvalid, "no key"},
		{"sim:gmac4,wire=vde", "wire=vde", os.ErrInvalid, "none of gen[:NAME], pair:NAME, pcap, tap:NAME and null"},
		{"sim:gmac4,wire=tap", "wire=tap", os.ErrInvalid, "name"},
		{"sim:gmac4,wire=tap:", "wire=tap:", os.ErrInvalid, "name"},
		{"sim:gmac4,wire=", "wire=", os.ErrInvalid, "none of"},
		{"sim:gmac4,wire=null:x", "wire=null:x", os.ErrInvalid, "none of"},
		{"sim:gmac4,wire=pair", "wire=pair", os.ErrInvalid, "name"},
		{"sim:gmac4,wire=pair:", "wire=pair:", os.ErrInvalid, "name"},
		{"sim:gmac4,wire=gen:", "wire=gen:", os.ErrInvalid, "name"},
		{"sim:gmac4,wire=pcap", "wire=pcap", os.ErrInvalid, "in=FILE"},
		{"sim:gmac4,in=" + junk, "wire=null", os.ErrInvalid, "wire=pcap"},
		{"sim:gmac4,wire=pcap,in=", "in=", os.ErrInvalid, "file name"},
		{"sim:gmac4,wire=pcap,in=" + dir + "/none", "in=" + dir + "/none", fs.ErrNotExist, ""},
		{"sim:gmac4,wire=pcap,in=" + dir, "in=" + dir, os.ErrInvalid, "regular"},
		{"sim:gmac4,wire=pcap,in=" + junk, "in=" + junk, sim.ErrPcapMagic, ""},
		{"sim:gmac4,wire=pcap,out=" + dir + "/none/x", "out=" + dir + "/none/x", fs.ErrNotExist, ""},
		{"sim:gmac4,rxq=zero", "rxq=zero", os.ErrInvalid, "number"},
		{"sim:gmac4,rxq=0", "rxq=0", os.ErrInvalid, "number"},
		{"sim:gmac4,rxq=9", "", os.ErrInvalid, "RxQueues"},
		{"sim:gmac4,txq=-1", "txq=-1", os.ErrInvalid, "number"},
		{"sim:gmac4,bus=3", "", os.ErrInvalid, "BusBytes"},
		{"sim:gmac4,width=64", "", os.ErrInvalid, "AddrWidth"},
		{"sim:gmac4,rxfifo=1000", "", os.ErrInvalid, "RxFIFO"},
		{"sim:gmac4,version=5.2", "version=5.2", os.ErrInvalid, "5.30"},
		{"sim:gmac4,version=3.70", "version=3.70", os.ErrInvalid, "5.30"},
		{"sim:gmac4,version=5.40", "version=5.40", os.ErrInvalid, "5.30"},
		{"sim:gmac4,version=4.x0", "version=4.x0", os.ErrInvalid, "5.30"},
		{"sim:gmac4,irq=some", "irq=some", os.ErrInvalid, "common"},
		{"sim:gmac4,features=more", "features=more", os.ErrInvalid, "usual"},
		{"sim:gmac,features=all", "features=all", os.ErrInvalid, "gmac"},
		{"sim:gmac4,profile=lax", "profile=lax", os.ErrInvalid, "strict"},
		{"sim:gmac4,audit=", "audit=", os.ErrInvalid, "on"},
		{"sim:gmac4,fault=", "fault=", os.ErrInvalid, "drop"},
		{"sim:gmac4,fault=fire=1", "fault=fire=1", sim.ErrFaultName, ""},
		{"sim:gmac4,fault=drop=2", "fault=drop=2", os.ErrInvalid, "rate"},
	} {
		h, err := NewOpener().Open(context.Background(), tc.addr)
		if h != nil {
			t.Errorf("%s: opened", tc.addr)
			h.Close()
			continue
		}
		var e *AddressError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v is no *AddressError", tc.addr, err)
			continue
		}
		if e.Address != tc.addr || e.Part != tc.part || !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: part %q, %v; want part %q, %v, %q", tc.addr, e.Part, err, tc.part, tc.is, tc.text)
		}
	}
}

// TestSimConfig opens MACs on devices of every kind: what the driver finds in
// the feature registers is what the address said.
func TestSimConfig(t *testing.T) {
	for _, tc := range []struct {
		addr             string
		version          uint8
		rxq, txq         int
		rxfifo, txfifo   int
		width, vectors   int
		useRxQ, useTxQ   int
		strict, auditing bool
	}{
		{"sim:gmac4", 0x52, 8, 8, 16384, 16384, 48, 1, 8, 8, true, true},
		{"sim:gmac4,rxq=2,txq=3,irq=each,rxfifo=8192,txfifo=4096", 0x52, 2, 3, 8192, 4096, 48, 6, 2, 2, true, true},
		{"sim:gmac4,version=4.00,width=32,bus=4", 0x40, 8, 8, 16384, 16384, 32, 1, 1, 1, true, true},
		{"sim:gmac4,version=5.30,width=40,bus=16,profile=linux,irq=each", 0x53, 8, 8, 16384, 16384, 40, 17, 4, 8, false, true},
		{"sim:gmac4,audit=off,irq=common", 0x52, 8, 8, 16384, 16384, 48, 1, 1, 1, true, false},
		{"sim:gmac", 0x37, 1, 1, 0, 0, 32, 1, 1, 1, true, true}, // no register tells its FIFO
		{"sim:gmac,version=3.50,bus=16,rxfifo=4096,txfifo=4096", 0x35, 1, 1, 0, 0, 32, 1, 1, 1, true, true},
	} {
		t.Run(tc.addr, func(t *testing.T) {
			h := mustOpen(t, NewOpener(), tc.addr)
			if n := h.Device.NumInterrupts(); n != tc.vectors {
				t.Errorf("%d vectors, want %d", n, tc.vectors)
			}
			opts := append(h.Options, stmmac.WithQueues(tc.useRxQ, tc.useTxQ))
			m, err := stmmac.Open(context.Background(), h.Device, opts...)
			if err != nil {
				t.Fatal(err)
			}
			f := m.Features()
			if f.Version != tc.version || f.RxQueues != tc.rxq || f.TxQueues != tc.txq ||
				f.RxFIFO != tc.rxfifo || f.TxFIFO != tc.txfifo || f.AddrWidth != tc.width {
				t.Errorf("features %+v", f)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if loads := h.Sim.Stats().Loads; loads > 0 != tc.auditing {
				t.Errorf("%d loads counted", loads)
			}
			if v := h.Sim.Audit(); tc.strict && len(v) > 0 {
				t.Errorf("audit: %v", v)
			}
		})
	}
}

// TestSimGMAC opens devices of the older generation and looks at their registers.
func TestSimGMAC(t *testing.T) {
	const version, hwFeature = 0x20, 0x1058
	for _, tc := range []struct {
		addr    string
		version uint32
		feature bool
	}{
		{"sim:gmac", 0x37, true},
		{"sim:gmac,version=3.00,hwfeature=none,wire=pair:x", 0x30, false},
		{"sim:gmac,rxq=1,txq=1,width=32,irq=common,bus=16,rxfifo=4096,txfifo=2048,phy=none,profile=linux,audit=off", 0x37, true},
	} {
		h := mustOpen(t, NewOpener(), tc.addr)
		r, err := h.Device.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Load32(version); v != tc.version {
			t.Errorf("%s: version %#x", tc.addr, v)
		}
		if v := r.Load32(hwFeature); v != 0 != tc.feature {
			t.Errorf("%s: HW_Feature %#x", tc.addr, v)
		}
	}
}

func TestNames(t *testing.T) {
	const addr = "sim:gmac4,rxq=1"
	h := mustOpen(t, NewOpener(), addr)
	if h.Address.String() != addr {
		t.Errorf("address %q", h.Address)
	}
	_, err := stmmac.Open(context.Background(), h.Device, append(h.Options, stmmac.WithQueues(2, 1))...)
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("error of the driver does not name the device: %v", err)
	}
}

func TestMeeting(t *testing.T) {
	for _, wire := range []string{"pair:x", "gen:x", "gen"} {
		t.Run(wire, func(t *testing.T) {
			o := NewOpener()
			addr := "sim:gmac4,wire=" + wire
			a := mustOpen(t, o, addr)
			b := mustOpen(t, o, addr)
			if loop := strings.HasPrefix(wire, "gen"); loop != (a.Loop != nil) || loop && a.Loop == b.Loop {
				t.Errorf("loops %p and %p", a.Loop, b.Loop)
			}
			_, err := o.Open(context.Background(), addr)
			var e *AddressError
			if !errors.As(err, &e) || !errors.Is(err, os.ErrInvalid) {
				t.Errorf("third end: %v", err)
			}
			other := mustOpen(t, o, "sim:gmac4,wire=pair:y")
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if h, err := o.Open(context.Background(), addr); err == nil {
				h.Close()
				t.Error("opened an end of a wire that is unplugged at the other")
			}
			if err := errors.Join(b.Close(), b.Close()); err != nil {
				t.Error(err)
			}
			again := mustOpen(t, o, addr)
			if a.Loop != nil && (again.Loop == a.Loop || again.Loop == b.Loop) {
				t.Error("got an end that is closed")
			}
		})
	}
	// A pair and a generator of one name are two wires.
	o := NewOpener()
	for _, wire := range []string{"pair:x", "gen:x", "pair:x", "gen:x"} {
		mustOpen(t, o, "sim:gmac4,wire="+wire)
	}
}

func TestFilesInUse(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	o := NewOpener()
	out := mustOpen(t, o, "sim:gmac4,wire=pcap,out="+name)
	if _, err := o.Open(context.Background(), "sim:gmac4,wire=pcap,out="+name); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("recorded twice: %v", err)
	}
	if err := out.Close(); err != nil { // writes the header
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil || len(before) == 0 {
		t.Fatalf("%d bytes, %v", len(before), err)
	}
	if _, err := o.Open(context.Background(), "sim:gmac4,wire=pcap,in="+name+",out="+name); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("played and recorded: %v", err)
	}
	in := mustOpen(t, o, "sim:gmac4,wire=pcap,in="+name)
	if _, err := o.Open(context.Background(), "sim:gmac4,wire=pcap,out="+filepath.Dir(name)+"/./a.pcap"); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("recorded over what is played: %v", err)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("the file changed: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, o, "sim:gmac4,wire=pcap,out="+name)
}

func TestInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	o := NewOpener()
	out := mustOpen(t, o, "sim:gmac4,wire=pcap,out="+name)
	for range 3 {
		out.Pcap.Transmit(sim.Frame{Data: make([]byte, 60)})
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if h := mustOpen(t, o, "sim:gmac4"); h.InputEnd() != nil || h.Input() != 0 {
		t.Error("null has an input")
	}

	// Two of three frames are held back by the injector: the end is behind them.
	in := mustOpen(t, o, "sim:gmac4,wire=pcap,in="+name+",fault=reorder=1")
	for i := range 3 {
		select {
		case <-in.InputEnd():
			t.Fatalf("the end came before frame %d", i)
		default:
		}
		if _, ok := in.source.Receive(); !ok || in.Input() != uint64(i+1) {
			t.Fatalf("frame %d: %v, input %d", i, ok, in.Input())
		}
	}
	if _, ok := in.source.Receive(); ok {
		t.Error("a fourth frame")
	}
	select {
	case <-in.InputEnd():
	default:
		t.Error("no end")
	}

	stopped := mustOpen(t, o, "sim:gmac4,wire=pcap,in="+name)
	stopped.StopInput()
	if _, ok := stopped.source.Receive(); ok || stopped.Input() != 0 {
		t.Error("a frame after StopInput")
	}
	gen := mustOpen(t, o, "sim:gmac4,wire=gen")
	gen.StopInput()
	if !gen.Loop.Idle() {
		t.Error("the generator goes on")
	}
}

func TestNullWire(t *testing.T) {
	var w sim.Wire = nullWire{}
	if _, ok := w.Receive(); ok || !w.Transmit(sim.Frame{}) || w.Close() != nil {
		t.Error("null is not a hole")
	}
}

// TestSimFeatures: features= says what the model has beside the usual.
func TestSimFeatures(t *testing.T) {
	const feature0, arp, eee = 0x011c, 1 << 9, 1 << 13
	for addr, want := range map[string]uint32{"sim:gmac4": 0, "sim:gmac4,features=usual": 0, "sim:gmac4,features=all": arp | eee} {
		h, err := NewOpener().Open(context.Background(), addr)
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.Sim.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Load32(feature0) & (arp | eee); v != want {
			t.Errorf("%s: MAC_HW_Feature0 has %#x, want %#x", addr, v, want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
