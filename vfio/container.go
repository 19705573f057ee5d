package vfio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

const (
	containerNode = "dev/vfio/vfio"
	type1Module   = "vfio_iommu_type1"
)

// container is a container and the IOMMU groups in it: a space of IOMMU type 1, or
// of none.
type container struct {
	k      Kernel
	fd     int
	iommu  int // extension that was set, 0 before there is a group
	groups map[string]*group
}

// group is an open IOMMU group. Its devices share it.
type group struct {
	fd      int
	devices int
}

// openContainer opens a container; with fd >= 0 it is one that a parent opened.
func openContainer(k Kernel, fd int) (*container, error) {
	c := &container{k: k, fd: fd, groups: map[string]*group{}}
	if fd < 0 {
		var err error
		if c.fd, err = openNode(k, containerNode); err != nil {
			return nil, err
		}
	}
	if v, err := k.IoctlInt(c.fd, uapi.GetAPIVersion, 0); err != nil || v != uapi.APIVersion {
		if err == nil {
			err = fmt.Errorf("version %d of the interface, and this package knows %d: %w", v, uapi.APIVersion, errors.ErrUnsupported)
		}
		return nil, errors.Join(&Error{Call: "VFIO_GET_API_VERSION", Err: err}, k.Close(c.fd))
	}
	return c, nil
}

// openNode opens a device node and says who holds one that is busy.
func openNode(k Kernel, node string) (int, error) {
	fd, err := k.Open(node)
	if err == nil {
		return fd, nil
	}
	e := &Error{Call: "open /" + node, Err: err}
	switch {
	case errors.Is(err, syscall.EBUSY):
		e.Remedy = busy(k, node)
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "run as root, or let a udev rule give /dev/vfio to your group: stmmacctl doctor prints one"
	}
	return -1, e
}

// node is the device node of the device's group.
func (i *Info) groupNode() string {
	n := strconv.Itoa(i.Group)
	if i.NoIOMMU() {
		n = noiommuPrefix + n
	}
	return path.Join("dev/vfio", n)
}

func (c *container) attach(i *Info, token *VFToken) (int, error) {
	if i.Group < 0 {
		return -1, fmt.Errorf("the device is in no IOMMU group: there is no IOMMU, or it is off: %w", os.ErrNotExist)
	}
	node := i.groupNode()
	g := c.groups[node]
	if g == nil {
		var err error
		if g, err = c.join(node, i); err != nil {
			return -1, err
		}
		c.groups[node] = g
	}
	name := i.Name
	if token != nil {
		name += " vf_token=" + token.String()
	}
	fd, err := c.k.Ioctl(g.fd, uapi.GroupGetDeviceFD, append([]byte(name), 0))
	if err != nil {
		e := &Error{Call: "VFIO_GROUP_GET_DEVICE_FD", Err: err}
		switch {
		case errors.Is(err, syscall.EACCES) && asleep(c.k, i):
			e = sleepError("VFIO_GROUP_GET_DEVICE_FD", i, err)
		case token == nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) && i.VF):
			e.Remedy = "a virtual function of a PF that VFIO has needs the token of its PF (WithVFToken)"
		case errors.Is(err, syscall.ENODEV):
			e.Remedy = "the device is not with a VFIO driver: stmmacctl bind " + i.Name
		}
		return -1, errors.Join(e, c.leave(node))
	}
	g.devices++
	return fd, nil
}

// join opens a group and puts it into the container.
func (c *container) join(node string, i *Info) (*group, error) {
	fd, err := openNode(c.k, node)
	if err != nil {
		return nil, err
	}
	if err := c.adopt(fd, i); err != nil {
		return nil, errors.Join(err, c.k.Close(fd))
	}
	return &group{fd: fd}, nil
}

// adopt puts an open group into the container, unless a parent did. The order is
// the kernel's: group, then IOMMU type, then devices and mappings.
func (c *container) adopt(fd int, i *Info) error {
	status := uapi.GroupStatus{Argsz: uint32(len(uapi.Bytes(&uapi.GroupStatus{})))}
	if _, err := c.k.Ioctl(fd, uapi.GroupGetStatus, uapi.Bytes(&status)); err != nil {
		return &Error{Call: "VFIO_GROUP_GET_STATUS", Err: err}
	}
	if status.Flags&uapi.GroupViable == 0 {
		return notViable(c.k, i)
	}
	if status.Flags&uapi.GroupContainerSet == 0 {
		var arg [4]byte
		binary.NativeEndian.PutUint32(arg[:], uint32(c.fd))
		if _, err := c.k.Ioctl(fd, uapi.GroupSetContainer, arg[:]); err != nil {
			return refused("VFIO_GROUP_SET_CONTAINER", err, type1Module)
		}
	}
	if c.iommu != 0 {
		return nil
	}
	types := []int{uapi.Type1v2IOMMU, uapi.Type1IOMMU}
	if i.NoIOMMU() {
		types = []int{uapi.NoIOMMU}
	}
	for _, t := range types {
		if n, err := c.k.IoctlInt(c.fd, uapi.CheckExtension, t); err != nil || n <= 0 {
			continue
		}
		_, err := c.k.IoctlInt(c.fd, uapi.SetIOMMU, t)
		if errors.Is(err, syscall.EINVAL) && status.Flags&uapi.GroupContainerSet != 0 {
			err = nil // the parent that put the group in has set it
		}
		if err != nil {
			e := &Error{Call: "VFIO_SET_IOMMU", Err: err}
			if errors.Is(err, fs.ErrPermission) {
				e.Remedy = unsafeInterrupts(type1Module)
			}
			return e
		}
		c.iommu = t
		return nil
	}
	return &Error{Call: "VFIO_CHECK_EXTENSION", Err: fmt.Errorf("the kernel has no IOMMU of type 1: %w", errors.ErrUnsupported),
		Remedy: "modprobe vfio_iommu_type1; riscv64 and loong64 have none, and need iommufd"}
}

// notViable names the devices that keep a group from being used.
func notViable(k Kernel, i *Info) error {
	e := &Error{Call: "VFIO_GROUP_GET_STATUS", Err: fmt.Errorf("group %d: %w", i.Group, ErrNotViable),
		Remedy: "give every device of the group to VFIO or to no driver: stmmacctl doctor lists them"}
	members, err := Members(k, i.Group)
	if err != nil {
		return e
	}
	if bad := offenders(members, i); len(bad) > 0 {
		e.Err = fmt.Errorf("group %d: %w: %s", i.Group, ErrNotViable, withDrivers(bad))
	}
	return e
}

// leave closes a group that no device is open of.
func (c *container) leave(node string) error {
	g := c.groups[node]
	if g.devices > 0 {
		return nil
	}
	delete(c.groups, node)
	if err := c.k.Close(g.fd); err != nil {
		return &Error{Call: "close /" + node, Err: err}
	}
	return nil
}

// detach closes the device, then the group; end closes the container.
func (c *container) detach(i *Info, fd int) error {
	err := closeFD(c.k, fd)
	node := i.groupNode()
	if g := c.groups[node]; g != nil {
		g.devices--
		err = errors.Join(err, c.leave(node))
	}
	return err
}

func closeFD(k Kernel, fd int) error {
	if err := k.Close(fd); err != nil {
		return &Error{Call: "close", Err: err}
	}
	return nil
}

func (c *container) limits() (limits, error) {
	info, answer, err := query(c.k, c.fd, uapi.IOMMUGetInfo, "VFIO_IOMMU_GET_INFO", uapi.Type1Info{},
		func(i *uapi.Type1Info) *uint32 { return &i.Argsz })
	if err != nil {
		return limits{}, err
	}
	l := limits{
		// what kernels before 5.8 have, which do not tell
		ranges: []uapi.IOVARange{{Start: 0, Last: 1<<39 - 1}},
		page:   uint64(c.k.PageSize()),
		left:   -1,
	}
	if info.Flags&uapi.Type1InfoPageSizes != 0 {
		l.page = smallestPage(info.PageSizes, c.k.PageSize())
	}
	if info.Flags&uapi.Type1InfoCaps == 0 {
		return l, nil
	}
	caps, err := capabilities(answer, info.CapOffset)
	if err != nil {
		return limits{}, &Error{Call: "VFIO_IOMMU_GET_INFO", Err: err}
	}
	for _, c := range caps {
		switch {
		case c.id == uapi.Type1CapIOVARange:
			pairs, err := c.pairs()
			if err != nil {
				return limits{}, &Error{Call: "VFIO_IOMMU_GET_INFO", Err: err}
			}
			l.ranges = nil
			for _, p := range pairs {
				l.ranges = append(l.ranges, uapi.IOVARange{Start: p[0], Last: p[1]})
			}
		case c.id == uapi.Type1CapDMAAvail && len(c.data) >= 4:
			l.left = int(binary.NativeEndian.Uint32(c.data))
		}
	}
	return l, nil
}

func (c *container) mapDMA(mem []byte, iova uint64) (uint64, error) {
	arg := uapi.Type1Map{Flags: uapi.MapRead | uapi.MapWrite, Vaddr: vaddr(mem), IOVA: iova, Size: uint64(len(mem))}
	arg.Argsz = uint32(len(uapi.Bytes(&arg)))
	_, err := c.k.Ioctl(c.fd, uapi.IOMMUMapDMA, uapi.Bytes(&arg))
	if err == nil {
		return iova, nil
	}
	e := &Error{Call: "VFIO_IOMMU_MAP_DMA", Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.Remedy = "the container has as many mappings as it may: map larger pieces, or modprobe vfio_iommu_type1 dma_entry_limit=N"
	case errors.Is(err, syscall.ENOMEM):
		e.Err = fmt.Errorf("%w: %w", ErrMemlock, err)
		e.Remedy = "raise the limit: ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit, or CAP_IPC_LOCK"
	}
	return 0, e
}

func (c *container) unmapDMA(iova, n uint64) error {
	arg := uapi.Type1Unmap{IOVA: iova, Size: n}
	arg.Argsz = uint32(len(uapi.Bytes(&arg)))
	if _, err := c.k.Ioctl(c.fd, uapi.IOMMUUnmapDMA, uapi.Bytes(&arg)); err != nil {
		return &Error{Call: "VFIO_IOMMU_UNMAP_DMA", Err: err}
	}
	return unmapped("VFIO_IOMMU_UNMAP_DMA", n, arg.Size)
}

func (c *container) pins() bool     { return true }
func (c *container) physical() bool { return false }
func (c *container) end() error     { return closeFD(c.k, c.fd) }
