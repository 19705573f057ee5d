package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Ether is an interface as a program sees it that sends and receives whole
// Ethernet frames, see packet(7). One goroutine at a time may call Recv.
type Ether struct {
	file *os.File
	oob  [64]byte
}

const etherAll = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order

// OpenEther opens the interface name. It sees all frames that arrive from the
// wire from then on, and none of those that the kernel sends.
func (n *NS) OpenEther(name string) (*Ether, error) {
	var fd int
	err := n.Do(func() (err error) {
		index, err := indexOf(name)
		if err != nil {
			return err
		}
		// Without a protocol nothing arrives before it is bound to the interface.
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		const room = 32 << 20 // bytes, so that nothing is lost here
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, room), // a driver may give buffers back late
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: etherAll, Ifindex: index}))
		if err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netns: open %s for frames: %w", name, err)
	}
	return &Ether{file: os.NewFile(uintptr(fd), "packet socket of "+name)}, nil
}

// Send sends a frame without its FCS, of 14 bytes or more. The kernel does not pad it.
func (e *Ether) Send(frame []byte) error {
	_, err := e.file.Write(frame)
	return err
}

// Recv waits for a frame and returns it in buf, of which it takes what fits. It
// has the VLAN tag that it had on the wire.
func (e *Ether) Recv(buf []byte) (frame []byte, err error) {
	rc, err := e.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var n, oobn int
	var failed error
	err = rc.Read(func(fd uintptr) bool {
		n, oobn, _, _, failed = unix.Recvmsg(int(fd), buf, e.oob[:], 0)
		return failed != unix.EAGAIN && failed != unix.EINTR
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	frame = buf[:n]
	messages, err := unix.ParseSocketControlMessage(e.oob[:oobn])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		// struct tpacket_auxdata: the tag is taken out of the frame.
		const status, tci, tpid = 0, 16, 18
		if m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA &&
			native.Uint32(m.Data[status:])&unix.TP_STATUS_VLAN_VALID != 0 {
			v, t := native.Uint16(m.Data[tci:]), native.Uint16(m.Data[tpid:])
			frame = slices.Insert(frame, 12, byte(t>>8), byte(t), byte(v>>8), byte(v))
		}
	}
	return frame, nil
}

// SetReadDeadline makes Recv end at a time with an error that is os.ErrDeadlineExceeded; the
// zero time is none.
func (e *Ether) SetReadDeadline(t time.Time) error { return e.file.SetReadDeadline(t) }

// Close ends Recv. It is safe to call twice.
func (e *Ether) Close() error {
	if err := e.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Membership is that of an interface in a multicast group.
type Membership struct{ file *os.File }

// Join makes an interface receive frames to a multicast MAC address until the membership is
// closed.
func (n *NS) Join(name string, group net.HardwareAddr) (*Membership, error) {
	m := unix.PacketMreq{Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(group))}
	if copy(m.Address[:], group) != len(group) {
		return nil, fmt.Errorf("netns: join with an address of %d bytes: %w", len(group), os.ErrInvalid)
	}
	var fd int
	err := n.Do(func() error {
		index, err := indexOf(name)
		if err != nil {
			return err
		}
		// Without a protocol it receives nothing.
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		m.Ifindex = int32(index)
		if err = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netns: join %v with %s: %w", group, name, err)
	}
	return &Membership{os.NewFile(uintptr(fd), "membership of "+name)}, nil
}

// Close leaves the group. It is safe to call twice.
func (m *Membership) Close() error {
	if err := m.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
