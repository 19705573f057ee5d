package guest

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// TestModuleParameters: they find their module however its name is written, and are never
// lost silently.
func TestModuleParameters(t *testing.T) {
	modules := []kernel.Module{{Name: "stmmac"}, {Name: "dwmac_modelpci"}}
	for _, c := range []struct {
		name   string
		params map[string]string
		want   []string // nil is a refusal
	}{
		{"none", nil, []string{"", ""}},
		{"with underscores", map[string]string{"dwmac_modelpci": "rxq=4"}, []string{"", "rxq=4"}},
		{"with hyphens", map[string]string{"dwmac-modelpci": "rxq=4 txq=4"}, []string{"", "rxq=4 txq=4"}},
		{"of two", map[string]string{"stmmac": "eee_timer=5", "dwmac-modelpci": "rxq=4"}, []string{"eee_timer=5", "rxq=4"}},
		{"of another module", map[string]string{"dwmac-intel": "rxq=4"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := paramsOf(modules, c.params)
			if c.want == nil {
				if !errors.Is(err, os.ErrInvalid) {
					t.Errorf("%q, error %v", got, err)
				}
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, error %v, want %q", got, err, c.want)
			}
		})
	}
}
