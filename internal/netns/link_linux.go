package netns

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// txQueueLen is more frames than the largest window of TCP (tcp_wmem, 4 to 6 MiB)
// has segments.
const txQueueLen = 10000

// ifInfo is struct ifinfomsg of rtnetlink(7).
func ifInfo(index int, flags, change uint32) []byte {
	b := make([]byte, 4, unix.SizeofIfInfomsg)
	b = native.AppendUint32(b, uint32(index))
	b = native.AppendUint32(b, flags)
	return native.AppendUint32(b, change)
}

// indexOf is the number of an interface in the namespace of this thread.
func indexOf(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}

func setUp(name string, mtu int) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	if mtu < 0 || mtu > math.MaxInt32 {
		return fmt.Errorf("MTU %d: %w", mtu, os.ErrInvalid)
	}
	m := newRequest(unix.RTM_NEWLINK, 0, ifInfo(index, unix.IFF_UP, unix.IFF_UP))
	m.uint32(unix.IFLA_TXQLEN, txQueueLen)
	if mtu > 0 {
		m.uint32(unix.IFLA_MTU, uint32(mtu))
	}
	return m.do()
}

func setDown(name string) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	return newRequest(unix.RTM_NEWLINK, 0, ifInfo(index, 0, unix.IFF_UP)).do()
}

func deleteLink(name string) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	return newRequest(unix.RTM_DELLINK, 0, ifInfo(index, 0, 0)).do()
}

func operational(name string) (bool, error) {
	index, err := indexOf(name)
	if err != nil {
		return false, err
	}
	// Taking the lock under which the kernel changes interfaces, with a change of nothing,
	// waits for one that has shown the state and not yet opened the queues.
	if err := newRequest(unix.RTM_NEWLINK, 0, ifInfo(index, 0, 0)).do(); err != nil {
		return false, err
	}
	state := newRequest(unix.RTM_GETLINK, 0, ifInfo(index, 0, 0))
	answer, err := state.ask()
	if err != nil {
		return false, err
	}
	const up = 6 // IF_OPER_UP of linux/if.h
	v, ok := attribute(answer, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg, unix.IFLA_OPERSTATE)
	return ok && len(v) == 1 && v[0] == up, nil
}

// attribute finds an attribute of a message whose attributes begin at a place.
func attribute(message []byte, at int, typ uint16) ([]byte, bool) {
	for at+unix.SizeofRtAttr <= len(message) {
		n := int(native.Uint16(message[at:]))
		if n < unix.SizeofRtAttr || at+n > len(message) {
			return nil, false
		}
		if native.Uint16(message[at+2:]) == typ {
			return message[at+unix.SizeofRtAttr : at+n], true
		}
		at += (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1)
	}
	return nil, false
}

func moveLink(name string, to *NS) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	rc, err := to.handle.SyscallConn()
	if err != nil {
		return err
	}
	m := newRequest(unix.RTM_NEWLINK, 0, ifInfo(index, 0, 0))
	failed := rc.Control(func(fd uintptr) {
		m.uint32(unix.IFLA_NET_NS_FD, uint32(fd))
		err = m.do()
	})
	return errors.Join(failed, err)
}

func setHardwareAddr(name string, addr net.HardwareAddr) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	m := newRequest(unix.RTM_NEWLINK, 0, ifInfo(index, 0, 0))
	m.attr(unix.IFLA_ADDRESS, addr)
	return m.do()
}

// newLink starts the request for a new interface of a kind, whose data add adds.
func newLink(name, kind string, add func(m *request)) *request {
	m := newRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, ifInfo(0, 0, 0))
	m.attr(unix.IFLA_IFNAME, append([]byte(name), 0))
	m.nest(unix.IFLA_LINKINFO, func() {
		m.attr(unix.IFLA_INFO_KIND, []byte(kind))
		m.nest(unix.IFLA_INFO_DATA, func() { add(m) })
	})
	return m
}

func addVLAN(name, parent string, id uint16, service bool) error {
	index, err := indexOf(parent)
	if err != nil {
		return err
	}
	tag := uint16(unix.ETH_P_8021Q)
	if service {
		tag = unix.ETH_P_8021AD
	}
	m := newLink(name, "vlan", func(m *request) {
		m.attr(unix.IFLA_VLAN_ID, native.AppendUint16(nil, id))
		m.attr(unix.IFLA_VLAN_PROTOCOL, []byte{byte(tag >> 8), byte(tag)})
	})
	m.uint32(unix.IFLA_LINK, uint32(index))
	return m.do()
}

func addPair(a, b string) error {
	const vethPeer = 1 // VETH_INFO_PEER of linux/veth.h
	return newLink(a, "veth", func(m *request) {
		m.nest(vethPeer, func() {
			m.b = append(m.b, ifInfo(0, 0, 0)...)
			m.attr(unix.IFLA_IFNAME, append([]byte(b), 0))
		})
	}).do()
}

func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func addAddr(name string, p netip.Prefix) error {
	index, err := indexOf(name)
	if err != nil {
		return err
	}
	if !p.IsValid() {
		return fmt.Errorf("no address: %w", os.ErrInvalid)
	}
	a := p.Addr()
	head := native.AppendUint32([]byte{family(a), byte(p.Bits()), 0, unix.RT_SCOPE_UNIVERSE}, uint32(index))
	m := newRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, head)
	m.attr(unix.IFA_LOCAL, a.AsSlice())
	m.attr(unix.IFA_ADDRESS, a.AsSlice())
	m.uint32(unix.IFA_FLAGS, unix.IFA_F_NODAD)
	return m.do()
}

func addRoute(dst netip.Prefix, via netip.Addr) error {
	if !dst.IsValid() || !via.IsValid() || dst.Addr().Is4() != via.Is4() {
		return fmt.Errorf("not two of one kind of address: %w", os.ErrInvalid)
	}
	head := []byte{family(via), byte(dst.Bits()), 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
	m := newRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, head)
	if dst.Bits() > 0 {
		m.attr(unix.RTA_DST, dst.Masked().Addr().AsSlice())
	}
	m.attr(unix.RTA_GATEWAY, via.AsSlice())
	return m.do()
}
