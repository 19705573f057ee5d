package bringup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
)

// Reasons say why a driver brings a MAC up in another way than the stock driver, by the
// names of registers.
type Reasons struct {
	StockOnly map[string]string // why only the stock driver stores to it
	OursOnly  map[string]string // why the stock driver does not
	Order     map[string]string // why the first store comes at another place
	Value     map[string]string // why the last value is another one
}

// Result is what a comparison found.
type Result struct {
	Stores    int      // of both drivers
	Registers int      // that either stores to
	Reasoned  int      // differences that have a reason
	Problems  []string // differences that have none, and reasons without a difference
}

// String counts what was compared.
func (r Result) String() string {
	return fmt.Sprintf("%d stores to %d registers compared, %d differences with a reason, %d problems", r.Stores, r.Registers, r.Reasoned, len(r.Problems))
}

// Err is nil if every difference has a reason and every reason its difference.
func (r Result) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("bring-up against the stock driver (%v): %s", r, strings.Join(r.Problems, "; "))
}

// Compare compares the stores among the accesses of the stock driver with those of ours:
// the same registers, in the order of their first stores, with the same last values. name
// names the register at an offset; one that it calls "" takes no part.
func Compare(stock, ours []mmio.Access, name func(off uint32) string, why Reasons) Result {
	s, o := collect(stock, name), collect(ours, name)
	c := comparison{why: why, stock: s, ours: o, used: map[kind]map[string]bool{}}
	c.Stores = s.stores + o.stores
	for _, reg := range s.first {
		v, both := o.last[reg]
		switch {
		case !both:
			c.differs(stockOnly, reg, fmt.Sprintf("only the stock driver stores to it, at last %#x", s.last[reg]))
		case v != s.last[reg]:
			c.differs(value, reg, fmt.Sprintf("the last value is %#x, that of the stock driver %#x", v, s.last[reg]))
		}
	}
	c.Registers = len(s.first)
	for _, reg := range o.first {
		if _, both := s.last[reg]; !both {
			c.Registers++
			c.differs(oursOnly, reg, fmt.Sprintf("the stock driver does not store to it, and this one at last %#x", o.last[reg]))
		}
	}
	c.order()
	c.surplus()
	return c.Result
}

// stores are those of one driver.
type stores struct {
	first  []string // registers, in the order of their first store
	last   map[string]uint32
	stores int
}

func collect(log []mmio.Access, name func(off uint32) string) stores {
	s := stores{last: map[string]uint32{}}
	for _, a := range log {
		reg := name(a.Off)
		if !a.Store || reg == "" {
			continue
		}
		if _, known := s.last[reg]; !known {
			s.first = append(s.first, reg)
		}
		s.last[reg] = a.Val
		s.stores++
	}
	return s
}

// kind is a kind of difference.
type kind int

const (
	stockOnly kind = iota
	oursOnly
	order
	value
)

func (k kind) String() string {
	return [...]string{"only the stock driver", "only this driver", "order", "value"}[k]
}

// of are the reasons of a kind.
func (w *Reasons) of(k kind) map[string]string {
	return [...]map[string]string{w.StockOnly, w.OursOnly, w.Order, w.Value}[k]
}

type comparison struct {
	Result
	why         Reasons
	stock, ours stores
	used        map[kind]map[string]bool
}

// differs notes a difference of a register.
func (c *comparison) differs(k kind, reg, what string) {
	if c.why.of(k)[reg] == "" {
		c.Problems = append(c.Problems, fmt.Sprintf("%s: %s, and no reason is listed", reg, what))
		return
	}
	if c.used[k] == nil {
		c.used[k] = map[string]bool{}
	}
	c.used[k][reg] = true
	c.Reasoned++
}

// order compares the order of the registers that both store to. A reason of another order
// has its difference if the register changed places with one that has none.
func (c *comparison) order() {
	stock, ours := c.common(c.stock, c.ours), c.common(c.ours, c.stock)
	if !slices.Equal(stock, ours) {
		i := 0
		for stock[i] == ours[i] {
			i++
		}
		c.Problems = append(c.Problems, fmt.Sprintf("%s is stored to before %s, and by the stock driver behind it, and no reason is listed", ours[i], stock[i]))
	}
	for _, reg := range slices.Sorted(maps.Keys(c.why.Order)) {
		s, o := slices.Index(c.stock.first, reg), slices.Index(c.ours.first, reg)
		if s >= 0 && o >= 0 && slices.ContainsFunc(stock, func(r string) bool {
			return (slices.Index(c.stock.first, r) < s) != (slices.Index(c.ours.first, r) < o)
		}) {
			c.differs(order, reg, "it changed places")
		}
	}
}

// common are the registers of a driver that the other one stores to as well and that are to
// be in the same order.
func (c *comparison) common(of, other stores) (regs []string) {
	for _, reg := range of.first {
		if _, both := other.last[reg]; both && c.why.Order[reg] == "" {
			regs = append(regs, reg)
		}
	}
	return regs
}

// surplus finds reasons that have no difference.
func (c *comparison) surplus() {
	for _, k := range []kind{stockOnly, oursOnly, order, value} {
		for _, reg := range slices.Sorted(maps.Keys(c.why.of(k))) {
			if !c.used[k][reg] {
				c.Problems = append(c.Problems, fmt.Sprintf("%s: a reason is listed (%v) and there is no such difference", reg, k))
			}
		}
	}
}
