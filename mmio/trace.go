package mmio

import "fmt"

// Access is one access to a register.
type Access struct {
	Off, Val uint32
	Store    bool
}

// String formats the access as R or W, offset and value.
func (a Access) String() string {
	op := 'R'
	if a.Store {
		op = 'W'
	}
	return fmt.Sprintf("%c %04x %08x", op, a.Off, a.Val)
}

// traced shows the accesses to a region.
type traced struct {
	Region
	f func(Access)
}

// Trace returns r with f called after every load and before every store. The
// calls of f are not serialised.
func Trace(r Region, f func(Access)) Region { return traced{r, f} }

func (t traced) Load32(off uint32) uint32 {
	v := t.Region.Load32(off)
	t.f(Access{Off: off, Val: v})
	return v
}

func (t traced) Store32(off, v uint32) {
	t.f(Access{Off: off, Val: v, Store: true})
	t.Region.Store32(off, v)
}
