package stmmac_test

import (
	"errors"
	"os"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func TestMDIOAccess(t *testing.T) {
	const csr = 125_000_000
	r := newRig(t, rigConfig{sim: sim.Config{CSRClock: csr}, opts: []stmmac.Option{stmmac.WithCSRClock(csr)}})
	const addr, id1, id2, advertisement = 1, 2, 3, 4
	hi, err1 := r.mac.ReadMDIO(addr, id1)
	lo, err2 := r.mac.ReadMDIO(addr, id2)
	if err := errors.Join(err1, err2); err != nil || uint32(hi)<<16|uint32(lo) != sim.DefaultPHYID {
		t.Errorf("identifier %#x %#x, %v; want %#x", hi, lo, err, sim.DefaultPHYID)
	}
	was, err1 := r.mac.ReadMDIO(addr, advertisement)
	const other = 0x0101
	err2 = r.mac.WriteMDIO(addr, advertisement, other)
	now, err3 := r.mac.ReadMDIO(addr, advertisement)
	if err := errors.Join(err1, err2, err3); err != nil || now != other || was == other {
		t.Errorf("advertisement %#x and then %#x, %v", was, now, err)
	}
	if v, err := r.mac.ReadMDIO(addr+1, id1); err != nil || v != 0xffff {
		t.Errorf("%#x, %v where there is no PHY", v, err)
	}
	for _, bad := range [][2]int{{-1, 0}, {32, 0}, {0, -1}, {0, 32}} {
		_, err := r.mac.ReadMDIO(bad[0], bad[1])
		mustFail(t, err, os.ErrInvalid, "sim", "MDIO")
		mustFail(t, r.mac.WriteMDIO(bad[0], bad[1], 0), os.ErrInvalid)
	}
	if err := r.mac.Close(); err != nil {
		t.Error(err)
	}
	_, err := r.mac.ReadMDIO(addr, id1)
	mustFail(t, err, stmmac.ErrClosed)
}

func TestMDIOMissing(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{NoMDIO: true}})
	_, err := r.mac.ReadMDIO(1, 2)
	mustFail(t, err, errors.ErrUnsupported, "SMASEL")
	s := newRig(t, rigConfig{})
	_, err = s.mac.ReadMDIO(1, 2)
	mustFail(t, err, os.ErrInvalid, "CSR clock")
}
