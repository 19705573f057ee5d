package stack

import (
	"context"
	"errors"
	"net/netip"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
	"github.com/gostmmac/gostmmac/netstack"
	"github.com/gostmmac/gostmmac/stmmac"
)

// board is a stack on a board.
type board struct {
	mac *stmmac.MAC
	net *netstack.Net
}

// up brings a stack up on a board. Its address is addr, in a network of 24 bits.
func up(ctx context.Context, m *qtest.Machine, addr netip.Addr) (_ *board, err error) {
	b := new(board)
	b.mac, err = stmmac.Open(ctx, m.Device(), append(scheme.Options("qtest "+addr.String()), stmmac.WithAllMulticast())...)
	if err != nil {
		return nil, err
	}
	b.net, err = netstack.Up(ctx, b.mac, netstack.Config{Addresses: []netip.Prefix{netip.PrefixFrom(addr, 24)}})
	if err != nil {
		return nil, errors.Join(err, b.mac.Close())
	}
	return b, nil
}

func (b *board) close() error { return errors.Join(b.net.Close(), b.mac.Close()) }
