package drive

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSurvivals: every deviation has a test with its number.
func TestSurvivals(t *testing.T) {
	var names []string
	for _, x := range Survivals() {
		names = append(names, x.Name)
		if !strings.Contains(x.Name, "the model") {
			t.Errorf("%q does not say that it is of the model", x.Name)
		}
	}
	of := func(prefix string) int {
		n := 0
		for _, name := range names {
			if strings.HasPrefix(name, prefix+": ") {
				n++
			}
		}
		return n
	}
	for i := 1; i <= 15; i++ {
		if of(fmt.Sprint(i)) == 0 {
			t.Errorf("no test has number %d", i)
		}
	}
	if n := of("PHY"); n != 3 {
		t.Errorf("%d tests are of the PHY", n)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(Survivals()) {
		t.Error("two tests have the same name")
	}
}

// TestSequence: what is missing is found, and what is wrong or comes again is an error.
func TestSequence(t *testing.T) {
	q := &sequence{mtu: 600}
	for _, i := range []int{0, 1, 2, 5, 6, 8} {
		if err := q.add(frame(600, i)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(q.gaps, []gap{{3, 2}, {7, 1}}) || q.lost() != 3 || q.next != 9 {
		t.Errorf("gaps %v, %d lost, next %d", q.gaps, q.lost(), q.next)
	}
	if err := q.add(frame(600, 8)); err == nil {
		t.Error("a frame came twice")
	}
	wrong := frame(600, 9)
	wrong[len(wrong)-1]++
	if err := q.add(wrong); err == nil {
		t.Error("a frame with a wrong byte was taken")
	}
	if err := q.add(nil); err == nil {
		t.Error("a frame of no bytes was taken")
	}
}

func TestVersion(t *testing.T) {
	v, err := parseVersion("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)\nCopyright\n")
	if err != nil || v != (version{11, 1, 3}) || v.String() != "11.1.3" {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{"", "QEMU 11", "QEMU emulator version x.1.3"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q: %v", bad, v)
		}
	}
	for _, c := range []struct {
		v    version
		want bool
	}{{version{10, 0, 2}, true}, {version{10, 9, 9}, true}, {version{11, 0, 0}, false}, {version{11, 0, 1}, false}, {version{12, 0, 0}, false}} {
		if c.v.before(11, 0, 0) != c.want {
			t.Errorf("%v before 11: %v", c.v, !c.want)
		}
	}
}
