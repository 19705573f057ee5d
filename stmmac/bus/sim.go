package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// pairCapacity is how many frames a direction of a cable holds: as many as a
// ring of the default size.
const pairCapacity = 512

// simQueues is how many queues of each direction a simulated GMAC4 has if the
// address does not say: the most that there can be, so that it never limits.
const simQueues = 8

// simFIFO is how many bytes of FIFO a simulated GMAC has in each direction if the
// address does not say; no register of it tells a driver.
const simFIFO = 16384

// simCSRClock is the clock of the registers of a simulated MAC in Hz, that of
// many boards.
const simCSRClock = 125_000_000

// simSpec is what an address of the scheme sim says.
type simSpec struct {
	generation stmmac.Generation
	cfg        sim.Config
	wire       string
	name       string // of the wire, for those that two share, or of the interface
	in, out    string // files
	faults     sim.FaultRates
	each       bool // an interrupt vector for each queue
}

// simKey is a key of the scheme sim.
type simKey struct {
	name string
	set  func(*simSpec, string) error
}

// simKeys returns the keys, in the order in which errors list them.
func simKeys() []simKey {
	number := func(field func(*simSpec) *int) func(*simSpec, string) error {
		return func(s *simSpec, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 { // 0 would be the default
				return invalid("not a number above 0")
			}
			*field(s) = n
			return nil
		}
	}
	// only is number for what a gmac has in one size.
	only := func(size int, field func(*simSpec) *int) func(*simSpec, string) error {
		set := number(field)
		return func(s *simSpec, v string) error {
			if err := set(s, v); err != nil {
				return err
			}
			if s.cfg.Generation == sim.GMAC && *field(s) != size {
				return invalid("of a gmac it is %d", size)
			}
			return nil
		}
	}
	file := func(field func(*simSpec) *string) func(*simSpec, string) error {
		return func(s *simSpec, v string) error {
			if v == "" {
				return invalid("no file name")
			}
			*field(s) = v
			return nil
		}
	}
	return []simKey{
		{"wire", (*simSpec).setWire},
		{"in", file(func(s *simSpec) *string { return &s.in })},
		{"out", file(func(s *simSpec) *string { return &s.out })},
		{"fault", (*simSpec).setFault},
		{"rxq", only(1, func(s *simSpec) *int { return &s.cfg.RxQueues })},
		{"txq", only(1, func(s *simSpec) *int { return &s.cfg.TxQueues })},
		{"rxfifo", number(func(s *simSpec) *int { return &s.cfg.RxFIFO })},
		{"txfifo", number(func(s *simSpec) *int { return &s.cfg.TxFIFO })},
		{"bus", number(func(s *simSpec) *int { return &s.cfg.BusBytes })},
		{"width", only(32, func(s *simSpec) *int { return &s.cfg.AddrWidth })},
		{"version", (*simSpec).setVersion},
		{"hwfeature", func(s *simSpec, v string) (err error) {
			if s.cfg.NoHWFeature, err = choice(v, "on", "none"); err == nil && s.cfg.NoHWFeature && s.cfg.Generation != sim.GMAC {
				return invalid("only a gmac can lack the register")
			}
			return err
		}},
		{"phy", func(s *simSpec, v string) (err error) {
			s.cfg.NoPHY, err = choice(v, "on", "none")
			return err
		}},
		{"irq", func(s *simSpec, v string) (err error) {
			if s.each, err = choice(v, "common", "each"); err == nil && s.each && s.cfg.Generation == sim.GMAC {
				return invalid("a gmac has one interrupt vector")
			}
			return err
		}},
		{"features", func(s *simSpec, v string) error {
			all, err := choice(v, "usual", "all")
			switch {
			case all && s.cfg.Generation == sim.GMAC:
				return invalid("the model of a gmac has no more than the usual")
			case all:
				s.cfg.EnableAll()
			}
			return err
		}},
		{"profile", func(s *simSpec, v string) error {
			linux, err := choice(v, sim.Strict.String(), sim.Linux.String())
			if linux {
				s.cfg.Profile = sim.Linux
			}
			return err
		}},
		{"audit", func(s *simSpec, v string) (err error) {
			s.cfg.NoAudit, err = choice(v, "on", "off")
			return err
		}},
	}
}

// choice says whether v is yes and not no.
func choice(v, no, yes string) (bool, error) {
	if v != no && v != yes {
		return false, invalid("neither %s nor %s", no, yes)
	}
	return v == yes, nil
}

func (s *simSpec) setWire(v string) error {
	kind, name, named := strings.Cut(v, ":")
	switch {
	case kind == "gen" && (!named || name != ""):
	case (kind == "pair" || kind == "tap") && name != "":
	case kind == "pair", kind == "gen", kind == "tap":
		return invalid("the name of the wire is missing, as in %s:x", kind)
	case (kind == "pcap" || kind == "null") && !named:
	default:
		return invalid("none of gen[:NAME], pair:NAME, pcap, tap:NAME and null")
	}
	s.wire, s.name = kind, name
	return nil
}

func (s *simSpec) setFault(v string) (err error) {
	if v == "" {
		return invalid("no fault, as in drop=1e-4")
	}
	if s.faults, err = sim.ParseFaultRates(strings.ReplaceAll(v, "+", ",")); err != nil {
		return fmt.Errorf("%w: %w", err, os.ErrInvalid)
	}
	return nil
}

// setVersion reads a version as the databook writes it, 5.20; SNPSVER has its
// first two digits.
func (s *simSpec) setVersion(v string) error {
	first, last := "4.00", "5.30"
	if s.cfg.Generation == sim.GMAC {
		first, last = "3.00", "3.70"
	}
	if len(v) != 4 || v[1] != '.' || v[3] != '0' || v < first || v > last || v[2] < '0' || v[2] > '9' {
		return invalid("not %s, %s10, ... %s", first, first[:2], last)
	}
	s.cfg.Version = (v[0]-'0')<<4 | (v[2] - '0')
	return nil
}

// simModels are the generations that there is a model of.
func simModels(g stmmac.Generation) (sim.Generation, bool) {
	switch g {
	case stmmac.GMAC:
		return sim.GMAC, true
	case stmmac.GMAC4:
		return sim.GMAC4, true
	}
	return 0, false
}

// parseSim checks all that can be checked without opening anything.
func parseSim(a Address) (*simSpec, error) {
	fail := func(part string, err error) (*simSpec, error) {
		return nil, &AddressError{Address: a.String(), Part: part, Err: err}
	}
	g, ok := stmmac.ParseGeneration(a.Location)
	if !ok {
		return fail("location", invalid("%q is no generation of the MAC, want gmac or gmac4", a.Location))
	}
	model, ok := simModels(g)
	if !ok {
		return fail("location", fmt.Errorf("there is no model of %s, only of gmac and gmac4: %w", a.Location, errors.ErrUnsupported))
	}
	s := &simSpec{wire: "null", generation: g, cfg: sim.Config{Generation: model, CSRClock: simCSRClock}}
	switch model {
	case sim.GMAC4:
		s.cfg.RxQueues, s.cfg.TxQueues = simQueues, simQueues
	case sim.GMAC:
		s.cfg.RxFIFO, s.cfg.TxFIFO = simFIFO, simFIFO
	}
	keys := simKeys()
next:
	for _, p := range a.Params {
		for _, k := range keys {
			if k.name == p.Key {
				if err := k.set(s, p.Value); err != nil {
					return fail(p.String(), err)
				}
				continue next
			}
		}
		names := make([]string, len(keys))
		for i, k := range keys {
			names[i] = k.name
		}
		return fail(p.String(), invalid("%s= is no key of sim, those are: %s", p.Key, strings.Join(names, ", ")))
	}
	switch files := s.in != "" || s.out != ""; {
	case s.wire == "pcap" && !files:
		return fail("wire=pcap", invalid("needs in=FILE, out=FILE or both"))
	case s.wire != "pcap" && files:
		return fail("wire="+s.wire, invalid("in= and out= are of wire=pcap"))
	}
	if s.wire != "pair" && !s.cfg.NoPHY {
		// A file, a generator or a network interface obeys no pause frames: what
		// answers there for it must not negotiate them.
		s.cfg.PHY = &sim.PHYConfig{Address: 1, Partner: sim.Partner{Modes: sim.AllModes &^ (sim.ModePause | sim.ModeAsymPause)}}
	}
	if s.each {
		s.cfg.NumInterrupts = 1 + s.cfg.RxQueues + s.cfg.TxQueues
	}
	return s, nil
}

// openSim is the scheme sim.
func (o *Opener) openSim(_ context.Context, a Address) (*Handle, error) {
	s, err := parseSim(a)
	if err != nil {
		return nil, err
	}
	h := &Handle{Address: a}
	if err := o.plug(h, s); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// plug makes the wire of h and the device on it.
func (o *Opener) plug(h *Handle, s *simSpec) error {
	w, err := o.wire(h, s)
	if err != nil {
		return err
	}
	if s.faults != (sim.FaultRates{}) {
		h.Injector = sim.NewInjector(w, s.faults)
		w = h.Injector
	}
	if h.Pcap != nil {
		h.source = &source{Wire: w, pcap: h.Pcap, end: make(chan struct{})}
		w = h.source
	}
	dev, err := sim.New(s.cfg, w)
	if err != nil {
		h.closers = slices.Insert(h.closers, 0, w.Close)
		return &AddressError{Address: h.Address.String(), Err: fmt.Errorf("%w: %w", err, os.ErrInvalid)}
	}
	// It closes the wire, which then writes to the files that are closed behind.
	h.closers = slices.Insert(h.closers, 0, dev.Close)
	h.Device, h.Sim = dev, dev
	name := h.Address.String()
	h.Options = []stmmac.Option{stmmac.WithGeneration(s.generation), stmmac.WithName(name), stmmac.WithCSRClock(s.cfg.CSRClock)}
	if s.cfg.NoPHY {
		h.Options = append(h.Options, stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}))
	}
	if s.generation == stmmac.GMAC {
		h.Options = append(h.Options, stmmac.WithConfig(func(c *stmmac.Config) {
			c.RxFIFO, c.TxFIFO = s.cfg.RxFIFO, s.cfg.TxFIFO
		}))
	}
	if s.each {
		h.Options = append(h.Options, stmmac.WithConfig(func(c *stmmac.Config) {
			rx, tx := sim.Vectors(s.cfg.RxQueues, s.cfg.TxQueues)
			c.MSI = &stmmac.MSI{Rx: rx, Tx: tx}
		}))
	}
	return nil
}

// wire makes or finds what a device is plugged into. The closers of h get what is
// to be done after the wire is closed, also when there is an error.
func (o *Opener) wire(h *Handle, s *simSpec) (sim.Wire, error) {
	switch s.wire {
	case "pcap":
		return o.pcap(h, s)
	case "tap":
		return plugTAP(h, s)
	case "null":
		return nullWire{}, nil
	}
	key := s.wire + ":" + s.name
	w, leave, err := o.meet(key, func() (a, b sim.Wire) {
		if s.wire == "gen" {
			return sim.NewLoop(o.Loop)
		}
		return sim.NewPair(pairCapacity)
	})
	if err != nil {
		return nil, &AddressError{Address: h.Address.String(), Part: "wire=" + key, Err: err}
	}
	h.Loop, _ = w.(*sim.LoopWire)
	h.closers = append(h.closers, func() error { leave(); return nil })
	return w, nil
}
