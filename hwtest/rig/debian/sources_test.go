package debian

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestFindMirror(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  mirror
	}{
		"one line": {map[string]string{"sources.list": "# deb http://a.example/debian bookworm main\n\ndeb http://b.example/debian bookworm main contrib # c\n"},
			mirror{uri: "http://b.example/debian"}},
		"options": {map[string]string{"sources.list": "deb [ arch=amd64 signed-by=/k.gpg ] https://b.example/d stable main\n"},
			mirror{"https://b.example/d", "/k.gpg"}},
		"spaces": {map[string]string{"sources.list": "  deb   http://b.example/debian   sid   contrib  main\n"}, mirror{uri: "http://b.example/debian"}},
		"stanza": {map[string]string{"sources.list.d/debian.sources": "Types: deb\n# x\nURIs: http://b.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n"},
			mirror{"http://b.example/debian", "/k.gpg"}},
		"stanza with a key inside": {map[string]string{"sources.list.d/d.sources": "types: deb-src deb\nuris:\n http://b.example/debian\n http://c.example/debian\nsuites: trixie\ncomponents: main\nsigned-by:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"},
			mirror{uri: "http://b.example/debian"}},
		"mirror list": {map[string]string{"sources.list.d/d.sources": "Types: deb\nURIs: mirror+file:/etc/apt/mirrors/debian.list\nSuites: trixie\nComponents: main\n"},
			mirror{uri: "mirror+file:/etc/apt/mirrors/debian.list"}},
		"others first": {map[string]string{
			"sources.list.d/a.list":    "deb https://tool.example/apt cloud-sdk-bookworm main\ndeb http://s.example/debian-security bookworm-security main\ndeb cdrom:[Debian]/ trixie main\ndeb-src http://s.example/debian trixie main\n",
			"sources.list.d/b.sources": "Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: trixie\nComponents: main\n\nTypes: deb\nURIs: http://node.example/x\nSuites: nodistro\nComponents: main\n\n\nTypes: deb\nURIs: http://good.example/debian\nSuites: trixie\nComponents: main\n",
			"sources.list.d/c.off":     "deb http://c.example/debian trixie main\n",
		}, mirror{uri: "http://good.example/debian"}},
		"nothing":        {nil, mirror{}},
		"Ubuntu":         {map[string]string{"sources.list": "deb http://u.example/ubuntu noble main\n"}, mirror{}},
		"not main":       {map[string]string{"sources.list": "deb http://b.example/debian bookworm contrib\n"}, mirror{}},
		"broken options": {map[string]string{"sources.list": "deb [ arch=amd64 http://b.example/debian bookworm main\n"}, mirror{}},
		"a flat one":     {map[string]string{"sources.list": "deb http://b.example/debian ./\n"}, mirror{}},
	} {
		fs := fstest.MapFS{}
		for f, text := range c.files {
			fs[f] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := findMirror(fs)
		if got != c.want || (c.want.uri == "") != errors.Is(err, ErrNoMirror) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func FuzzFindMirror(f *testing.F) {
	f.Add("deb [signed-by=/k] http://b.example/debian bookworm main", "Types: deb\nURIs: http://b.example/debian\nSuites: trixie\nComponents: main\n")
	f.Fuzz(func(t *testing.T, list, sources string) {
		m, err := findMirror(fstest.MapFS{
			"sources.list":             &fstest.MapFile{Data: []byte(list)},
			"sources.list.d/a.sources": &fstest.MapFile{Data: []byte(sources)},
		})
		if (m.uri == "") != (err != nil) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
