package vfio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Binding is a device that [Bind] gave to VFIO. Its methods may be called by one
// goroutine at a time.
type Binding struct {
	// Info is the device as it is with the VFIO driver.
	Info Info
	// Warnings are what may go wrong later because of the change of driver, for
	// people.
	Warnings []string

	k      Kernel
	before Info // the device as it was
	undone bool // there is nothing to restore
}

// BindOption is an option of [Bind].
type BindOption func(*bindOptions)

type bindOptions struct{ force bool }

// WithForce lets Bind take a device whose network interface is up.
func WithForce() BindOption { return func(o *bindOptions) { o.force = true } }

// Bind takes the device that [Lookup] finds by the name dev away from its kernel
// driver and gives it to vfio-pci or vfio-platform. It needs the rights of root. A
// device that is with that driver already is left as it is.
//
// Drivers of the kernel may leave the runtime power management of a PCI function off when
// it is taken from them, and VFIO cannot open it then; stmmac does, in all Linux up to
// 7.3. Such a function is removed from its bus and found again, so that its interfaces and
// the number of its group are new. For that moment no driver is looked for on the bus.
//
// It refuses a device with a network interface that is up (the error wraps
// syscall.EBUSY) unless [WithForce] is given, and a platform device that
// vfio-platform would not take, and one without an IOMMU while noiommu mode is off. When a step fails, or ctx ends between two, what was
// done is undone; the error says in what state the device is.
func Bind(ctx context.Context, k Kernel, dev string, opts ...BindOption) (*Binding, error) {
	var o bindOptions
	for _, opt := range opts {
		opt(&o)
	}
	i, err := Lookup(k, dev)
	if err != nil {
		return nil, err
	}
	b := &Binding{Info: i, k: k, before: i}
	want := i.Bus.vfioDriver()
	if i.Driver == want {
		b.undone = true
		if !asleep(k, &i) {
			return b, nil
		}
		if err := notInUse(k, &i); err != nil {
			return nil, wrap("bind to "+want, i.Name, err)
		}
	} else if err := mayBind(k, &i, o.force); err != nil {
		return nil, wrap("bind to "+want, i.Name, err)
	}
	b.Warnings = bindWarnings(k, &i)
	if err := b.bind(ctx, want); err != nil {
		return nil, wrap("bind to "+want, i.Name, err)
	}
	return b, nil
}

// mayBind says why a device should not be taken away from its driver.
func mayBind(k Kernel, i *Info, force bool) error {
	want := i.Bus.vfioDriver()
	if _, err := fs.Stat(k.FS(), driverDir(i.Bus, want)); errors.Is(err, fs.ErrNotExist) {
		return &Error{Err: fmt.Errorf("the kernel has no driver %s: %w", want, fs.ErrNotExist), Remedy: "load it: `" + modprobe(i.Bus) + "`, and if that fails `stmmacctl doctor` says why"}
	} else if err != nil {
		return failed("look for the driver "+want, err, "see `ls -ld /%s`", driverDir(i.Bus, want))
	}
	if i.Bus == Platform && resetRequired(k) && !hasResetModule(i) {
		return &Error{
			Err: fmt.Errorf("vfio-platform would not take it, as it has no reset function for %s and its parameter reset_required is Y: %w",
				strings.Join(i.Compatible, ", "), errors.ErrUnsupported),
			Remedy: "load the driver again: `" + reloadPlatform + "`",
		}
	}
	if mode, _ := attribute(k.FS(), noiommuParameter); i.Group < 0 && mode == "N" {
		return &Error{
			Err: fmt.Errorf("%s would not take it, as no IOMMU is behind it and noiommu mode is off: %w", want, errors.ErrUnsupported),
			Remedy: "`stmmacctl doctor " + i.address() + "` says whether the machine has an IOMMU; on one of which everything may be lost, " +
				"`echo 1 | sudo tee /" + noiommuParameter + "`",
		}
	}
	if up := slices.DeleteFunc(slices.Clone(i.Interfaces), func(name string) bool { return !isUp(k, name) }); len(up) > 0 && !force {
		return &Error{
			Err:    fmt.Errorf("its network interface %s is up: %w", strings.Join(up, ", "), syscall.EBUSY),
			Remedy: "if nobody needs it, `sudo ip link set " + up[0] + " down`, or bind it by force: WithForce, `stmmacctl bind -force`",
		}
	}
	return nil
}

// modprobe is the command that loads the VFIO driver of a bus.
func modprobe(b Bus) string {
	if b == Platform {
		return "sudo modprobe vfio-platform reset_required=0"
	}
	return "sudo modprobe " + b.vfioDriver()
}

// reloadPlatform is the command that changes a parameter that is read only.
const reloadPlatform = "sudo modprobe -r vfio-platform && sudo modprobe vfio-platform reset_required=0"

// resetRequired says that vfio-platform takes no device that it cannot reset.
func resetRequired(k Kernel) bool {
	v, _ := attribute(k.FS(), "sys/module/vfio_platform/parameters/reset_required")
	return v == "Y"
}

// resettable are the compatibles for which Linux has a reset module
// (drivers/vfio/platform/reset). No DesignWare MAC is among them.
var resettable = []string{"calxeda,hb-xgmac", "amd,xgbe-seattle-v1a", "brcm,iproc-flexrm-mbox"}

// hasResetModule looks at the first compatible, as the kernel does.
func hasResetModule(i *Info) bool {
	return len(i.Compatible) > 0 && slices.Contains(resettable, i.Compatible[0])
}

// isUp says that a network interface is in use: it is administratively up.
func isUp(k Kernel, name string) bool {
	const iffUp = 1 << 0
	flags, err := attribute(k.FS(), path.Join("sys/class/net", name, "flags"))
	if n, e := strconv.ParseUint(flags, 0, 32); err == nil && e == nil {
		return n&iffUp != 0
	}
	state, _ := attribute(k.FS(), path.Join("sys/class/net", name, "operstate"))
	return state == "up"
}

// bindWarnings are what Bind does not refuse for.
func bindWarnings(k Kernel, i *Info) (all []string) {
	if w := clockWarning(k, i); w != "" {
		all = append(all, w)
	}
	if i.Group < 0 {
		return append(all, "it is in no IOMMU group: VFIO takes it in noiommu mode alone, in which nothing keeps the device from writing to all memory")
	}
	if members, err := Members(k, i.Group); err == nil {
		if bad := offenders(members, i); len(bad) > 0 {
			all = append(all, fmt.Sprintf("no device of IOMMU group %d can be opened while %s of it", i.Group, withDrivers(bad)))
		}
	}
	return all
}

// clockWarning says what becomes of the clocks when the kernel driver of a platform
// device goes: VFIO leaves them as they are then.
func clockWarning(k Kernel, i *Info) string {
	if i.Bus != Platform || i.Driver == "" || i.Driver == i.Bus.vfioDriver() {
		return ""
	}
	if n := ofNode(k, i); n != "" && !present(k, path.Join(n, "clocks")) && !present(k, path.Join(n, "resets")) {
		return ""
	}
	return fmt.Sprintf("%s switches the clocks of the device off and asserts its resets when it is unbound, and vfio-platform does not switch them on again: "+
		"a register that is read then hangs or aborts the machine", i.Driver)
}

func driverDir(b Bus, driver string) string {
	return path.Join("sys/bus", string(b), "drivers", driver)
}

// bind makes the change.
func (b *Binding) bind(ctx context.Context, want string) error {
	i := &b.before
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := setOverride(b.k, i, want); err != nil {
		return err
	}
	err := b.swap(ctx, want)
	if err == nil {
		return nil
	}
	undo := giveBack(b.k, i)
	e := inState(b.k, i, err, undo...)
	if now, err := inspect(b.k, i.Bus, i.Name); err == nil && i.Driver != "" && now.Driver != i.Driver {
		give := "give it back: `" + tee(i.Name, path.Join(driverDir(i.Bus, i.Driver), "bind")) + "`"
		if e.Remedy != "" {
			give = e.Remedy + "; " + give
		}
		e.Remedy = give
	}
	return e
}

// swap takes the driver that the device has away and lets the kernel look for
// another.
func (b *Binding) swap(ctx context.Context, want string) error {
	i := &b.before
	if i.Driver != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeAttribute(b.k, path.Join(i.dir(), "driver/unbind"), i.Name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if asleep(b.k, i) {
		if err := readd(b.k, i); err != nil {
			return err
		}
		if err := setOverride(b.k, i, want); err != nil {
			return err
		}
	}
	if err := probeDriver(b.k, i); err != nil {
		return err
	}
	now, err := inspect(b.k, i.Bus, i.Name)
	if err != nil {
		return failed("read its state", err, "see `ls -l /%s`", i.dir())
	}
	if now.Driver != want {
		return &Error{Err: fmt.Errorf("%s did not take it: %w", want, syscall.ENODEV), Remedy: refusal(i.Bus)}
	}
	b.Info = now
	return nil
}

// refusal is what to do when a VFIO driver does not take a device.
func refusal(b Bus) string {
	const look = "the kernel's log says why: `sudo dmesg | grep -i vfio`"
	if b == Platform {
		return look + "; if it is that no reset function was found, `" + reloadPlatform + "`; if it is error -22, DMA behind the IOMMU is not coherent"
	}
	return look + "; if it is error -22, there is no IOMMU and noiommu mode is off"
}

// giveBack undoes a Bind that failed, as far as it came.
func giveBack(k Kernel, was *Info) (errs []error) {
	now, err := inspect(k, was.Bus, was.Name)
	if err != nil {
		return []error{err}
	}
	errs = append(errs, setOverride(k, was, was.Override))
	if now.Driver == was.Driver {
		return errs
	}
	if now.Driver != "" {
		errs = append(errs, writeAttribute(k, path.Join(was.dir(), "driver/unbind"), was.Name))
	}
	if was.Driver != "" {
		errs = append(errs, probeDriver(k, was))
	}
	return errs
}

// inState adds to an error those of undoing what was done, and how the device is
// left.
func inState(k Kernel, was *Info, err error, undo ...error) *Error {
	e := new(Error)
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	left := &stateError{errs: []error{e.Err}, text: e.Err.Error()}
	for _, u := range undo {
		if u == nil {
			continue
		}
		left.errs = append(left.errs, u)
		text := u.Error()
		if f := new(Error); errors.As(u, &f) && f.Call != "" {
			text = f.Call + ": " + f.Err.Error()
		}
		left.text += "; it could not be undone: " + text
	}
	now, gone := inspect(k, was.Bus, was.Name)
	switch {
	case gone != nil:
		left.text += "; the device is gone"
	case now.Driver == was.Driver && now.Override == was.Override:
		left.text += "; the device is as it was, " + driverState(&now)
	default:
		left.text += "; the device is left " + driverState(&now)
	}
	return &Error{Call: e.Call, Err: left, Remedy: e.Remedy}
}

func driverState(i *Info) string {
	s := "with no driver"
	if i.Driver != "" {
		s = "with the driver " + i.Driver
	}
	if i.Override != "" {
		s += " and driver_override " + i.Override
	}
	return s
}

// stateError is what went wrong, and what the device is like after it.
type stateError struct {
	errs []error
	text string
}

func (e *stateError) Error() string   { return e.text }
func (e *stateError) Unwrap() []error { return e.errs }

// Restore gives the device back to the driver that it was with before Bind, and puts
// its driver_override back. It refuses a device that a process has open (the error
// wraps syscall.EBUSY), because the kernel would wait for that process. It does
// nothing if Bind found the device with VFIO, and when it has succeeded before.
func (b *Binding) Restore() error {
	if b.undone {
		return nil
	}
	was := &b.before
	if err := takeFromVFIO(b.k, was.Bus, was.Name, was.Override, was.Driver != "", was.Driver); err != nil {
		return wrap("restore", was.Name, err)
	}
	b.undone = true
	return nil
}

// Unbind takes the device that [Lookup] finds by the name dev away from VFIO, whoever
// gave it, clears its driver_override and lets the kernel look for a driver; that it
// finds none is no error. It needs the rights of root and refuses as
// [Binding.Restore] does. A device that is not with VFIO is left as it is.
func Unbind(k Kernel, dev string) error {
	i, err := Lookup(k, dev)
	if err != nil {
		return err
	}
	if i.Driver != i.Bus.vfioDriver() && i.Override != i.Bus.vfioDriver() {
		return nil
	}
	return wrap("unbind", i.Name, takeFromVFIO(k, i.Bus, i.Name, "", true, ""))
}

// takeFromVFIO takes a device away from VFIO and, if look says so, lets the kernel look for
// another driver. That must be the one of the name, unless the name is "".
func takeFromVFIO(k Kernel, b Bus, name, oldOverride string, look bool, driver string) error {
	i, err := inspect(k, b, name)
	if err != nil {
		return failed("read its state", err, "see `ls -l /%s`", path.Join(b.devices(), name))
	}
	vfio := b.vfioDriver()
	if i.Driver == vfio {
		if err := notInUse(k, &i); err != nil {
			return err
		}
	}
	if err := setOverride(k, &i, oldOverride); err != nil {
		return err
	}
	if i.Driver == vfio {
		if err := writeAttribute(k, path.Join(driverDir(b, vfio), "unbind"), name); err != nil {
			return inState(k, &i, err, setOverride(k, &i, i.Override))
		}
	}
	if !look || driver != "" && i.Driver == driver {
		return nil
	}
	if err := probeDriver(k, &i); err != nil {
		return inState(k, &i, err)
	}
	now, err := inspect(k, b, name)
	switch {
	case err != nil:
		return failed("read its state", err, "see `ls -l /%s`", i.dir())
	case now.Driver == vfio:
		remedy := "clear its driver_override: `" + tee("", path.Join(i.dir(), "driver_override")) + "`"
		if b == PCI && now.Override == "" {
			remedy = fmt.Sprintf("its ids were given to the driver, take them away: `%s`",
				tee(fmt.Sprintf("%04x %04x", i.Vendor, i.Device), path.Join(driverDir(b, vfio), "remove_id")))
		}
		return inState(k, &i, &Error{Err: fmt.Errorf("%s took it again: %w", vfio, syscall.EBUSY), Remedy: remedy})
	case driver != "" && now.Driver != driver:
		return inState(k, &i, &Error{
			Err:    fmt.Errorf("its driver %s did not take it back: %w", driver, syscall.ENODEV),
			Remedy: fmt.Sprintf("load and bind it: `sudo modprobe %s; %s`", driver, tee(name, path.Join(driverDir(b, driver), "bind"))),
		})
	}
	return nil
}

// notInUse says who has a device open that is with VFIO. A process that opened it
// through the node of its group counts even if it uses another device of the group.
func notInUse(k Kernel, i *Info) error {
	for _, node := range i.nodes() {
		held, self, _ := openers(k, node)
		if len(held) == 0 && !self {
			continue
		}
		remedy := "close it first"
		if len(held) > 0 {
			remedy = fmt.Sprintf("end that process: `sudo kill %d`", held[0].PID)
		}
		return &Error{Err: fmt.Errorf("/%s is in use, %s: %w", node, busy(k, node), syscall.EBUSY), Remedy: remedy}
	}
	return nil
}

// nodes are the device nodes through which a device is opened when it is with VFIO.
func (i *Info) nodes() (all []string) {
	if i.Group >= 0 {
		all = append(all, i.groupNode())
	}
	if i.Cdev != "" {
		all = append(all, i.cdevNode())
	}
	return all
}

// setOverride sets the name of the driver that alone may take the device, "" for any.
func setOverride(k Kernel, i *Info, driver string) error {
	// An empty write does not reach the kernel.
	return writeAttribute(k, path.Join(i.dir(), "driver_override"), driver+"\n")
}

// probeDriver lets the kernel look for a driver of the device.
func probeDriver(k Kernel, i *Info) error {
	return writeAttribute(k, path.Join("sys/bus", string(i.Bus), "drivers_probe"), i.Name)
}

// writeAttribute writes an attribute; its error says what to do.
func writeAttribute(k Kernel, name, data string) error {
	err := k.WriteFile(name, data)
	if err == nil {
		return nil
	}
	var remedy string
	switch data = strings.TrimSuffix(data, "\n"); {
	case errors.Is(err, syscall.EROFS):
		remedy = "sysfs is read only here, as in a container: do it on the host, `" + tee(data, name) + "`"
	case errors.Is(err, os.ErrPermission):
		remedy = "do it as root: run the program with sudo, or `" + tee(data, name) + "`"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "the device or its driver has gone meanwhile: look with `ls -l /" + path.Dir(name) + "` and do it again"
	default:
		remedy = "the kernel's log may say why: `sudo dmesg | tail`"
	}
	return failed(fmt.Sprintf("write %q to /%s", data, name), withoutPath(err), "%s", remedy)
}

// withoutPath is an error without the path that its text repeats.
func withoutPath(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// tee is the command that writes an attribute as root.
func tee(data, name string) string {
	return strings.TrimSuffix("echo "+data, " ") + " | sudo tee /" + name
}

// bindCommands are the commands that give a device to VFIO without this package.
func bindCommands(i *Info) string {
	all := []string{tee(i.Bus.vfioDriver(), path.Join(i.dir(), "driver_override"))}
	if i.Driver != "" {
		all = append(all, tee(i.Name, path.Join(i.dir(), "driver/unbind")))
	}
	all = append(all, tee(i.Name, path.Join("sys/bus", string(i.Bus), "drivers_probe")))
	return strings.Join(all, "; ")
}

// present says that a file is there, whether or not it may be read.
func present(k Kernel, name string) bool {
	_, err := fs.Lstat(k.FS(), name)
	return err == nil
}
