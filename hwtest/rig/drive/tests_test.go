package drive

import (
	"bytes"
	"testing"
)

// TestFrames: the sizes are all that there are, and no frame is like another.
func TestFrames(t *testing.T) {
	for _, mtu := range []int{46, 1500, 9000} {
		n := max(1, mtu+14-60+1)
		sizes := map[int]bool{}
		for i := range n {
			f := frame(mtu, i)
			sizes[len(f)] = true
			if len(f) < 60 || len(f) > max(60, mtu+14) {
				t.Errorf("MTU %d: frame %d has %d bytes", mtu, i, len(f))
			}
			if bytes.Equal(f, frame(mtu, i+n)) {
				t.Errorf("MTU %d: frames %d and %d are alike", mtu, i, i+n)
			}
		}
		if len(sizes) != n {
			t.Errorf("MTU %d: %d sizes of %d", mtu, len(sizes), n)
		}
	}
}

// TestNames: each test has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range Tests() {
		if seen[x.Name] {
			t.Errorf("two tests are called %q", x.Name)
		}
		seen[x.Name] = true
	}
}
