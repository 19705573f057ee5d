//go:build !linux

package peer

import (
	"errors"
	"fmt"
)

func openPacket(spec, name string) (Peer, error) {
	return nil, failed("open", spec, fmt.Errorf("raw frames of interface %s need Linux: %w", name, errors.ErrUnsupported))
}

func openTAP(spec, name string) (Peer, error) { return openPacket(spec, name) }
