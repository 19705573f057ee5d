package glue

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/stmmac"
)

// readPlatform looks at what the node of a platform device in the device tree tells
// (snps,dwmac.yaml), which goes before the table.
func (g *Glue) readPlatform(fsys fs.FS) {
	if n := slices.Index(g.info.RegNames, g.is.regName); n >= 0 && g.is.regName != "" {
		g.Region = n
	}
	g.is.vectors = g.queueVectors()

	n := node{fsys, path.Join("sys/bus/platform/devices", g.info.Name, "of_node")}
	if !n.exists() {
		return // described by something else
	}
	if s := n.text("status"); s != "" && s != "okay" && s != "ok" {
		g.lacks(fmt.Errorf("its node in the device tree has the status %q: %w", s, os.ErrInvalid), "enable it in the device tree of the board")
	}
	g.readNeeds(n)
	g.readAXI(n)
	if v := n.number("rx-fifo-depth"); v > 0 && v <= maxFIFO {
		g.is.rxFIFO = int(v)
	}
	if v := n.number("tx-fifo-depth"); v > 0 && v <= maxFIFO {
		g.is.txFIFO = int(v)
	}
	for _, p := range []string{"mac-address", "local-mac-address"} { // in the order of Linux
		if a := net.HardwareAddr(n.bytes(p)); g.addr == nil && isUnicast(a) {
			g.addr = a
		}
	}
	g.readLink(n)
}

// maxFIFO is the largest FIFO that stmmac.Open takes, bytes.
const maxFIFO = 1 << 20

// isUnicast says whether a is the address of one station.
func isUnicast(a net.HardwareAddr) bool {
	return len(a) == 6 && a[0]&1 == 0 && slices.ContainsFunc(a, func(b byte) bool { return b != 0 })
}

// queueVectors finds the interrupts of queues by their names. Those of either
// direction are numbered from 0 without a gap, else they are not used.
func (g *Glue) queueVectors() *vectors {
	if !g.is.queueIRQs {
		return g.is.vectors
	}
	find := func(format string) (numbers []int, last int) {
		for q := 0; ; q++ {
			i := slices.Index(g.info.IRQNames, fmt.Sprintf(format, q))
			if i < 0 {
				return numbers, last
			}
			numbers, last = append(numbers, i), max(last, i)
		}
	}
	common := slices.Index(g.info.IRQNames, "macirq")
	rx, a := find("rx-queue-%d")
	tx, b := find("tx-queue-%d")
	if common < 0 || len(rx) == 0 || len(tx) == 0 {
		return nil
	}
	return &vectors{least: max(common, a, b) + 1, msi: stmmac.MSI{Common: common, Rx: rx, Tx: tx}}
}

// readNeeds names what the node says that somebody has to have set up.
func (g *Glue) readNeeds(n node) {
	add := func(format string, args ...any) {
		g.Preconditions = append(g.Preconditions, fmt.Sprintf(format, args...))
	}
	list := func(names string) string {
		if s := n.texts(names); len(s) > 0 {
			return " (" + strings.Join(s, ", ") + ")"
		}
		return ""
	}
	if n.has("clocks") {
		add("its clocks run%s: the kernel stops them when its driver is unbound, and unused ones at the end of booting unless clk_ignore_unused is on its command line",
			list("clock-names"))
	}
	if n.has("resets") {
		add("its resets are released%s", list("reset-names"))
	}
	if n.has("power-domains") {
		add("its power domain is on%s", list("power-domain-names"))
	}
	if n.has("phy-supply") {
		add("the regulator of the PHY is on (phy-supply)")
	}
	if mode := n.text("phy-mode"); mode != "" {
		add("the pins and the interface selection are those of %s", mode)
	}
}

// readAXI reads the parameters of the bus.
func (g *Glue) readAXI(n node) {
	a := &g.is.axi
	a.FixedBurst = a.FixedBurst || n.has("snps,fixed-burst")
	a.AlignedBeats = a.AlignedBeats || n.has("snps,aal")
	// Linux mixes bursts only where the node says so.
	a.NoMixedBurst = !n.has("snps,mixed-burst")
	switch v := n.number("snps,pbl"); v {
	case 1, 2, 4, 8, 16, 32:
		a.PBL = int(v)
	}
	// The bindings put it into the node; some boards have one for all at the root.
	root := node{n.fsys, "sys/firmware/devicetree/base"}
	c, ok := n.refers("snps,axi-config", slices.Concat(n.children(), root.children()))
	if !ok {
		return
	}
	// What these two count is one less than the requests.
	const most = 16
	if c.has("snps,wr_osr_lmt") {
		a.MaxWrites = int(min(c.number("snps,wr_osr_lmt"), most-1)) + 1
	}
	if c.has("snps,rd_osr_lmt") {
		a.MaxReads = int(min(c.number("snps,rd_osr_lmt"), most-1)) + 1
	}
	lens := 0
	for _, l := range c.numbers("snps,blen") {
		switch l {
		case 4, 8, 16, 32, 64, 128, 256:
			lens |= int(l)
		}
	}
	a.BurstLens = lens
}

// readLink reads where the PHY is, or that the link is fixed.
func (g *Glue) readLink(n node) {
	if f := n.child("fixed-link"); f.exists() {
		switch speed := int(f.number("speed")); speed {
		case 10, 100, 1000, 2500:
			g.link = &stmmac.Link{Up: true, Speed: speed, FullDuplex: f.has("full-duplex"), RxPause: f.has("pause"), TxPause: f.has("pause")}
		}
		return
	}
	// One on the bus of another MAC is not reached.
	var phys []node
	for _, c := range n.children() {
		phys = append(phys, c.children()...)
	}
	p, ok := n.refers("phy-handle", phys)
	if !ok {
		return
	}
	const last = 31
	if addr := p.numbers("reg"); len(addr) == 1 && addr[0] <= last {
		g.is.phy = &stmmac.PHY{Addr: int(addr[0]), Clause45: slices.Contains(p.texts("compatible"), "ethernet-phy-ieee802.3-c45")}
	}
}

// node is a directory of the device tree. Its properties are files; numbers in
// them are big-endian cells of four bytes. A property that is not there, cannot be
// read or has another form reads as nothing.
type node struct {
	fsys fs.FS
	dir  string
}

func (n node) exists() bool {
	i, err := fs.Stat(n.fsys, n.dir)
	return err == nil && i.IsDir()
}

func (n node) child(name string) node { return node{n.fsys, path.Join(n.dir, name)} }

func (n node) has(property string) bool {
	i, err := fs.Stat(n.fsys, path.Join(n.dir, property))
	return err == nil && !i.IsDir()
}

func (n node) bytes(property string) []byte {
	b, err := fs.ReadFile(n.fsys, path.Join(n.dir, property))
	if err != nil {
		return nil
	}
	return b
}

// numbers reads a property of cells.
func (n node) numbers(property string) []uint32 {
	b := n.bytes(property)
	if len(b)%4 != 0 {
		return nil
	}
	var v []uint32
	for ; len(b) > 0; b = b[4:] {
		v = append(v, binary.BigEndian.Uint32(b))
	}
	return v
}

// number reads a property of one cell.
func (n node) number(property string) uint32 {
	if v := n.numbers(property); len(v) == 1 {
		return v[0]
	}
	return 0
}

// texts reads a property of strings, each of which ends in 0.
func (n node) texts(property string) []string {
	b := string(n.bytes(property))
	if b == "" || !strings.HasSuffix(b, "\x00") {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b, "\x00"), "\x00")
}

func (n node) text(property string) string {
	if s := n.texts(property); len(s) == 1 {
		return s[0]
	}
	return ""
}

// refers finds the node whose handle a property of n has, among nodes.
func (n node) refers(property string, nodes []node) (node, bool) {
	handle := n.number(property)
	if handle == 0 {
		return node{}, false
	}
	for _, at := range nodes {
		if at.number("phandle") == handle {
			return at, true
		}
	}
	return node{}, false
}

func (n node) children() []node {
	entries, err := fs.ReadDir(n.fsys, n.dir)
	if err != nil {
		return nil
	}
	var all []node
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, n.child(e.Name()))
		}
	}
	return all
}
