//go:build hwtest

package hwtest

import (
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
)

// limit is something that a device has by its registers, and a judge that stands for the
// device does not do; its text follows on "the judge has no" in the reason of a test that
// is skipped.
type limit string

const (
	addressFilter limit = "address filter"
	loopback      limit = "loopback of the MAC"
	padding       limit = "padding of short frames"
	counters      limit = "counters"
	pauseFrames   limit = "pause frames"
	rxChecksums   limit = "receive checksum engine"
	fifo          limit = "FIFO"
	txChecksums   limit = "transmit checksums beside those of TCP and UDP over IPv4"
	linkPartner   limit = "link partner that can be set"
	vlanFilters   limit = "VLAN filter"
	energy        limit = "EEE"
	wakeUp        limit = "wake-up frames"
	rss           limit = "RSS"
)

// npcmGMAC is the judge that QEMU models: hw/net/npcm_gmac.c.
const npcmGMAC = "npcm_gmac"

// judges are those that can be named by -judge, for devices whose address does not tell.
var judges = []string{npcmGMAC}

// limits are those of the judge that stands for the device; real devices and our own
// model have none.
func (e *environment) limits() []limit {
	if e.judge == npcmGMAC || e.handle.Address.Scheme == scheme.Qtest {
		// QEMU 11.1, hw/net/npcm_gmac.c: every frame is received whatever its address
		// and checksums, and dropped when there is no descriptor; MAC_Configuration LM
		// and the MMC registers are memory. The checksums are those of net/checksum.c.
		return []limit{addressFilter, loopback, padding, counters, pauseFrames, rxChecksums, fifo, txChecksums, linkPartner,
			vlanFilters, energy, wakeUp, rss}
	}
	return nil
}

// modelled is something that every device with the feature does, and not every judge.
func modelled(l limit) need {
	return need{string(l), func(e *environment) string {
		if e.lacks(l) {
			return "the judge has no " + string(l)
		}
		return ""
	}}
}

func (e *environment) lacks(l limit) bool { return slices.Contains(e.limits(), l) }
