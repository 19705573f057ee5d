package vfio

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"
)

// Option is an option of [NewDomain] and [Open].
type Option func(*options)

type options struct {
	kernel  Kernel
	backend Backend
	noiommu bool
	log     zerolog.Logger
	device  []DeviceOption
}

// WithKernel sets the kernel, for tests. The default is [System].
func WithKernel(k Kernel) Option { return func(o *options) { o.kernel = k } }

// WithBackend forces a way to the device. The default is [Auto].
func WithBackend(b Backend) Option { return func(o *options) { o.backend = b } }

// WithNoIOMMU lets devices be opened that no IOMMU stands before, with the module
// parameter enable_unsafe_noiommu_mode of vfio. Such a device reads and writes
// all memory of the machine: an error of its driver destroys what it hits, and
// whoever controls the driver controls the machine. It needs CAP_SYS_RAWIO.
func WithNoIOMMU() Option { return func(o *options) { o.noiommu = true } }

// WithLogger makes the domain log what it does when it opens and closes. The zero
// Logger, which is the default, is silent.
func WithLogger(l zerolog.Logger) Option { return func(o *options) { o.log = l } }

// WithDevice gives options to the device that [Open] opens; NewDomain gives them to
// all of its devices.
func WithDevice(opts ...DeviceOption) Option {
	return func(o *options) { o.device = append(o.device, opts...) }
}

// DeviceOption is an option of [Domain.Open] and [Domain.OpenFDs].
type DeviceOption func(*deviceOptions)

type deviceOptions struct {
	token     *VFToken
	irq       IRQKind
	vectors   int
	resample  bool
	addrWidth int
	coherent  *bool
	manualBME bool
	onError   func()
	onRequest func()
}

// VFToken is the secret by which the process that has a physical function lets
// another one have its virtual functions: a UUID in the order in which it is
// written.
type VFToken [16]byte

// ParseVFToken reads a UUID: 8-4-4-4-12 hexadecimal digits.
func ParseVFToken(s string) (VFToken, error) {
	var t VFToken
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(t) || len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return t, fmt.Errorf("vfio: VF token %q is no UUID: %w", s, os.ErrInvalid)
	}
	copy(t[:], b)
	return t, nil
}

// String formats the token as a UUID.
func (t VFToken) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", t[:4], t[4:6], t[6:8], t[8:10], t[10:])
}

// WithVFToken gives the token of a virtual function whose physical function is
// with vfio-pci.
func WithVFToken(t VFToken) DeviceOption { return func(o *deviceOptions) { o.token = &t } }

// WithInterrupts chooses the kind of interrupts of a PCI function and how many
// vectors there are at most, 0 for as many as the device has, 32 at most. The
// default is MSI-X where there is one, else MSI, else INTx.
func WithInterrupts(kind IRQKind, vectors int) DeviceOption {
	return func(o *deviceOptions) { o.irq, o.vectors = kind, vectors }
}

// WithUnmaskEventfd makes [Interrupt.Unmask] write to an eventfd instead of making
// a request.
func WithUnmaskEventfd() DeviceOption { return func(o *deviceOptions) { o.resample = true } }

// WithAddrWidth says how many address bits the device has, 12 to 64: no memory is
// mapped for it above. The default is 64; addresses are given out from below in
// any case.
func WithAddrWidth(bits int) DeviceOption { return func(o *deviceOptions) { o.addrWidth = bits } }

// WithCoherent says whether the device sees the caches of the CPU, without an
// IOMMU. The default is what the device tree says, and that it does on a machine
// without one. Behind an IOMMU it always does: VFIO refuses devices that do not.
func WithCoherent(yes bool) DeviceOption { return func(o *deviceOptions) { o.coherent = &yes } }

// WithManualBusMaster leaves bus mastering to [Device.SetBusMaster]. Without it a
// PCI function may access memory while, and only while, memory is mapped for it.
func WithManualBusMaster() DeviceOption { return func(o *deviceOptions) { o.manualBME = true } }

// OnError sets a function that is called, on a goroutine of its own, when the
// kernel reports an error of the device that cannot be corrected (AER); the
// device should be closed.
func OnError(f func()) DeviceOption { return func(o *deviceOptions) { o.onError = f } }

// OnRequest sets a function that is called, on a goroutine of its own, when
// somebody wants the device back, as on unbind or hot unplug: whoever asked waits
// until it is closed. It may be called several times.
func OnRequest(f func()) DeviceOption { return func(o *deviceOptions) { o.onRequest = f } }

func (o *deviceOptions) check() error {
	switch {
	case o.addrWidth < 12 || o.addrWidth > 64:
		return fmt.Errorf("%d address bits are not in 12..64: %w", o.addrWidth, os.ErrInvalid)
	case o.vectors < 0 || o.vectors > maxVectors:
		return fmt.Errorf("%d interrupt vectors are not in 0..%d: %w", o.vectors, maxVectors, os.ErrInvalid)
	case o.irq > MSIX:
		return fmt.Errorf("%v: %w", o.irq, os.ErrInvalid)
	}
	return nil
}
