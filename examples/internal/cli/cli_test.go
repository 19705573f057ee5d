package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func TestEnd(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		says []string
	}{
		{nil, OK, nil},
		{io.EOF, Failed, []string{"x: EOF\n"}},
		{errors.Join(io.EOF, io.ErrShortWrite), Failed, []string{"x: EOF\nx: short write\n"}},
		{&OpenError{io.EOF}, Usage, []string{"x: EOF\n"}},
		{fmt.Errorf("open: %w", &OpenError{os.ErrNotExist}), Usage, []string{"x: open: file does not exist\nx: check the name"}},
		{&OpenError{os.ErrPermission}, Usage, []string{"who may"}},
		{&OpenError{errors.ErrUnsupported}, Usage, []string{"not there yet", "sim:gmac4"}},
		{&OpenError{syscall.EADDRINUSE}, Usage, []string{"no other station"}},
		{&OpenError{os.ErrInvalid}, Usage, []string{"correct the address"}},
	} {
		var b bytes.Buffer
		if code := End(&b, "x", tc.err); code != tc.code {
			t.Errorf("%v: status %d, want %d", tc.err, code, tc.code)
		}
		for _, s := range tc.says {
			if !strings.Contains(b.String(), s) {
				t.Errorf("%v: no %q in %q", tc.err, s, &b)
			}
		}
	}
}

// TestAudit breaks a rule of a simulated device: a tail outside of its ring.
func TestAudit(t *testing.T) {
	for _, addr := range []string{"sim:gmac4", "sim:gmac4,profile=linux"} {
		h, err := bus.NewOpener().Open(context.Background(), addr)
		if err != nil {
			t.Fatal(err)
		}
		if errs := Audit(h); len(errs) != 0 {
			t.Error(errs)
		}
		r, err := h.Device.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		r.Store32(0x1120, 0x1000) // DMA_CH0_TxDesc_Tail_Pointer
		r.Store32(0x1104, 1)      // DMA_CH0_Tx_Control.ST
		r.Store32(0x1120, 0x2000)
		if errs, wrong := Audit(h), h.Sim.Audit(); len(wrong) == 0 || (len(errs) > 0) != (addr == "sim:gmac4") {
			t.Errorf("%s: %v of %v", addr, errs, wrong)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if errs := Audit(&bus.Handle{}); errs != nil {
		t.Error(errs)
	}
}
