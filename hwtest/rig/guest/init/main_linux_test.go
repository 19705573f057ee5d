package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLineName(t *testing.T) {
	for text, want := range map[string]string{
		"console=ttyS0 gostmmac.line=ttyS1 quiet\n": "ttyS1", "gostmmac.line=ttyS1": "ttyS1", "": "", "quiet": "", "xgostmmac.line=ttyS1": "", "gostmmac.line=../x": "", "gostmmac.line=": "",
	} {
		if got := lineName(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestOpenLine: bytes go through a terminal as they are, both ways.
func TestOpenLine(t *testing.T) {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	line, err := openLine("/dev/pts/" + strconv.Itoa(n))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, way := range []struct {
		from, to interface {
			Read([]byte) (int, error)
			Write([]byte) (int, error)
		}
	}{{line, m}, {m, line}} {
		if _, err := way.from.Write(all); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for len(got) < len(all) {
			b := make([]byte, len(all))
			n, err := way.to.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b[:n]...)
		}
		if !bytes.Equal(got, all) {
			t.Errorf("%q came through", got)
		}
	}
	if _, err := openLine("/dev/none"); err == nil {
		t.Error("opened what is not there")
	}
	if _, err := openLine("/dev/null"); err == nil {
		t.Error("a line that is no terminal")
	}
}

// TestNotFirst: nobody runs it by mistake.
func TestNotFirst(t *testing.T) {
	if os.Getenv("GOSTMMAC_INIT_MAIN") != "" {
		main()
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestNotFirst$")
	c.Env = append(os.Environ(), "GOSTMMAC_INIT_MAIN=1")
	out, err := c.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("first program of a guest")) {
		t.Errorf("%v, %q", err, out)
	}
}
