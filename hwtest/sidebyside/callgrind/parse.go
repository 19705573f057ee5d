package callgrind

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrFormat is wrapped when a profile is not in the format of the Valgrind manual, chapter
// "Callgrind Format Specification", or when its lines do not add up to its own totals.
var ErrFormat = errors.New("malformed callgrind profile")

// event is the counted event: instructions read.
const event = "Ir"

// Parse reads a callgrind profile and returns the self cost in instructions of every function, by name. The cost of callees is not in it.
// Inlined code belongs to the function it was inlined into, recursion ("f'2") to the function itself.
func Parse(r io.Reader) (map[string]uint64, error) {
	p := parser{
		self:  make(map[string]uint64),
		names: make(map[string]string),
		// "positions: line" and no event is the default of the format.
		positions: 1,
		column:    -1,
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		if err := p.line(s.Text()); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, n, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("callgrind: %w", err)
	}
	switch {
	case p.callPending:
		return nil, fmt.Errorf("%w: ends after a calls line", ErrFormat)
	case !p.hasTotals:
		return nil, fmt.Errorf("%w: no totals line", ErrFormat)
	case p.sum != p.totals:
		return nil, fmt.Errorf("%w: self costs add up to %d, totals say %d", ErrFormat, p.sum, p.totals)
	}
	return p.self, nil
}

type parser struct {
	self  map[string]uint64
	names map[string]string // compressed "(id)" to name; fn and cfn share it

	positions   int // leading columns of a cost line
	column      int // column of the event behind them
	function    string
	inFunction  bool
	callPending bool // the next cost line is the inclusive cost of a call

	sum       uint64
	totals    uint64
	hasTotals bool
}

func (p *parser) line(text string) error {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '#' {
		return nil
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '+' || c == '-' || c == '*' {
		return p.cost(text)
	}
	// A name may hold both separators; the keyword in front of the first one never does.
	i := strings.IndexAny(text, "=:")
	if i < 0 {
		return fmt.Errorf("unknown line %q", text)
	}
	key, value := text[:i], strings.TrimSpace(text[i+1:])
	if text[i] == ':' {
		return p.header(key, value)
	}
	if p.callPending {
		return errors.New("no cost line after calls")
	}
	switch key {
	case "fn":
		name, err := p.name(value)
		p.function, p.inFunction = withoutRecursion(name), true
		return err
	case "cfn":
		_, err := p.name(value)
		return err
	case "calls":
		p.callPending = true
	}
	return nil // files, objects and jumps carry no cost
}

func (p *parser) header(key, value string) error {
	fields := strings.Fields(value)
	switch key {
	case "positions":
		p.positions = len(fields)
	case "events":
		p.column = -1
		for i, f := range fields {
			if f == event {
				p.column = i
			}
		}
		if p.column < 0 {
			return fmt.Errorf("no event %s in %q", event, value)
		}
	case "totals":
		// One per part; a profile that was dumped several times has several.
		n, err := p.eventOf(fields)
		p.totals += n
		p.hasTotals = true
		return err
	}
	return nil
}

// name resolves "(id) name", which defines, "(id)", which refers, and a bare name.
func (p *parser) name(value string) (string, error) {
	if !strings.HasPrefix(value, "(") {
		return value, nil
	}
	// Go method names have parentheses too, but not around a number.
	id, rest, ok := strings.Cut(value[1:], ")")
	if _, err := strconv.ParseUint(id, 10, 64); !ok || err != nil {
		return value, nil
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		p.names[id] = rest
		return rest, nil
	}
	name, ok := p.names[id]
	if !ok {
		return "", fmt.Errorf("name (%s) is used before it is defined", id)
	}
	return name, nil
}

// withoutRecursion removes the level that callgrind appends to a function it takes for recursive. It guesses that
// from the stack pointer, and a switch between goroutine stacks makes it guess differently from run to run.
func withoutRecursion(name string) string {
	i := strings.LastIndexByte(name, '\'')
	if i < 0 {
		return name
	}
	if _, err := strconv.ParseUint(name[i+1:], 10, 64); err != nil {
		return name
	}
	return name[:i]
}

func (p *parser) cost(text string) error {
	fields := strings.Fields(text)
	if len(fields) < p.positions {
		return fmt.Errorf("%d columns, want %d positions", len(fields), p.positions)
	}
	if p.callPending {
		p.callPending = false
		return nil
	}
	n, err := p.eventOf(fields[p.positions:])
	if err != nil || n == 0 {
		return err
	}
	if !p.inFunction {
		return errors.New("cost before the first fn")
	}
	p.self[p.function] += n
	p.sum += n
	return nil
}

// eventOf returns the counted event; trailing zero costs may be left out.
func (p *parser) eventOf(costs []string) (uint64, error) {
	if p.column < 0 {
		return 0, errors.New("cost before the events line")
	}
	if p.column >= len(costs) {
		return 0, nil
	}
	return strconv.ParseUint(costs[p.column], 10, 64)
}
