package glue

import (
	"context"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
)

// pinned is a device with the methods that a Mapper may have.
type pinned struct {
	device
	most int
}

func (p *pinned) PinsDMA() bool { return true }

func (p *pinned) MaxContiguousDMA() int { return p.most }

// TestAround: the pool sees the same device through what Prepare returns.
func TestAround(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    stmmac.Device
		pins bool
		most int
	}{
		{"plain", &device{r: block(nil)}, false, 0},
		{"pinned", &pinned{device{r: block(nil)}, 1 << 21}, true, 1 << 21},
	} {
		t.Run(tc.name, func(t *testing.T) {
			y, err := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801)).Prepare(context.Background(), tc.d)
			if err != nil {
				t.Fatal(err)
			}
			p, ok := y.(interface {
				PinsDMA() bool
				MaxContiguousDMA() int
				Unwrap() stmmac.Device
			})
			if !ok {
				t.Fatalf("%T lacks a method", y)
			}
			if p.PinsDMA() != tc.pins || p.MaxContiguousDMA() != tc.most || p.Unwrap() != tc.d {
				t.Errorf("%v, %d, %p", p.PinsDMA(), p.MaxContiguousDMA(), p.Unwrap())
			}
		})
	}
}
