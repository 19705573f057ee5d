package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// elfModule is an ELF file with the section .modinfo that says values, or with none.
func elfModule(values ...string) []byte {
	const header, entry = 64, 64
	names := []byte("\x00.modinfo\x00.shstrtab\x00")
	info := []byte(strings.Join(values, "\x00") + "\x00")
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x) // a bytes.Buffer takes all
		}
	}
	count := uint16(3)
	if values == nil {
		count = 2
	}
	put([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9), uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), uint64(header),
		uint32(0), uint16(header), uint16(0), uint16(0), uint16(entry), count, count-1)
	section := func(name, kind uint32, offset, size int) {
		put(name, kind, uint64(0), uint64(0), uint64(offset), uint64(size), uint32(0), uint32(0), uint64(1), uint64(0))
	}
	data := header + int(count)*entry
	section(0, 0, 0, 0)
	if values != nil {
		section(1, 1, data+len(names), len(info))
	}
	section(10, 3, data, len(names))
	put(names, info)
	return b.Bytes()
}

func TestParseModule(t *testing.T) {
	m, err := parseModule(elfModule("license=GPL", "depends=a-b,c", "name=x", "vermagic=7.3 SMP"))
	if d := cmp.Diff(modinfo{"x", []string{"a_b", "c"}, "7.3 SMP"}, m, cmp.AllowUnexported(modinfo{})); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if m, err := parseModule(elfModule("name=x", "depends=")); len(m.depends) != 0 || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	good := elfModule("name=x")
	for _, b := range [][]byte{nil, []byte("x"), elfModule(), good[:100], good[:len(good)-20]} {
		if _, err := parseModule(b); err == nil {
			t.Errorf("%d bytes are a module", len(b))
		}
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add(elfModule("name=x", "depends=a,b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseModule(b); err != nil && m.name != "" {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestOrder(t *testing.T) {
	graph := map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": nil, "x": {"y"}, "y": {"x"}, "z_z": nil}
	depends := func(n string) ([]string, error) {
		d, ok := graph[n]
		if !ok {
			return nil, os.ErrNotExist
		}
		return d, nil
	}
	for _, c := range []struct{ names, want string }{
		{"", ""}, {"d", "d"}, {"a", "d b c a"}, {"c a", "d c b a"}, {"a a z-z", "d b c a z_z"},
	} {
		got, err := order(strings.Fields(c.names), depends)
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.names, got, err)
		}
	}
	if _, err := order([]string{"d", "x"}, depends); err == nil || !strings.Contains(err.Error(), "x, y, x") {
		t.Errorf("a circle: %v", err)
	}
	if _, err := order([]string{"none"}, depends); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
