package vfiotest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

const (
	pciBus      = vfio.PCI
	platformBus = vfio.Platform
)

// Device is a device of a [Kernel]. What its methods do is the hardware's side;
// the driver's is the Kernel's. They may be called by several goroutines.
type Device struct {
	k        *Kernel
	name     string
	bus      vfio.Bus
	pci      PCI
	platform Platform

	driver, native, override string
	net                      []string
	group                    *group
	instance                 int // of VFIO, which its node is named by; -1 for none
	home                     int // the group that it was added to, -1 for none
	pmOff                    bool

	regions []region
	irqs    []irq
	config  []byte // PCI configuration space
	mask    []byte // its bits that can be written

	opens    int
	iommufd  *iommufd // that it is bound to by its node
	id       uint32   // in the iommufd
	space    *ioas    // that it is attached to
	resets   int
	gone     bool
	lowPower bool
}

// AddPCI adds a function to the PCI bus.
func (k *Kernel) AddPCI(p PCI) (*Device, error) {
	if bdf, ok := vfio.ParseBDF(p.BDF); !ok || bdf != p.BDF {
		return nil, fmt.Errorf("vfiotest: %q is no address of a PCI function as sysfs has it: %w", p.BDF, os.ErrInvalid)
	}
	if p.Class == 0 {
		p.Class = 0x020000
	}
	if len(p.BARs) > uapi.PCIROM || p.MSI < 0 || p.MSI > 32 || p.MSIX.Count < 0 || p.MSIX.Count > 2048 {
		return nil, fmt.Errorf("vfiotest: %s has too many BARs or vectors: %w", p.BDF, os.ErrInvalid)
	}
	if p.Token != "" && !validUUID(p.Token) {
		return nil, fmt.Errorf("vfiotest: %s: %q is no UUID: %w", p.BDF, p.Token, os.ErrInvalid)
	}
	regions := make([]Region, uapi.PCINumRegions)
	copy(regions, p.BARs)
	regions[uapi.PCIROM] = Region{Size: p.ROM}
	d := &Device{k: k, name: p.BDF, bus: pciBus, pci: p, driver: p.Driver, native: p.Native, net: p.Net, instance: -1}
	counts := []int{boolInt(p.INTx), p.MSI, p.MSIX.Count, 1, 1}
	for i, n := range counts {
		q := irq{count: n, flags: uapi.IRQEventfd | uapi.IRQNoResize}
		switch {
		case i == uapi.PCIINTx:
			q.flags = uapi.IRQEventfd | uapi.IRQMaskable | uapi.IRQAutomasked
		case i == uapi.PCIMSIX && p.MSIX.Dynamic:
			q.flags = uapi.IRQEventfd
		case i == uapi.PCIERR || i == uapi.PCIREQ:
			q.fds = []int{-1}
		}
		d.irqs = append(d.irqs, q)
	}
	return k.add(d, regions, p.Group)
}

// AddPlatform adds a device to the platform bus.
func (k *Kernel) AddPlatform(p Platform) (*Device, error) {
	if p.Name == "" || p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/ \x00\n") {
		return nil, fmt.Errorf("vfiotest: %q is no name of a device: %w", p.Name, os.ErrInvalid)
	}
	d := &Device{k: k, name: p.Name, bus: platformBus, platform: p, driver: p.Driver, native: p.Native, net: p.Net, instance: -1}
	for _, line := range p.Interrupts {
		q := irq{count: 1, flags: uapi.IRQEventfd, fds: []int{-1}}
		if line.Level {
			q.flags |= uapi.IRQMaskable | uapi.IRQAutomasked
		}
		d.irqs = append(d.irqs, q)
	}
	return k.add(d, p.Regions, p.Group)
}

// add makes what both kinds of devices have.
func (k *Kernel) add(d *Device, regions []Region, num int) (*Device, error) {
	k.mu.Lock()
	defer k.unlock()
	if slices.ContainsFunc(k.devices, func(o *Device) bool { return o.name == d.name }) {
		return nil, fmt.Errorf("vfiotest: %s exists: %w", d.name, os.ErrExist)
	}
	if d.native == "" && !strings.HasPrefix(d.driver, "vfio-") {
		d.native = d.driver
	}
	const bars, each = uint64(0x4_0000_0000), 1 << 28 // above what 32 bits reach
	base := bars + each*uint64(len(k.devices))
	for i, r := range regions {
		g := region{Region: r}
		if r.Size > 0 {
			var err error
			if err = r.check(uint64(k.cfg.PageSize)); err == nil {
				g.mem, err = k.newMemory(fmt.Sprintf("%s-%d", d.name, i), r.Size)
			}
			if err != nil {
				return nil, fmt.Errorf("vfiotest: %s: region %d: %w", d.name, i, err)
			}
			if g.Base == 0 {
				base = roundUp(base, powerOf2(max(r.Size, uint64(k.cfg.PageSize))))
				g.Base = base
				base += r.Size
			}
		}
		d.regions = append(d.regions, g)
	}
	if d.bus == pciBus {
		if err := d.makeConfig(); err != nil {
			return nil, err
		}
	}
	d.home = num
	driver := d.driver
	d.driver = ""
	if d.isVFIO(driver) {
		d.override = driver // no VFIO driver takes a device by its ids
	}
	if err := d.appear(driver); err != nil {
		return nil, fmt.Errorf("vfiotest: %s: %w", d.name, errors.Join(err, d.vanish()))
	}
	return d, nil
}

// appear puts the device on its bus and gives it to a driver, "" for none.
func (d *Device) appear(driver string) error {
	if d.home >= 0 {
		d.join(d.home, false)
	}
	d.k.devices = append(d.k.devices, d)
	if err := d.writeTree(); err != nil || driver == "" {
		return err
	}
	return d.bind(driver)
}

// join puts the device into a group, which is made if there is none of the number.
func (d *Device) join(num int, noiommu bool) {
	g := d.k.groups[num]
	if g == nil {
		g = &group{k: d.k, num: num, noiommu: noiommu}
		d.k.groups[num] = g
	}
	g.devices = append(g.devices, d)
	d.group = g
}

// part takes the device out of its group.
func (d *Device) part() {
	g := d.group
	d.group = nil
	g.devices = slices.DeleteFunc(g.devices, func(o *Device) bool { return o == d })
	if len(g.devices) == 0 {
		delete(d.k.groups, g.num)
	}
}

// Name is the name in sysfs.
func (d *Device) Name() string { return d.name }

// Driver is the kernel driver that the device is with, or "".
func (d *Device) Driver() string {
	d.k.mu.Lock()
	defer d.k.unlock()
	return d.driver
}

// IsOpen says that a descriptor or a mapping of the device is open.
func (d *Device) IsOpen() bool {
	d.k.mu.Lock()
	defer d.k.unlock()
	return d.opens > 0
}

// Resets is how often the device was reset. Opening and closing one that can be
// reset does.
func (d *Device) Resets() int {
	d.k.mu.Lock()
	defer d.k.unlock()
	return d.resets
}

// Memory is the memory of a region, shared with those who mapped it; nil for one
// that does not exist. It stays until [Kernel.Free].
func (d *Device) Memory(region int) []byte {
	d.k.mu.Lock()
	defer d.k.unlock()
	if region < 0 || region >= len(d.regions) || d.regions[region].mem == nil {
		return nil
	}
	return d.regions[region].mem.data[:d.regions[region].Size]
}

// Unplug takes the device away. A PCI function asks its user to let it go (the
// request interrupt); after that no interrupt comes. The device stays in sysfs until
// it is closed. Access to its regions and configuration space fails with EIO,
// access to memory that was mapped raises SIGBUS, and it can be neither reset nor
// opened. Its model keeps its memory.
func (d *Device) Unplug() error {
	d.k.mu.Lock()
	defer d.k.unlock()
	if d.gone {
		return nil
	}
	d.gone = true
	d.zap()
	if d.bus == pciBus {
		d.irqs[uapi.PCIREQ].signal(0)
	}
	if d.opens == 0 {
		return d.vanish()
	}
	return nil
}

// vanish removes a device that was unplugged.
func (d *Device) vanish() error {
	err := d.unbind()
	if e := d.removeTree(); err == nil {
		err = e
	}
	if d.group != nil {
		d.part()
	}
	d.k.devices = slices.DeleteFunc(d.k.devices, func(o *Device) bool { return o == d })
	return err
}

func (d *Device) isVFIO(driver string) bool { return driver == "vfio-"+string(d.bus) }

// vfio says that the device is with the VFIO driver of its bus.
func (d *Device) vfio() bool { return d.isVFIO(d.driver) }

// class is the PCI class code.
func (d *Device) class() uint32 { return d.pci.Class }

func (d *Device) resettable() bool {
	if d.bus == pciBus {
		return d.pci.FLR
	}
	return d.platform.Reset
}

// wake is what the kernel does before it opens the device.
func (d *Device) wake() error {
	if d.pmOff {
		return unix.EACCES
	}
	return nil
}

// open counts one more user. The first finds a device that was reset and does no DMA.
func (d *Device) open() {
	d.opens++
	if d.opens > 1 {
		return
	}
	d.reset()
	if d.bus == pciBus {
		cmd := d.command() &^ (commandMaster | commandNoINTx)
		if !d.pci.NoMemory {
			cmd |= commandMemory
		} else {
			cmd &^= commandMemory
		}
		d.setCommand(cmd)
	}
}

// close counts one user less. After the last, the device does nothing any more.
func (d *Device) close() {
	d.opens--
	if d.opens > 0 {
		return
	}
	for i := range d.irqs {
		d.disable(&d.irqs[i])
		d.irqs[i].masked = false
	}
	d.lowPower = false
	if d.bus == pciBus {
		d.setCommand(d.command() &^ commandMaster)
	}
	d.reset()
	d.k.closed.Broadcast()
	if d.gone {
		// What failed is on the disk of the test: nobody is left to be told.
		_ = d.vanish()
	}
}

// reset resets the device if it has a reset of its own.
func (d *Device) reset() {
	if d.resettable() && !d.gone {
		d.resetNow()
	}
}

// resetNow is what a reset does, whichever way.
func (d *Device) resetNow() {
	d.resets++
	hook := d.platform.OnReset
	if d.bus == pciBus {
		hook = d.pci.OnReset
		cmd := d.command()
		if !d.pci.KeepMaster {
			cmd &^= commandMaster
		}
		if d.pci.NoMemory {
			cmd &^= commandMemory
		}
		d.setCommand(cmd)
	}
	if hook != nil {
		d.k.after = append(d.k.after, hook)
	}
}

// checkToken compares the token of a virtual function; "" is none.
func (d *Device) checkToken(token string) error {
	switch want := d.pci.Token; {
	case want != "" && !strings.EqualFold(token, want):
		return unix.EACCES
	case want == "" && token != "" && !d.pci.SRIOV:
		return unix.EINVAL
	}
	return nil
}

// validUUID says that s is a UUID in its usual form.
func validUUID(s string) bool {
	_, ok := parseUUID(s)
	return ok
}

func parseUUID(s string) (u [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(u) {
		return u, false
	}
	return [16]byte(b), true
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// powerOf2 is the smallest power of 2 that is not less than n.
func powerOf2(n uint64) uint64 {
	p := uint64(1)
	for p < n && p < 1<<63 {
		p <<= 1
	}
	return p
}
