package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/vfio"
)

const (
	hugePage = 2 << 20
	mark     = 0xa5 // what the pages are filled with
	salvo    = 16   // frames that are sent while a page is looked at
)

// intrude takes all huge pages that are free, which are those that a process has left that
// was killed, and looks whether its device writes to them.
func intrude(ctx context.Context, c *config, stdout, stderr io.Writer) (result counts, err error) {
	also := func(f func() error) { err = errors.Join(err, f()) }
	if c.dev != "" {
		h, failed := opener(stderr).Open(ctx, c.dev)
		if failed != nil {
			return result, failed
		}
		defer also(h.Close)
	}
	here, err := netns.Current()
	if err != nil {
		return result, err
	}
	defer also(here.Close)
	e, err := here.OpenEther(c.iface)
	if err != nil {
		return result, err
	}
	defer also(e.Close)
	fmt.Fprintln(stdout, jobs.Ready)
	pages, err := take(vfio.System(), func() error { return send(e) })
	result.Pages = len(pages)
	for _, p := range pages {
		result.Overwritten += len(p) - bytes.Count(p, []byte{mark})
		also(func() error { return vfio.System().Munmap(p) })
	}
	return result, err
}

// take takes huge pages and fills them until none is free; behind each it calls then.
func take(k vfio.Kernel, then func() error) (pages [][]byte, err error) {
	for {
		p, err := k.HugeMemory(hugePage)
		if errors.Is(err, syscall.ENOMEM) {
			return pages, nil
		}
		if err != nil {
			return pages, err
		}
		pages = append(pages, p)
		for i := range p {
			p[i] = mark
		}
		if err := then(); err != nil {
			return pages, err
		}
	}
}

// send sends frames to everybody.
func send(e *netns.Ether) error {
	f := bytes.Repeat([]byte{0xff}, 1000)
	copy(f[6:], []byte{2, 'r', 'i', 'g', 0, 9, 0x88, 0xb5}) // for local experiments
	for range salvo {
		if err := e.Send(f); err != nil {
			return err
		}
	}
	return nil
}
