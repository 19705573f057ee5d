//go:build !linux

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

var errOther = fmt.Errorf("netns: network namespaces are of Linux: %w", errors.ErrUnsupported)

// New makes a namespace; only Linux has them.
func New() (*NS, error) { return nil, errOther }

// Current returns the namespace that the process is in.
func Current() (*NS, error) { return nil, errOther }

// Do runs f in the namespace.
func (n *NS) Do(func() error) error { return errOther }

func setUp(string, int) error                        { return errOther }
func setDown(string) error                           { return errOther }
func operational(string) (bool, error)               { return false, errOther }
func moveLink(string, *NS) error                     { return errOther }
func addPair(string, string) error                   { return errOther }
func addVLAN(string, string, uint16, bool) error     { return errOther }
func setHardwareAddr(string, net.HardwareAddr) error { return errOther }
func deleteLink(string) error                        { return errOther }
func addAddr(string, netip.Prefix) error             { return errOther }
func addRoute(netip.Prefix, netip.Addr) error        { return errOther }
func resources() (fds, namespaces int)               { return 0, 0 }

// Ether is an interface as a program sees it that sends and receives frames.
type Ether struct{}

// OpenEther opens the interface name.
func (n *NS) OpenEther(string) (*Ether, error) { return nil, errOther }

// Send sends a frame.
func (e *Ether) Send([]byte) error { return errOther }

// Recv waits for a frame.
func (e *Ether) Recv([]byte) ([]byte, error) { return nil, errOther }

// SetReadDeadline makes Recv end at a time.
func (e *Ether) SetReadDeadline(time.Time) error { return errOther }

// Close ends Recv.
func (e *Ether) Close() error { return errOther }

// Membership is that of an interface in a multicast group.
type Membership struct{}

// Join makes an interface receive frames to a multicast MAC address.
func (n *NS) Join(string, net.HardwareAddr) (*Membership, error) { return nil, errOther }

// Close leaves the group.
func (m *Membership) Close() error { return errOther }
