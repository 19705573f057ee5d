package bus

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestVFIOKeys(t *testing.T) {
	const keys = "generation, region, offset, csr, iommu, addr, width, bind"
	for _, tc := range []struct {
		param string
		is    error // nil: it is one
		text  string
	}{
		{"generation=gmac4", nil, ""},
		{"generation=gmac5", os.ErrInvalid, "gmac4"},
		{"generation=", os.ErrInvalid, "gmac4"},
		{"generation=xgmac", errors.ErrUnsupported, "gmac4"},
		{"region=0", nil, ""},
		{"region=255", nil, ""},
		{"region=256", os.ErrInvalid, "0 to 255"},
		{"region=-1", os.ErrInvalid, "0 to 255"},
		{"region=0x1", os.ErrInvalid, "0 to 255"},
		{"offset=0", nil, ""},
		{"offset=0x2000", nil, ""},
		{"offset=8192", nil, ""},
		{"offset=0x2002", os.ErrInvalid, "multiple of 4"},
		{"offset=0x100000000", os.ErrInvalid, "multiple of 4"},
		{"offset=2000h", os.ErrInvalid, "0x2000"},
		{"csr=125000000", nil, ""},
		{"csr=999999", os.ErrInvalid, "Hz"},
		{"csr=800000001", os.ErrInvalid, "Hz"},
		{"csr=125MHz", os.ErrInvalid, "Hz"},
		{"iommu=auto", nil, ""},
		{"iommu=group", nil, ""},
		{"iommu=iommufd", nil, ""},
		{"iommu=noiommu", nil, ""},
		{"iommu=noiommu-group", nil, ""},
		{"iommu=off", os.ErrInvalid, "auto, group, iommufd, noiommu and noiommu-group"},
		{"addr=02:00:00:00:00:01", nil, ""},
		{"addr=01:00:00:00:00:01", os.ErrInvalid, "station"},
		{"addr=00:00:00:00:00:00", os.ErrInvalid, "station"},
		{"addr=02:00:00:00:00:00:00:01", os.ErrInvalid, "station"},
		{"addr=2", os.ErrInvalid, "station"},
		{"width=32", nil, ""},
		{"width=64", nil, ""},
		{"width=31", os.ErrInvalid, "32 to 64"},
		{"width=65", os.ErrInvalid, "32 to 64"},
		{"width=all", os.ErrInvalid, "32 to 64"},
		{"bind=on", nil, ""},
		{"bind=off", nil, ""},
		{"bind=yes", os.ErrInvalid, "neither on nor off"},
		{"rxq=1", os.ErrInvalid, keys},
		{"wire=null", os.ErrInvalid, keys},
	} {
		for _, scheme := range []string{"pci:0000:03:00.0,", "platform:f0804000.ethernet,"} {
			a, err := Parse(scheme + tc.param)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parseVFIO(a)
			if tc.is == nil {
				if err != nil {
					t.Errorf("%s: %v", tc.param, err)
				}
				continue
			}
			var e *AddressError
			if !errors.Is(err, tc.is) || !errors.As(err, &e) || e.Part != tc.param || e.Address != a.String() || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v, want %v of that part, and %q", tc.param, err, tc.is, tc.text)
			}
		}
	}
}

// TestVFIOKeysFirst: an address that is wrong is refused before the machine is
// looked at.
func TestVFIOKeysFirst(t *testing.T) {
	for _, addr := range []string{"pci:ffff:ff:1f.7,region=x", "platform:none,color=red"} {
		_, err := NewOpener().Open(context.Background(), addr)
		var e *AddressError
		if !errors.As(err, &e) || e.Part == "location" || !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func FuzzVFIOKeys(f *testing.F) {
	for _, s := range []string{
		"pci:0000:03:00.0", "pci:1f0a:6801,generation=gmac4,region=0,offset=0x2000,csr=25000000,iommu=noiommu,addr=02:00:00:00:00:01,width=36",
		"platform:driver=x,csr=-1", "pci:x,offset=0xfffffffc", "pci:x,addr=::", "pci:x,width=1e9", "pci:x,region=", "platform:x,iommu=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			return
		}
		spec, err := parseVFIO(a)
		if err != nil {
			var e *AddressError
			if !errors.As(err, &e) || e.Part == "" || !errors.Is(err, os.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if _, ok := domainOptions(spec.iommu); !ok || spec.addrWidth != 0 && (spec.addrWidth < 32 || spec.addrWidth > 64) ||
			spec.offset != nil && *spec.offset%4 != 0 || spec.hardwareAddr != nil && len(spec.hardwareAddr) != 6 {
			t.Fatalf("%q: %+v", s, spec)
		}
	})
}
