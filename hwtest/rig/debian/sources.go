package debian

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// mirror is where packages come from.
type mirror struct {
	uri      string
	signedBy string // a key ring, or "" for those that apt trusts anyhow
}

// isRelease says whether suite is a name under which Debian's own sources ask for a
// release; those of others have names of their own.
func isRelease(suite string) bool {
	return slices.Contains([]string{"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid",
		"oldoldstable", "oldstable", "stable", "testing", "unstable"}, suite)
}

// findMirror returns the first mirror of Debian in the apt sources below etc, the
// machine's /etc/apt. It is an error that is ErrNoMirror when there is none.
func findMirror(etc fs.FS) (mirror, error) {
	files := []string{"sources.list"}
	for _, pattern := range []string{"sources.list.d/*.sources", "sources.list.d/*.list"} {
		found, err := fs.Glob(etc, pattern)
		if err != nil {
			return mirror{}, err
		}
		files = append(files, found...)
	}
	for _, f := range files {
		b, err := fs.ReadFile(etc, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return mirror{}, err
		}
		parse := oneLine
		if path.Ext(f) == ".sources" {
			parse = stanzas
		}
		if m, ok := parse(b); ok {
			return m, nil
		}
	}
	return mirror{}, fmt.Errorf("%w in the machine's apt sources (%s)", ErrNoMirror, strings.Join(files, ", "))
}

// usable says whether packages of other releases can be had at uri.
func usable(types, uri string, suites, components []string) bool {
	return slices.Contains(strings.Fields(types), "deb") && uri != "" && !strings.HasPrefix(uri, "cdrom:") &&
		slices.ContainsFunc(suites, isRelease) && slices.Contains(components, "main")
}

// oneLine looks through lines of the form "deb [options] uri suite component…"
// (sources.list(5)).
func oneLine(b []byte) (mirror, bool) {
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		text, _, _ := strings.Cut(s.Text(), "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		rest = strings.TrimSpace(rest)
		var m mirror
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			rest = after
			for _, o := range strings.Fields(options) {
				if v, ok := strings.CutPrefix(o, "signed-by="); ok {
					m.signedBy = v
				}
			}
		}
		f := strings.Fields(rest)
		if len(f) < 3 || !usable(kind, f[0], f[1:2], f[2:]) {
			continue
		}
		m.uri = f[0]
		return m, true
	}
	return mirror{}, false
}

// stanzas looks through stanzas of fields (deb822 in sources.list(5)).
func stanzas(b []byte) (mirror, bool) {
	fields := map[string]string{}
	var last string
	done := func() (mirror, bool) {
		f := fields
		fields, last = map[string]string{}, ""
		uris := strings.Fields(f["uris"])
		if len(uris) == 0 || f["enabled"] == "no" || f["enabled"] == "false" ||
			!usable(f["types"], uris[0], strings.Fields(f["suites"]), strings.Fields(f["components"])) {
			return mirror{}, false
		}
		m := mirror{uri: uris[0]}
		// A key that is written out in the source itself has several lines.
		if key := strings.Fields(f["signed-by"]); len(key) == 1 && strings.HasPrefix(key[0], "/") {
			m.signedBy = key[0]
		}
		return m, true
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		text := s.Text()
		switch {
		case strings.HasPrefix(text, "#"):
		case strings.TrimSpace(text) == "":
			if m, ok := done(); ok {
				return m, true
			}
		case (text[0] == ' ' || text[0] == '\t') && last != "":
			fields[last] += " " + strings.TrimSpace(text)
		default:
			key, value, _ := strings.Cut(text, ":")
			last = strings.ToLower(strings.TrimSpace(key))
			fields[last] = strings.TrimSpace(value)
		}
	}
	return done()
}
