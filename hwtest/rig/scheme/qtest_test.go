package scheme

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// TestRefused: addresses that name nothing, before anything is started.
func TestRefused(t *testing.T) {
	o := bus.NewOpener()
	Add(o)
	empty := t.TempDir()
	for address, want := range map[string]error{
		"qtest:npcm845-evb,nic=x":                  os.ErrInvalid,
		"qtest:npcm845-evb,wire=null":              os.ErrInvalid,
		"qtest:npcm845-evb,cache=" + empty:         fs.ErrNotExist,
		"qtest:npcm845-evb,cache=" + empty + "/no": fs.ErrNotExist,
	} {
		h, err := o.Open(t.Context(), address)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "qtest:npcm845-evb") {
			t.Errorf("%s: %v", address, err)
		}
		if h != nil {
			t.Errorf("%s: opened", address)
		}
	}
}

// TestOpen opens the last GMAC of each board, and those behind it, which are none.
func TestOpen(t *testing.T) {
	cache := os.Getenv("GOSTMMAC_RIG_CACHE")
	if cache == "" {
		t.Skip("GOSTMMAC_RIG_CACHE names no cache folder with QEMU; go run ./hwtest/rig setup fills one")
	}
	o := bus.NewOpener()
	Add(o)
	for _, location := range []string{"npcm845-evb,nic=3", "npcm750-evb,nic=1", "npcm750-evb"} {
		h, err := o.Open(t.Context(), "qtest:"+location+",cache="+cache)
		if err != nil {
			t.Fatal(err)
		}
		m, err := stmmac.Open(t.Context(), h.Device, h.Options...)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Close(), h.Close()); err != nil {
			t.Error(err)
		}
		if _, _, err := h.Device.AllocDMA(1, 0); !errors.Is(err, qtest.ErrClosed) {
			t.Errorf("%s is not closed: %v", location, err)
		}
	}
	for _, location := range []string{"npcm845-evb,nic=4", "npcm750-evb,nic=2", "npcm750-evb,nic=-1", "virt"} {
		if _, err := o.Open(t.Context(), "qtest:"+location+",cache="+cache); !errors.Is(err, qtest.ErrConfig) {
			t.Errorf("%s: %v", location, err)
		}
	}
}
