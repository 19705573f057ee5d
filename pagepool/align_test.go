package pagepool

import (
	"go/build/constraint"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// The architectures for which Linux sets NET_IP_ALIGN to 0 (x86, arm64,
// powerpc), and some of those that keep the default of 2.
var ipAlign = map[string]int{
	"amd64": 0, "386": 0, "arm64": 0, "ppc64": 0, "ppc64le": 0,
	"arm": 2, "riscv64": 2, "loong64": 2, "mips64": 2, "mipsle": 2, "s390x": 2,
}

func TestNetIPAlign(t *testing.T) {
	if want, ok := ipAlign[runtime.GOARCH]; !ok {
		t.Errorf("the table does not know %s", runtime.GOARCH)
	} else if NetIPAlign != want {
		t.Errorf("%d on %s, want %d", NetIPAlign, runtime.GOARCH, want)
	}
	files := map[int]constraint.Expr{}
	for v, name := range map[int]string{0: "ipalign_0.go", 2: "ipalign_2.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if files[v], err = constraint.Parse(line); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for arch, want := range ipAlign {
		for v, x := range files {
			if got := x.Eval(func(tag string) bool { return tag == arch }); got != (v == want) {
				t.Errorf("ipalign_%d.go is built for %s: %v", v, arch, got)
			}
		}
	}
}

func TestStride(t *testing.T) {
	if CacheLine < 64 || CacheLine&(CacheLine-1) != 0 {
		t.Fatalf("cache line of %d bytes", CacheLine)
	}
	for size := 256; size <= MaxBufSize; size++ {
		s := stride(size)
		if s < size || s%CacheLine != 0 || s/CacheLine%2 != 1 || s-size >= 2*CacheLine {
			t.Fatalf("chunks of %d bytes are %d apart", size, s)
		}
	}
	// a record counts the bytes of a chunk, rounded up to the line, in 16 bits
	for _, line := range []int{32, 64, 128, 256} {
		if got := roundUp(MaxBufSize, line); got > 1<<16-1 {
			t.Errorf("with a cache line of %d the largest chunk has %d bytes", line, got)
		}
	}
}

func TestRecord(t *testing.T) {
	if n := reflect.TypeFor[Buf]().Size(); n != RecordSize {
		t.Errorf("a record has %d bytes", n)
	}
	var pointers func(reflect.Type)
	pointers = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Struct:
			for i := range x.NumField() {
				pointers(x.Field(i).Type)
			}
		case reflect.Int64, reflect.Int32, reflect.Uint64, reflect.Uint32, reflect.Uint16:
		default:
			t.Errorf("a record holds a %v", x)
		}
	}
	pointers(reflect.TypeFor[Buf]())
}
