package cards

import (
	"context"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// noDMA is no memory.
type noDMA struct{}

func (noDMA) Read(uint64, []byte) error        { return context.Canceled }
func (noDMA) Write(uint64, []byte) error       { return context.Canceled }
func (noDMA) Window(uint64, int) []byte        { return nil }
func (noDMA) Extent(a uint64) (uint64, []byte) { return a, nil }

// TestJoin: two PHYs agree on what both do, and see when the other is powered down.
func TestJoin(t *testing.T) {
	var models [2]*sim.Model
	wires := [2]sim.Wire{}
	wires[0], wires[1] = sim.NewPair(1)
	for i, modes := range []sim.LinkModes{sim.Mode10Full | sim.Mode100Full, 0} {
		m, err := sim.NewModel(sim.Config{PHY: &sim.PHYConfig{Address: 1, Modes: modes, NegotiationTime: time.Millisecond}}, noDMA{}, func(int) {}, wires[i])
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		models[i] = m
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		join(ctx, models)
		close(ended)
	}()
	await := func(what string, ok func(s sim.PHYState) bool) {
		t.Helper()
		for i, m := range models {
			for end := time.Now().Add(time.Minute); !ok(m.PHYState()); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: PHY %d is %+v", what, i, m.PHYState())
				}
			}
		}
	}
	await("negotiated", func(s sim.PHYState) bool { return s.Link && s.Speed == 100 && s.FullDuplex })
	const powerDown, negotiate = 0x0800, 0x1000
	models[0].SetPHYControl(powerDown)
	await("powered down", func(s sim.PHYState) bool { return !s.Link })
	models[0].SetPHYControl(negotiate)
	await("powered up", func(s sim.PHYState) bool { return s.Link && s.Speed == 100 })
	cancel()
	<-ended
}
