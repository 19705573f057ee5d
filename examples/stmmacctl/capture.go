package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// captureResult is what was captured.
type captureResult struct {
	File    string `json:"file"`
	Frames  uint64 `json:"frames"`
	Dropped uint64 `json:"dropped"`
}

// capture writes a capture file.
func capture(ctx context.Context, o *bus.Opener, c *config, stdout, stderr io.Writer) error {
	return with(ctx, o, c, func(d *device) error {
		res, err := d.captureTo(ctx, c, stdout)
		if err != nil {
			return err
		}
		messages := stdout
		if c.file == "-" {
			messages = stderr
		}
		if c.json {
			return printJSON(messages, res)
		}
		_, err = fmt.Fprintf(messages, "%d frames, %d of them dropped for want of room: %s\n", res.Frames, res.Dropped, res.File)
		return printed(err)
	}, c.filter())
}

// captureTo captures to the file that the arguments name.
func (d *device) captureTo(ctx context.Context, c *config, stdout io.Writer) (*captureResult, error) {
	if c.file == "-" {
		return d.capture(ctx, c, stdout)
	}
	f, err := os.Create(c.file)
	if err != nil {
		return nil, &cli.OpenError{Err: err}
	}
	res, err := d.capture(ctx, c, f)
	return res, errors.Join(err, f.Close())
}

func (d *device) capture(ctx context.Context, c *config, w io.Writer) (*captureResult, error) {
	t, err := d.mac.Capture(w, stmmac.CaptureOptions{SnapLen: c.snaplen})
	if err != nil {
		return nil, err
	}
	d.receive()
	err = d.pass(ctx, c.duration, t.Done())
	err = errors.Join(err, t.Close())
	s := t.Stats()
	return &captureResult{File: c.file, Frames: s.Frames, Dropped: s.Dropped}, err
}
