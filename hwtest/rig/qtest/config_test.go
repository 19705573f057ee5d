package qtest

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	ok := func(change func(*Config)) Config {
		c := Config{Command: []string{"qemu"}}
		change(&c)
		return c
	}
	for name, c := range map[string]Config{
		"no command":   {},
		"machine":      ok(func(c *Config) { c.Machine = "virt" }),
		"NIC":          ok(func(c *Config) { c.NIC = 4 }),
		"NIC of 750":   ok(func(c *Config) { c.Machine, c.NIC = NPCM750, 2 }),
		"negative NIC": ok(func(c *Config) { c.NIC = -1 }),
		"RAM":          ok(func(c *Config) { c.RAM = 1000 }),
		"too much RAM": ok(func(c *Config) { c.RAM = 4096 * mib }),
		"timeout":      ok(func(c *Config) { c.Timeout = -1 }),
		"address":      ok(func(c *Config) { c.Addr = net.HardwareAddr{1} }),
	} {
		var e *Error
		if _, err := Start(t.Context(), c); !errors.Is(err, ErrConfig) && !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.complete(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := ok(func(c *Config) { c.NIC = 2; c.Args = []string{"-trace", "x"} })
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	args := c.args()
	all := strings.Join(args, " ")
	for _, want := range []string{
		"-machine npcm845-evb,memory-backend=ram0 -m 512M", "size=536870912,mem-path=/proc/self/fd/4,share=on",
		"socket,id=qt,fd=3 -qtest chardev:qt -qtest-log none -accel qtest",
		"hubport,id=n0,hubid=0 -net nic,netdev=n0,model=npcm-gmac -netdev hubport,id=n1,hubid=1",
		"dgram,id=n2,local.type=fd,local.str=5 -net nic,netdev=n2,model=npcm-gmac,macaddr=02:00:00:00:00:02 -trace x",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	// With -S frames would wait for ever.
	if slices.Contains(args, "-S") {
		t.Error("-S is given")
	}
	if c.Path() != "/machine/soc/gmac[2]" || c.dev() != "npcm845-evb/gmac2" {
		t.Errorf("%s, %s", c.Path(), c.dev())
	}
}
