package vfioplatform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

func (h *Host) try(ctx context.Context) error {
	show := func(user uint32, name string, args ...string) {
		begin := time.Now()
		p := h.start(ctx, user, name, args...)
		_ = p.wait(ctx, 0)
		fmt.Printf("## %s %v: %d %v %v\n%s\n", name, args, p.result.Code, p.err, time.Since(begin), strings.Join(p.output(), "\n"))
	}
	if err := h.guest.Load(ctx, h.vfio, map[string]string{"vfio_platform": "reset_required=0"}); err != nil {
		return err
	}
	fmt.Println(h.write(ctx, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "1"))
	show(0, "stmmacctl", "bind", address)
	for range 3 {
		show(0, "true")
		fmt.Println(killed(ctx, h))
	}
	_ = jobs.Ready
	return nil
}
