package initrd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsed is a file of an archive, as cpio(5) describes it.
type parsed struct {
	Name, Content string
	Mode, Links   uint64
	Major, Minor  uint64
}

// parse reads an archive without the code under test.
func parse(b []byte) (all []parsed, err error) {
	at := 0
	take := func(n int) []byte {
		if err != nil || n < 0 || at+n > len(b) {
			err = errors.Join(err, io.ErrUnexpectedEOF)
			return make([]byte, min(max(n, 0), 110))
		}
		at += n
		return b[at-n : at]
	}
	for err == nil {
		if at%4 != 0 {
			return nil, fmt.Errorf("a header at %d", at)
		}
		head := take(110)
		if string(head[:6]) != "070701" {
			return nil, fmt.Errorf("no magic at %d", at-110)
		}
		var f [13]uint64
		for i := range f {
			var perr error
			f[i], perr = strconv.ParseUint(string(head[6+8*i:14+8*i]), 16, 32)
			err = errors.Join(err, perr)
		}
		name := string(take(int(f[11])))
		take((4 - (110+len(name))%4) % 4)
		content := string(take(int(f[6])))
		take((4 - len(content)%4) % 4)
		if !strings.HasSuffix(name, "\x00") {
			return nil, fmt.Errorf("the name %q", name)
		}
		name = strings.TrimSuffix(name, "\x00")
		if name == "TRAILER!!!" {
			if at != len(b) {
				return nil, fmt.Errorf("%d bytes behind the end", len(b)-at)
			}
			return all, err
		}
		all = append(all, parsed{name, content, f[1], f[4], f[9], f[10]})
	}
	return nil, err
}

func TestWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	err := errors.Join(w.CharDevice("/dev/null", 0o666, 1, 3), w.Bytes("init", 0o755, []byte("program")), w.Copy("a/b/c", 0o644, file),
		w.Dir("a/d"), w.Dir("/a/"), w.Link("a/l", "../init"), w.Bytes("empty", 0o1644, nil), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(b.Bytes())
	want := []parsed{
		{"dev", "", 0o40755, 2, 0, 0}, {"dev/null", "", 0o20666, 1, 1, 3}, {"init", "program", 0o100755, 1, 0, 0}, {"a", "", 0o40755, 2, 0, 0}, {"a/b", "", 0o40755, 2, 0, 0},
		{"a/b/c", "12345", 0o100644, 1, 0, 0}, {"a/d", "", 0o40755, 2, 0, 0}, {"a/l", "../init", 0o120777, 1, 0, 0}, {"empty", "", 0o101644, 1, 0, 0},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	// Every file of a real archive has a number of its own, or it is a hard link.
	seen := map[string]bool{}
	for i := 0; i+110 <= b.Len(); i++ {
		if h := b.Bytes()[i:]; string(h[:6]) == "070701" {
			if n := string(h[6:14]); seen[n] {
				t.Errorf("two files have the number %s", n)
			} else {
				seen[n] = true
			}
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(io.Discard)
	for _, name := range []string{"", "/", "..", ".", "TRAILER!!!", "x\x00", strings.Repeat("x", 5000)} {
		if err := w.Bytes(name, 0, nil); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if err := w.Bytes("../x", 0, nil); err != nil {
		t.Errorf("a path stays inside: %v", err)
	}
	for what, err := range map[string]error{"twice": w.Bytes("/x", 0, nil), "a folder's name": errors.Join(w.Dir("d"), w.Bytes("d", 0, nil))} {
		if !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.File("large", 0, 1<<32, strings.NewReader("")); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("4 GiB: %v", err)
	}
	if err := w.Copy("y", 0, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// A file that became shorter spoils the archive.
	if err := errors.Join(w.File("short", 0, 5, strings.NewReader("1")), w.Close()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short file: %v", err)
	}
	if err := w.Bytes("later", 0, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("behind it: %v", err)
	}
	// So does a writer below that is full.
	full := errors.New("full")
	w = NewWriter(writerFunc(func(b []byte) (int, error) { return 0, full }))
	if err := errors.Join(w.Dir("d"), w.Close()); !errors.Is(err, full) {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func FuzzWriter(f *testing.F) {
	f.Add("a/b", "content", "l", uint32(0o755))
	f.Fuzz(func(t *testing.T, name, content, link string, perm uint32) {
		var b bytes.Buffer
		w := NewWriter(&b)
		first := w.Bytes(name, perm, []byte(content))
		second := w.Link(link, content)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, p := range all {
			if p.Mode>>12 != 4 {
				files++
				if p.Content != content || strings.HasPrefix(p.Name, "/") || strings.Contains(p.Name, "../") {
					t.Errorf("%+v", p)
				}
			}
		}
		want := 0
		for _, err := range []error{first, second} {
			if err == nil {
				want++
			}
		}
		if files != want {
			t.Errorf("%d files instead of %d: %v, %v", files, want, first, second)
		}
	})
}
