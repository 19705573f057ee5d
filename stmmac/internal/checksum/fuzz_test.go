package checksum

import "testing"

// FuzzParse gives any bytes, cut into buffers at any places: whatever they are,
// the result is that of the straightforward implementation.
func FuzzParse(f *testing.F) {
	for _, frame := range [][]byte{
		ip4(17, udp(1, 2, 3)...), ip6(17, udp(1, 2, 3)...), ip4(1, make([]byte, 8)...),
		ip6(0, append([]byte{17, 0, 0, 0, 0, 0, 0, 0}, udp(1)...)...),
		{}, ether,
	} {
		f.Add(frame, []byte{20, 3})
	}
	pool := newPool(f)
	f.Fuzz(func(t *testing.T, frame, cuts []byte) {
		if len(frame) > chunk*3/4 || len(cuts) > 6 {
			return
		}
		var lens []int
		for _, c := range cuts {
			lens = append(lens, int(c))
		}
		agree(t, pool, frame, lens)
	})
}
