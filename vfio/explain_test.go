package vfio

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestParseOptions(t *testing.T) {
	text := "#\n# x\nCONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\n# CONFIG_IOMMUFD is not set\nCONFIG_VFIO_PCI_CORE=m\nCONFIG_VFIO_PCI=\"m\"\nCONFIG_VFIO_NOIOMMU=n\r\nVFIO_CONTAINER=y\nCONFIG_HUGETLBFS\n"
	want := kernelOptions{"VFIO": 'm', "VFIO_GROUP": 'y', "IOMMUFD": 'n', "VFIO_NOIOMMU": 'n'}
	if d := cmp.Diff(want, parseOptions(text)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestReadOptions(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("CONFIG_VFIO=y\n")); err != nil {
		t.Fatal(err)
	}
	z.Close()
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		want  kernelOptions
	}{
		{"packed", map[string][]byte{"proc/config.gz": packed.Bytes()}, kernelOptions{"VFIO": 'y'}},
		{"cut off", map[string][]byte{"proc/config.gz": packed.Bytes()[:packed.Len()-9], "boot/config-7.3.0": []byte("CONFIG_VFIO=m")}, kernelOptions{"VFIO": 'm'}},
		{"not packed", map[string][]byte{"proc/config.gz": []byte("CONFIG_VFIO=y\n")}, nil},
		{"beside the modules", map[string][]byte{"lib/modules/7.3.0/config": []byte("CONFIG_VFIO_PCI=m")}, kernelOptions{"VFIO_PCI": 'm'}},
		{"of another kernel", map[string][]byte{"boot/config-7.2.0": []byte("CONFIG_VFIO=m")}, nil},
	} {
		m := fstest.MapFS{}
		for name, data := range tc.files {
			m[name] = &fstest.MapFile{Data: data}
		}
		if d := cmp.Diff(tc.want, readOptions(m, "7.3.0")); d != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, d)
		}
	}
}

// TestWays: which options open a device.
func TestWays(t *testing.T) {
	for _, tc := range []struct {
		name, text  string
		group, cdev bool
	}{
		{"before there were options", "CONFIG_VFIO=m\nCONFIG_VFIO_IOMMU_TYPE1=m", true, false},
		{"Debian", "CONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\nCONFIG_VFIO_CONTAINER=y\nCONFIG_VFIO_IOMMU_TYPE1=m\n# CONFIG_IOMMUFD is not set", true, false},
		{"iommufd alone", "CONFIG_VFIO=m\n# CONFIG_VFIO_GROUP is not set\nCONFIG_VFIO_IOMMU_TYPE1=m\nCONFIG_VFIO_DEVICE_CDEV=y\nCONFIG_IOMMUFD=m", false, true},
		{"iommufd for groups", "CONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\n# CONFIG_VFIO_CONTAINER is not set\nCONFIG_IOMMUFD=m\nCONFIG_IOMMUFD_VFIO_CONTAINER=y", true, false},
		{"riscv64 in noiommu mode", "CONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\nCONFIG_VFIO_CONTAINER=y\nCONFIG_VFIO_NOIOMMU=y", true, false},
		{"nothing", "CONFIG_VFIO=m\nCONFIG_VFIO_GROUP=y\nCONFIG_VFIO_CONTAINER=y", false, false},
	} {
		if o := parseOptions(tc.text); o.group() != tc.group || o.cdev() != tc.cdev {
			t.Errorf("%s: %v, %v", tc.name, o.group(), o.cdev())
		}
	}
}

func TestParseModules(t *testing.T) {
	got := parseModules("kernel/drivers/vfio/pci/vfio-pci.ko.zst: kernel/drivers/vfio/vfio.ko.zst\nkernel/net/a_b.ko\nnonsense\n.ko:\n/\n\n")
	if d := cmp.Diff(map[string]bool{"vfio_pci": true, "a_b": true}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestParseReserved(t *testing.T) {
	got := parseReserved("0x00000000fee00000 0x00000000feefffff msi\n0x2 0x1 direct\nx 0x1 direct\n0x1 0x1\n0x0 0xffffffffffffffff direct-relaxable\n")
	want := []reservedRegion{{0xfee00000, 0xfeefffff, "msi"}, {0, 1<<64 - 1, "direct-relaxable"}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(reservedRegion{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestParseReg(t *testing.T) {
	word := func(v ...byte) (b []byte) {
		for _, x := range v {
			b = append(b, 0, 0, 0, x)
		}
		return b
	}
	for _, tc := range []struct {
		b             []byte
		address, size int
		want          [][2]uint64
	}{
		{word(0, 1, 0, 2), 2, 2, [][2]uint64{{1, 2}}},
		{word(1, 2, 3), 2, 1, [][2]uint64{{1<<32 | 2, 3}}},
		{word(1, 2, 3, 4), 1, 1, [][2]uint64{{1, 2}, {3, 4}}},
		{word(1, 2, 3), 1, 1, nil},
		{word(1, 2, 3), 3, 0, nil},
		{word(1), 0, 1, nil},
		{word(1, 2)[:7], 1, 1, nil},
		{nil, 2, 1, nil},
	} {
		if d := cmp.Diff(tc.want, parseReg(tc.b, tc.address, tc.size)); d != "" {
			t.Errorf("%x: -want +got:\n%s", tc.b, d)
		}
	}
}

func TestParseCPU(t *testing.T) {
	for _, tc := range []struct {
		text, vendor string
		virtual      bool
	}{
		{"processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu svm\n", "AuthenticAMD", false},
		{"vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n", "GenuineIntel", true},
		{"processor\t: 0\nFeatures\t: fp asimd\n", "", false},
		{"flags", "", false},
	} {
		if v, n := parseCPU(tc.text); v != tc.vendor || n != tc.virtual {
			t.Errorf("%q: %q, %v", tc.text, v, n)
		}
	}
}

func TestPermitted(t *testing.T) {
	user := process{uid: 1000, gid: 1000, groups: []uint32{27}}
	for _, tc := range []struct {
		p        process
		mode     uint32
		uid, gid uint32
		want     bool
	}{
		{user, 0o600, 0, 0, false},
		{user, 0o666, 0, 0, true},
		{user, 0o664, 0, 0, false},
		{user, 0o660, 0, 1000, true},
		{user, 0o660, 0, 27, true},
		{user, 0o640, 0, 27, false},
		{user, 0o606, 0, 27, false}, // the group's bits count for its members
		{user, 0o600, 1000, 0, true},
		{user, 0o066, 1000, 1000, false},
		{process{caps: capDACOverride}, 0, 5, 5, true},
		{process{}, 0o400, 0, 0, false},
	} {
		if got := tc.p.permitted(fs.ModeCharDevice|fs.FileMode(tc.mode), tc.uid, tc.gid); got != tc.want {
			t.Errorf("%+v, mode %o of %d:%d: %v", tc.p, tc.mode, tc.uid, tc.gid, got)
		}
	}
}

func TestParseProcess(t *testing.T) {
	got := parseProcess("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 x \nCapEff:\t0000000000000002\n")
	want := process{known: true, uid: 4, gid: 8, groups: []uint32{9, 10}, caps: capDACOverride}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(process{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, text := range []string{"", "Uid:\t1\nGid:\t1\t1\t1\t1\n", "Uid:\t1\t1\t1\t-1\nGid:\t1\t1\t1\t1\n", "Uid:\t1\t1\t1\t4294967296\n"} {
		if parseProcess(text).known {
			t.Errorf("%q is known", text)
		}
	}
}

// FuzzExplainParsers: no text of the kernel, and none of who pretends to be it, panics.
func FuzzExplainParsers(f *testing.F) {
	f.Add([]byte("CONFIG_VFIO=m\n# CONFIG_VFIO_PCI is not set\n"))
	f.Add([]byte("kernel/vfio-pci.ko.xz: kernel/vfio.ko.xz\n"))
	f.Add([]byte("0x0 0xffff direct\nUid:\t1\t2\t3\t4\nflags: hypervisor"))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		text := string(b)
		for name, v := range parseOptions(text) {
			if !strings.Contains(text, name) || v != 'y' && v != 'm' && v != 'n' {
				t.Errorf("%s=%c", name, v)
			}
		}
		_, _ = unpackOptions(b)
		for name := range parseModules(text) {
			if name == "" || strings.ContainsAny(name, "/-:\n") {
				t.Errorf("module %q", name)
			}
		}
		for _, r := range parseReserved(text) {
			if r.start > r.end || r.kind == "" {
				t.Errorf("%v", r)
			}
		}
		parseCPU(text)
		parseProcess(text)
		for a := range 4 {
			for s := range 4 {
				if n := len(parseReg(b, a, s)); n*4*(a+s) > len(b) {
					t.Errorf("%d of %d bytes", n, len(b))
				}
			}
		}
	})
}
