package vfiotest

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// group is an IOMMU group. Its node can be open once; devices that are open count
// as users of it.
type group struct {
	k         *Kernel
	num       int
	noiommu   bool
	devices   []*Device
	users     int // the descriptor and the device files
	container *container
	cdevs     int // devices that are open by their own nodes
}

// viable says that no device of the group is with a driver that could do DMA of
// its own.
func (g *group) viable() bool {
	return !slices.ContainsFunc(g.devices, func(d *Device) bool {
		const bridge = 0x0604
		return d.driver != "" && !d.vfio() && !(d.class()>>8 == bridge && d.driver == "pcieport")
	})
}

// hasNode says that a device of the group is with a VFIO driver.
func (g *group) hasNode() bool { return slices.ContainsFunc(g.devices, (*Device).vfio) }

func (k *Kernel) openGroup(g *group) (int, error) {
	switch {
	case g.noiommu && !k.cfg.CapSysRawIO:
		return -1, unix.EPERM
	case g.users > 0 || g.cdevs > 0:
		return -1, unix.EBUSY
	}
	g.users = 1
	return k.install(g), nil
}

// put drops a user. The last one takes the group out of its container.
func (g *group) put() {
	g.users--
	if g.users == 0 {
		g.leave()
	}
}

func (g *group) leave() {
	c := g.container
	if c == nil {
		return
	}
	g.container = nil
	c.groups = slices.DeleteFunc(c.groups, func(o *group) bool { return o == g })
	if len(c.groups) == 0 {
		c.typ = 0
		c.k.locked -= c.maps.bytes
		c.maps = table{}
	}
	c.forget()
}

func (g *group) ioctl(req uint32, arg []byte) (int, error) {
	switch req {
	case uapi.GroupGetStatus:
		s, err := readArg[uapi.GroupStatus](arg, 8)
		if err != nil {
			return 0, err
		}
		s.Flags = 0
		if g.container != nil {
			s.Flags = uapi.GroupContainerSet | uapi.GroupViable
		} else if g.viable() {
			s.Flags = uapi.GroupViable
		}
		writeArg(arg, &s, 8)
		return 0, nil
	case uapi.GroupSetContainer:
		var fd int32
		if len(arg) < 4 {
			return 0, unix.EFAULT
		}
		copy(uapi.Bytes(&fd), arg)
		return 0, g.setContainer(int(fd))
	case uapi.GroupUnsetContainer:
		switch {
		case g.container == nil:
			return 0, unix.EINVAL
		case g.users > 1:
			return 0, unix.EBUSY
		}
		g.leave()
		return 0, nil
	case uapi.GroupGetDeviceFD:
		end := bytes.IndexByte(arg, 0)
		if end < 0 {
			return 0, unix.EFAULT
		}
		return g.openDevice(string(arg[:end]))
	}
	return 0, unix.ENOTTY
}

func (g *group) setContainer(fd int) error {
	f, ok := g.k.fds[fd]
	if !ok {
		return unix.EBADF
	}
	if g.container != nil {
		return unix.EINVAL
	}
	c, ok := f.(*container)
	switch {
	case !ok:
		return unix.EBADFD
	case g.noiommu && !g.k.cfg.CapSysRawIO:
		return unix.EPERM
	case len(c.groups) > 0 && c.noiommu != g.noiommu:
		return unix.EPERM
	case !g.noiommu && !g.viable():
		return unix.EPERM
	}
	g.container = c
	c.groups = append(c.groups, g)
	c.noiommu = g.noiommu
	return nil
}

// openDevice opens the device of a name, which for a virtual function has its
// token behind it: "0000:03:00.1 vf_token=…".
func (g *group) openDevice(name string) (int, error) {
	name, options, _ := strings.Cut(name, " ")
	i := slices.IndexFunc(g.devices, func(d *Device) bool { return d.name == name && d.vfio() && !d.gone })
	if i < 0 {
		return 0, unix.ENODEV
	}
	d := g.devices[i]
	var token string
	for _, o := range strings.Fields(options) {
		v, ok := strings.CutPrefix(o, "vf_token=")
		if !ok || d.bus != pciBus || token != "" || !validUUID(v) {
			return 0, unix.EINVAL
		}
		token = v
	}
	if err := d.checkToken(token); err != nil {
		return 0, err
	}
	if g.container == nil || g.container.typ == 0 {
		return 0, unix.EINVAL
	}
	if g.noiommu && !g.k.cfg.CapSysRawIO {
		return 0, unix.EPERM
	}
	if err := d.wake(); err != nil {
		return 0, err
	}
	f := &deviceFile{d: d, granted: true, users: 1}
	g.users++
	d.open()
	return g.k.install(f), nil
}

// container is an open /dev/vfio/vfio. It has an IOMMU, and mappings, while a
// group is in it.
type container struct {
	k       *Kernel
	name    string
	open    bool
	groups  []*group
	noiommu bool
	typ     int // of the IOMMU, 0 for none
	maps    table
}

// forget drops the container when nothing refers to it.
func (c *container) forget() {
	if !c.open && len(c.groups) == 0 {
		c.k.containers = slices.DeleteFunc(c.k.containers, func(o *container) bool { return o == c })
	}
}

func (c *container) ioctl(req uint32, arg []byte, num int) (int, error) {
	switch req {
	case uapi.GetAPIVersion:
		return uapi.APIVersion, nil
	case uapi.CheckExtension:
		if c.extension(num) {
			return 1, nil
		}
		return 0, nil
	case uapi.SetIOMMU:
		return 0, c.setIOMMU(num)
	}
	switch {
	case c.typ == 0:
		return 0, unix.EINVAL
	case c.noiommu:
		return 0, unix.ENOTTY
	}
	switch req {
	case uapi.IOMMUGetInfo:
		return 0, c.info(arg)
	case uapi.IOMMUMapDMA:
		return 0, c.mapDMA(arg)
	case uapi.IOMMUUnmapDMA:
		return 0, c.unmapDMA(arg)
	}
	return 0, unix.ENOTTY
}

const (
	coherentDMA = 4 // VFIO_DMA_CC_IOMMU
	unmapAllExt = 9 // VFIO_UNMAP_ALL
)

func (c *container) extension(n int) bool {
	type1 := len(c.groups) == 0 || !c.noiommu
	switch n {
	case uapi.Type1IOMMU, uapi.Type1v2IOMMU, unmapAllExt:
		return type1
	case coherentDMA:
		return c.typ != 0 && !c.noiommu
	case uapi.NoIOMMU:
		return c.k.cfg.NoIOMMU && (len(c.groups) == 0 || c.noiommu)
	}
	return false
}

func (c *container) setIOMMU(typ int) error {
	if len(c.groups) == 0 || c.typ != 0 {
		return unix.EINVAL
	}
	switch typ {
	case uapi.Type1IOMMU, uapi.Type1v2IOMMU:
		if c.noiommu {
			return unix.ENODEV
		}
	case uapi.NoIOMMU:
		switch {
		case !c.noiommu || !c.k.cfg.NoIOMMU:
			return unix.ENODEV
		case !c.k.cfg.CapSysRawIO:
			return unix.EPERM
		}
	default:
		return unix.ENODEV
	}
	c.typ = typ
	return nil
}
