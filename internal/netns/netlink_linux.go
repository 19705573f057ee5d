package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// request is a message of netlink(7) to the kernel.
type request struct{ b []byte }

// newRequest starts a request of a type with its fixed header; attributes follow.
func newRequest(typ, flags uint16, head []byte) *request {
	b := make([]byte, unix.SizeofNlMsghdr, 256)
	native.PutUint16(b[4:], typ)
	native.PutUint16(b[6:], flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	native.PutUint32(b[8:], 1)
	return &request{append(b, head...)}
}

func (m *request) attr(typ uint16, data []byte) {
	m.nest(typ, func() { m.b = append(m.b, data...) })
}

func (m *request) uint32(typ uint16, v uint32) { m.attr(typ, native.AppendUint32(nil, v)) }

// nest adds an attribute whose value add adds. Its length is without the padding.
func (m *request) nest(typ uint16, add func()) {
	start := len(m.b)
	m.b = native.AppendUint16(m.b, 0)
	m.b = native.AppendUint16(m.b, typ)
	add()
	native.PutUint16(m.b[start:], uint16(len(m.b)-start))
	for len(m.b)%unix.NLA_ALIGNTO != 0 {
		m.b = append(m.b, 0)
	}
}

// do sends the request from this thread and returns what the kernel says to it.
func (m *request) do() error {
	answer, err := m.ask()
	if err != nil {
		return err
	}
	if kind := native.Uint16(answer[4:]); kind != unix.NLMSG_ERROR {
		return fmt.Errorf("rtnetlink: an answer of type %d that is no acknowledgement", kind)
	}
	return nil
}

// ask sends the request from this thread and returns the first message of the answer. An
// error number in it is the error.
func (m *request) ask() (answer []byte, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	// The kernel answers while it takes the request, so this never runs out.
	limit := unix.NsecToTimeval(int64(time.Minute))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	native.PutUint32(m.b, uint32(len(m.b)))
	if err := unix.Sendto(fd, m.b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	answer = make([]byte, 32<<10)
	var n int
	for {
		n, _, err = unix.Recvfrom(fd, answer, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	const header = unix.SizeofNlMsghdr
	if n < header+4 {
		return nil, fmt.Errorf("rtnetlink: an answer of %d bytes", n)
	}
	if native.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		if code := -int32(native.Uint32(answer[header:])); code != 0 {
			return nil, unix.Errno(code)
		}
	}
	return answer[:n], nil
}
