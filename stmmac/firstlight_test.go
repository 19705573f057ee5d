package stmmac_test

import (
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
)

func TestFirstLight(t *testing.T) { onEach(t, testFirstLight) }

func testFirstLight(t *testing.T) {
	r := newRig(t, rigConfig{})
	for round := range 20 {
		in := frames(100, 60+round*70, uint64(round*100))
		r.wire.deliver(in...)
		r.same(r.recv(200), in)
		r.send(in...)
		r.step()
		r.same(r.wire.take(), in)
	}
	r.settled()
	if s := r.mac.Rx(0).Stats(); s.Packets != 2000 || s.Drops() != 0 {
		t.Errorf("receive: %+v", s)
	}
	if s := r.mac.Tx(0).Stats(); s.Packets != 2000 || s.Done != 2000 || s.Errors() != 0 {
		t.Errorf("send: %+v", s)
	}
}

func TestJumbo(t *testing.T) { onEach(t, testJumbo) }

func testJumbo(t *testing.T) {
	for name, bufSize := range map[string]int{"one buffer": 9216, "several": 2048, "many": 512} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{bufSize: bufSize, bufs: 4096, opts: []stmmac.Option{stmmac.WithMTU(9000)}})
			r.wire.elastic = true
			var in [][]byte
			for n := 60; n <= 9014; n += 37 {
				in = append(in, frame(n, uint64(n)))
			}
			tagged := frame(9018, 2)
			copy(tagged[12:], []byte{0x81, 0, 0, 1})
			in = append(in, frame(9014, 1), tagged)
			r.wire.deliver(in...)
			r.same(r.recv(len(in)+1), in)
			r.settled()
		})
	}
}
