package trace

import (
	"fmt"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
)

// parse reads QEMU's log of the accesses to the registers of one GMAC, which is path in
// QEMU's object tree. What other devices were asked for is left out.
func parse(text, path string) (log []mmio.Access, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		var event, dev string
		var a mmio.Access
		k, err := fmt.Sscanf(strings.TrimSuffix(line, "\n"), "%s %s offset: 0x%x value: 0x%x", &event, &dev, &a.Off, &a.Val)
		switch {
		case err != nil || k != 4 || !strings.HasSuffix(line, "\n"):
			return nil, fmt.Errorf("line %d of QEMU's log is %q, which is no access", n, line)
		case event == "npcm_gmac_reg_write":
			a.Store = true
		case event != "npcm_gmac_reg_read":
			return nil, fmt.Errorf("line %d of QEMU's log is of %s, which was not asked for", n, event)
		}
		if dev == path+":" {
			log = append(log, a)
		}
	}
	return log, nil
}
