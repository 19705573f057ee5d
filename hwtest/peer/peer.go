package peer

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/gostmmac/gostmmac/stmmac"
)

// Ability is something that not every peer can; its text follows on "the peer has
// no" in the reason of a test that is skipped.
type Ability string

// Abilities of peers.
const (
	Separate Ability = "end of its own"       // it is not the device itself: Recv gives what the device sends
	Cable    Ability = "cable to pull"        // it is a Puller
	Partner  Ability = "modes to set"         // it is a Partnered
	Pause    Ability = "way to pause senders" // pause frames that it sends reach the MAC of the device
	Tags     Ability = "way for VLAN tags"    // frames keep their tags both ways
	Jumbo    Ability = "room for jumbo frames"
)

// Peer is the other end of the wire of a device. Send and Recv belong to one
// goroutine each; Close may come from any and ends both.
type Peer interface {
	// Name is how the peer was given: mac-loopback, af_packet:eth1.
	Name() string
	// Can says whether the peer has an ability.
	Can(Ability) bool
	// MTU is the longest payload of a frame in bytes.
	MTU() int
	// Options are how the MAC at the other end has to be opened.
	Options() []stmmac.Option
	// Attach says which MAC is at the other end, each time that it was opened.
	Attach(ctx context.Context, m *stmmac.MAC) error
	// Send sends frames without FCS to the device, as they are. It waits for room.
	Send(ctx context.Context, frames ...[]byte) error
	// Recv waits for the next frame from the wire, with the tags that it had there.
	// The slice is the caller's. Frames that nobody has asked for may be among
	// them. A peer that is not Separate refuses it with errors.ErrUnsupported.
	Recv(ctx context.Context) ([]byte, error)
	// Close gives everything back. It is safe to call twice.
	Close() error
}

// Puller is a peer with a cable to pull.
type Puller interface {
	// Plug takes the link away or gives it back.
	Plug(plugged bool) error
}

// Linked is a peer with a link of its own, which comes up later than that of the
// device, or earlier.
type Linked interface {
	// AwaitLink waits until the link of the peer is up, in a mode where there is a PHY at
	// each end: 0 is any. The peer may see late that the mode has changed.
	AwaitLink(ctx context.Context, mode stmmac.LinkModes) error
}

// Echoer is a peer that can send frames of the device back by itself.
type Echoer interface {
	// Echo makes it send them back to the device, with their addresses swapped,
	// instead of giving them to Recv.
	Echo(ctx context.Context, on bool) error
}

// Partnered is a peer whose end of a link can be set.
type Partnered interface {
	// SetModes says what the partner negotiates, or with fixed, in which one mode it
	// is without negotiation; 0 is all that it has.
	SetModes(m stmmac.LinkModes, fixed bool) error
}

// DeviceAddr and PeerAddr are the stations of a hardware test (IEEE 802: locally
// administered). What another machine passes on are the frames that DeviceAddr
// has sent.
func DeviceAddr() net.HardwareAddr { return net.HardwareAddr{0x02, 'h', 'w', 't', 0, 1} }

// PeerAddr is the station at the other end; see [DeviceAddr].
func PeerAddr() net.HardwareAddr { return net.HardwareAddr{0x02, 'h', 'w', 't', 0, 2} }

// Limits in bytes, of frames without FCS.
const (
	minMTU   = 46
	maxMTU   = 9000
	minFrame = 14
	shortest = 60 // on the wire (IEEE 802.3, minFrameSize)
	maxFrame = maxMTU + minFrame + 8
)

// Padded is a frame as MACs send it.
func Padded(f []byte) []byte {
	if len(f) >= shortest {
		return f
	}
	return append(slices.Clone(f), make([]byte, shortest-len(f))...)
}

// Error is an error of a peer.
type Error struct {
	Op   string // what failed: "open", "send"
	Peer string // its name
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("peer %s: %s: %v", e.Peer, e.Op, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func failed(op, peer string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Peer: peer, Err: err}
}
