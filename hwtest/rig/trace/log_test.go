package trace

import (
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

const path = "/machine/soc/gmac[1]"

func TestParse(t *testing.T) {
	const text = `npcm_gmac_reg_read /machine/soc/gmac[1]: offset: 0x0020 value: 0x1032
npcm_gmac_reg_write /machine/soc/gmac[0]: offset: 0x1000 value: 0x0001
npcm_gmac_reg_write /machine/soc/gmac[1]: offset: 0x1058 value: 0x100d4f37
`
	got, err := parse(text, path)
	want := []mmio.Access{{Off: 0x20, Val: 0x1032}, {Off: 0x1058, Val: 0x100d4f37, Store: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{
		"npcm_gmac_reg_read /machine/soc/gmac[1]: offset: 0x0020 value: \n", "qemu: a warning\n", "npcm_gmac_reset /machine/soc/gmac[1]: offset: 0x0 value: 0x1\n",
		"npcm_gmac_reg_write /machine/soc/gmac[1]: offset: 0x1058 value: 0x100d", // was cut
	} {
		if got, err := parse(text+bad, path); err == nil || !strings.Contains(err.Error(), "line 4") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}
