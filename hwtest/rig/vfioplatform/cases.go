package vfioplatform

import (
	"context"
	"time"
)

// Case is what is done with a guest that was started, in the order of the list: what one
// leaves behind the next one needs.
type Case struct {
	Name string
	Run  func(ctx context.Context, h *Host) error
}

// Guard is how long a case may take: far more than it needs.
const Guard = 4 * time.Minute

// Before returns the cases before the list of hardware tests (see [Host.Hardware]).
func Before() []Case {
	return []Case{
		{"doctor and bind without VFIO", withoutVFIO},
		{"doctor and bind with modules as they are loaded", asLoaded},
		{"doctor and bind while noiommu mode is off", modeOff},
		{"doctor with the kernel's driver, bind by a user", unbound},
		{"bind, doctor, open", bound},
		{"memory at physical address 0", pageZero},
		{"doctor and open by a user", notRoot},
		{"doctor and open without huge pages", noHugePages},
		{"unbind and bind again", given},
		{"doctor and unbind while it is in use", inUse},
		{"frames of 14 to 1518 bytes by interrupts", frames(traffic{mtu: 1500, min: shortest})},
		{"frames of 14 to 1518 bytes by polling", frames(traffic{mtu: 1500, min: shortest, poll: true})},
		{"frames beyond 1518 bytes", jumbo},
	}
}

// After returns the cases behind it.
func After() []Case {
	return []Case{
		{"netstack: ping of 56 to 1472 bytes", ping},
		{"netstack: TCP, 10 MB each way", transfer},
		{"bind=on takes it from the kernel and gives it back", takenAndGiven},
		{"process killed in mid-traffic, memory of the next one", killed},
		{"back with the kernel's driver", back},
	}
}
