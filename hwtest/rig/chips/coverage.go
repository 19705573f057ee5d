package chips

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Coverage is what the other sides of cards have touched of the registers of the MACs. The
// zero value is that nothing was.
type Coverage struct {
	seen map[sim.Generation]map[string]*touches
}

// touches is what was done to a register of any card.
type touches struct {
	off            uint32
	loaded, stored bool
	implemented    bool
	by             []string // names of chips
	bits           [2][]string
}

// Add adds what was touched of a card until now; who is the other side, in a word.
func (c *Coverage) Add(k *Card, who string) {
	g := k.chip.sim.Generation
	if c.seen == nil {
		c.seen = map[sim.Generation]map[string]*touches{}
	}
	if c.seen[g] == nil {
		c.seen[g] = map[string]*touches{}
	}
	for _, t := range k.model.Coverage() {
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("unknown register at %#06x", t.Off)
		}
		e := c.seen[g][name]
		if e == nil {
			e = &touches{off: t.Off}
			c.seen[g][name] = e
		}
		e.loaded, e.stored, e.implemented = e.loaded || t.Loaded, e.stored || t.Stored, e.implemented || t.Implemented
		e.by = insert(e.by, who)
		for i, text := range []string{t.LoadedBits, t.StoredBits} {
			for bit := range strings.SplitSeq(text, "|") {
				if bit != "" {
					e.bits[i] = insert(e.bits[i], bit)
				}
			}
		}
	}
}

// insert adds what is not in a sorted list yet.
func insert(list []string, s string) []string {
	i, found := slices.BinarySearch(list, s)
	if found {
		return list
	}
	return slices.Insert(list, i, s)
}

// Untouched returns the registers of a generation's map that nobody has touched.
func (c *Coverage) Untouched(g sim.Generation) []string {
	var names []string
	for _, name := range sim.Registers(g) {
		if c.seen[g][name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// WriteTo writes a report: for each generation that there was a card of the registers that
// were touched, with the bits that were set in what was stored to them and loaded from
// them, and the names of all others.
func (c *Coverage) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	for _, g := range []sim.Generation{sim.GMAC, sim.GMAC4} {
		if c.seen[g] == nil {
			continue
		}
		names := make([]string, 0, len(c.seen[g]))
		for name := range c.seen[g] {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(c.seen[g][a].off, c.seen[g][b].off) })
		all := sim.Registers(g)
		rest := c.Untouched(g)
		fmt.Fprintf(&b, "%v: %d of %d registers touched\n", g, len(all)-len(rest), len(all))
		for _, name := range names {
			e := c.seen[g][name]
			fmt.Fprintf(&b, "%06x %-34s %s by %s", e.off, name, e.how(), strings.Join(e.by, ", "))
			if !e.implemented {
				b.WriteString("; the model does not have it")
			}
			for i, verb := range []string{"loaded", "stored"} {
				if len(e.bits[i]) > 0 {
					fmt.Fprintf(&b, "; %s: %s", verb, strings.Join(e.bits[i], " "))
				}
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%v: %d registers that nobody touched\n", g, len(rest))
		for _, name := range rest {
			fmt.Fprintf(&b, "       %s\n", name)
		}
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (t *touches) how() string {
	switch {
	case t.loaded && t.stored:
		return "loaded and stored"
	case t.loaded:
		return "loaded"
	}
	return "stored"
}
