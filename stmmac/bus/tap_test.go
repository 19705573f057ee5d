package bus

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/stmmac"
)

// openIn opens an address in a namespace.
func openIn(ns *netns.NS, addr string) (h *Handle, err error) {
	err = ns.Do(func() error {
		h, err = NewOpener().Open(context.Background(), addr)
		return err
	})
	return h, err
}

func TestTAP(t *testing.T) {
	netns.CheckLeaks(t)
	ns := netns.ForTest(t)
	for range 2 { // the name is free again
		h, err := openIn(ns, "sim:gmac4,wire=tap:tap0,fault=drop=0")
		if err != nil {
			t.Fatal(err)
		}
		if h.TAP == nil || h.TAP.Name() != "tap0" || h.Sim == nil || h.InputEnd() != nil {
			t.Errorf("%+v", h)
		}
		m, err := stmmac.Open(context.Background(), h.Device, h.Options...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = openIn(ns, "sim:gmac4,wire=tap:tap0")
		var e *AddressError
		if !errors.As(err, &e) || e.Part != "wire=tap:tap0" || !strings.Contains(err.Error(), "another program") {
			t.Errorf("opened twice: %v", err)
		}
		h.StopInput()
		if err := errors.Join(m.Close(), h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestTAPErrors needs no rights: the name alone is wrong.
func TestTAPErrors(t *testing.T) {
	want := os.ErrInvalid
	if runtime.GOOS != "linux" {
		want = errors.ErrUnsupported
	}
	_, err := NewOpener().Open(context.Background(), "sim:gmac4,wire=tap:a-name-of-16-byt")
	var e *AddressError
	if !errors.As(err, &e) || e.Part != "wire=tap:a-name-of-16-byt" || !errors.Is(err, want) {
		t.Error(err)
	}
}
