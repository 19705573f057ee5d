package netns

import (
	"fmt"
	"os"
	"strings"
)

// Counters are those of an interface, as the namespace sees it: it receives what
// arrives from the wire.
type Counters struct {
	RxPackets, RxErrors, RxDropped uint64
	TxPackets, TxErrors, TxDropped uint64
}

// Counters returns the counters of an interface.
func (n *NS) Counters(name string) (c Counters, err error) {
	var text []byte
	err = n.Do(func() error {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		return c, fmt.Errorf("netns: counters of %s: %w", name, err)
	}
	for line := range strings.Lines(string(text)) {
		if values, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			// Bytes, packets, errors, drops and four more, of each direction.
			var x uint64
			_, err := fmt.Sscan(values, &x, &c.RxPackets, &c.RxErrors, &c.RxDropped, &x, &x, &x, &x,
				&x, &c.TxPackets, &c.TxErrors, &c.TxDropped)
			if err != nil {
				return c, fmt.Errorf("netns: counters of %s: %w in %q", name, err, line)
			}
			return c, nil
		}
	}
	return c, fmt.Errorf("netns: counters of %s: no such interface", name)
}
