package core

// counts are named counts in a fixed order.
type counts []struct {
	name string
	v    uint64
}

func (c counts) all(yield func(string, uint64) bool) {
	for _, e := range c {
		if !yield(e.name, e.v) {
			return
		}
	}
}
