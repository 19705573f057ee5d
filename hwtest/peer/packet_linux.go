package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/stmmac"
)

// packet is an interface of the kernel through a raw socket, see packet(7).
type packet struct {
	name string
	mtu  int
	file *os.File
	buf  [1 << 14]byte
	oob  [64]byte
}

// allTypes is ETH_P_ALL in network order.
const allTypes = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8

// openPacket opens an interface that is up. It sees what arrives from the wire from
// then on, whatever the address.
func openPacket(spec, name string) (Peer, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, failed("open", spec, fmt.Errorf("interface %s: %w", name, err))
	}
	if i.Flags&net.FlagUp == 0 {
		return nil, failed("open", spec, fmt.Errorf("interface %s is down: `ip link set %s up`: %w", name, name, unix.ENETDOWN))
	}
	// Without a protocol nothing arrives before it is bound to the interface.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, failed("open", spec, fmt.Errorf("raw socket, which needs CAP_NET_RAW: %w", err))
	}
	const room = 8 << 20 // bytes
	// It is a wish: without CAP_NET_ADMIN the limit of the system holds.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room)
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allTypes, Ifindex: i.Index}),
		unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
			&unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}))
	if err != nil {
		return nil, failed("open", spec, fmt.Errorf("raw socket of %s: %w", name, errors.Join(err, unix.Close(fd))))
	}
	return &packet{name: spec, mtu: i.MTU, file: os.NewFile(uintptr(fd), "packet socket of "+name)}, nil
}

// openTAP brings a TAP interface up, for the longest frames, and opens it.
func openTAP(spec, name string) (Peer, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, failed("open", spec, err)
	}
	err = func() error {
		q, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		q.SetUint32(maxMTU)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, q); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", name, err)
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, q); err != nil {
			return fmt.Errorf("flags of %s: %w", name, err)
		}
		q.SetUint16(q.Uint16() | unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, q); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
		return nil
	}()
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return nil, failed("open", spec, err)
	}
	return openPacket(spec, name)
}

func (p *packet) Name() string { return p.name }

func (p *packet) Can(a Ability) bool {
	switch a {
	case Separate, Tags:
		return true
	case Jumbo:
		return p.mtu >= maxMTU
	case Pause:
		return true
	}
	return false
}

func (p *packet) MTU() int { return p.mtu }

func (p *packet) Options() []stmmac.Option { return nil }

func (p *packet) Attach(context.Context, *stmmac.MAC) error { return nil }

// Send pads frames, as MACs do.
func (p *packet) Send(ctx context.Context, frames ...[]byte) error {
	defer follow(ctx, p.file.SetWriteDeadline)()
	for _, f := range frames {
		if _, err := p.file.Write(Padded(f)); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return failed("send", p.name, err)
		}
	}
	return nil
}

func (p *packet) Recv(ctx context.Context) ([]byte, error) {
	defer follow(ctx, p.file.SetReadDeadline)()
	rc, err := p.file.SyscallConn()
	if err != nil {
		return nil, failed("receive", p.name, err)
	}
	var n, oobn int
	var last error
	err = rc.Read(func(fd uintptr) bool {
		n, oobn, _, _, last = unix.Recvmsg(int(fd), p.buf[:], p.oob[:], 0)
		return last != unix.EAGAIN && last != unix.EINTR
	})
	if err = errors.Join(err, last); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, failed("receive", p.name, err)
	}
	f, err := retag(slices.Clone(p.buf[:n]), p.oob[:oobn])
	return f, failed("receive", p.name, err)
}

// retag puts the tag into a frame that the kernel took out of it.
func retag(f, oob []byte) ([]byte, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	native := binary.NativeEndian
	for _, m := range messages {
		// struct tpacket_auxdata
		const status, tci, tpid, size = 0, 16, 18, 20
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < size || len(f) < minFrame ||
			native.Uint32(m.Data[status:])&unix.TP_STATUS_VLAN_VALID == 0 {
			continue
		}
		v, t := native.Uint16(m.Data[tci:]), native.Uint16(m.Data[tpid:])
		f = slices.Insert(f, 12, byte(t>>8), byte(t), byte(v>>8), byte(v))
	}
	return f, nil
}

func (p *packet) Close() error {
	if err := p.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return failed("close", p.name, err)
	}
	return nil
}
