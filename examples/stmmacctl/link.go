package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// linkState is a link and the PHY that it is of.
type linkState struct {
	Up         bool     `json:"up"`
	Speed      int      `json:"speed_mbps"`
	FullDuplex bool     `json:"full_duplex"`
	RxPause    bool     `json:"rx_pause"`
	TxPause    bool     `json:"tx_pause"`
	Reason     string   `json:"reason,omitempty"` // why it is down
	PHY        *phyInfo `json:"phy,omitempty"`    // absent if the link is fixed
}

type phyInfo struct {
	Addr  int    `json:"address"`
	ID    string `json:"id"`
	Modes string `json:"modes"`
}

// state is that of the link now.
func (d *device) state() linkState { return d.stateOf(d.mac.Link()) }

func (d *device) stateOf(l stmmac.Link) linkState {
	s := linkState{Up: l.Up, Speed: l.Speed, FullDuplex: l.FullDuplex, RxPause: l.RxPause, TxPause: l.TxPause}
	if !l.Up {
		s.Reason = d.mac.LinkReason()
	}
	if p, ok := d.mac.PHY(); ok {
		s.PHY = &phyInfo{Addr: p.Addr, ID: fmt.Sprintf("%#08x", p.ID), Modes: p.Abilities.String()}
	}
	return s
}

// text is the state of the link without the PHY.
func (s *linkState) text() string {
	t := stmmac.Link{Up: s.Up, Speed: s.Speed, FullDuplex: s.FullDuplex, RxPause: s.RxPause, TxPause: s.TxPause}.String()
	if s.Reason != "" {
		t += ": " + s.Reason
	}
	return t
}

// link prints the state of the link, after it has changed it if the flags say so.
func link(ctx context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	return with(ctx, o, c, func(d *device) error {
		d.receive()
		if err := d.change(c); err != nil {
			return err
		}
		d.awaitLink(ctx, c.wait)
		if c.watch {
			return d.watch(ctx, c, stdout)
		}
		s := d.state()
		if c.json {
			return printJSON(stdout, s)
		}
		phy := "none, the link is fixed"
		if p := s.PHY; p != nil {
			phy = fmt.Sprintf("address %d, identifier %s, has %s", p.Addr, p.ID, p.Modes)
		}
		_, err := fmt.Fprintf(stdout, "link: %s\nPHY: %s\n", s.text(), phy)
		return printed(err)
	})
}

// change does what -set and -renegotiate say.
func (d *device) change(c *config) error {
	_, negotiates := d.mac.PHY()
	switch m := c.set; {
	case c.renegotiate:
		return d.mac.Renegotiate()
	case m == nil:
		return nil
	case m.auto:
		return d.mac.SetAdvertise(0)
	case negotiates:
		return d.mac.SetForced(m.link)
	default:
		return d.mac.SetLink(m.link)
	}
}

// watch prints the link, and then each change of it.
func (d *device) watch(ctx context.Context, c *config, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- d.pass(ctx, c.duration, nil)
	}()
	e := json.NewEncoder(stdout)
	for l := range d.mac.Links(ctx) {
		s := d.stateOf(l)
		var err error
		if c.json {
			err = e.Encode(s)
		} else {
			_, err = fmt.Fprintf(stdout, "link: %s\n", s.text())
		}
		if err != nil {
			return printed(err)
		}
	}
	return <-ended
}
