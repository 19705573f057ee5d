package bus

import (
	"fmt"
	"os"
	"strings"
)

// Address names a device.
type Address struct {
	Scheme   string
	Location string
	Params   []Param // in the order in which they were given
}

// Param is a key=value of an address.
type Param struct{ Key, Value string }

// String formats the parameter as in an address.
func (p Param) String() string { return p.Key + "=" + p.Value }

// AddressError is an error in an address, or of opening what a part of it names.
type AddressError struct {
	Address string
	Part    string // what of it is wrong: "scheme", "location", or a key=value; or ""
	Err     error  // why; wraps an error for errors.Is
}

// Error implements error.
func (e *AddressError) Error() string {
	if e.Part == "" {
		return fmt.Sprintf("bus: address %q: %v", e.Address, e.Err)
	}
	return fmt.Sprintf("bus: address %q: %s: %v", e.Address, e.Part, e.Err)
}

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.Err }

// Parse reads an address. Its error is an [*AddressError] that wraps
// os.ErrInvalid. A scheme and a key are lower-case letters, digits and '-', the
// first a letter. Whether there is such a scheme or key is not looked at.
func Parse(s string) (Address, error) {
	fail := func(part, format string, args ...any) (Address, error) {
		return Address{}, &AddressError{Address: s, Part: part, Err: invalid(format, args...)}
	}
	scheme, rest, ok := strings.Cut(s, ":")
	switch {
	case !ok:
		return fail("", "there is no scheme, want scheme:location[,key=value]...")
	case scheme == "":
		return fail("scheme", "is empty")
	case !isName(scheme):
		return fail("scheme", "%q is not lower-case letters, digits and '-'", scheme)
	}
	location, rest, more := strings.Cut(rest, ",")
	if location == "" {
		return fail("location", "is empty")
	}
	a := Address{Scheme: scheme, Location: location}
	for more {
		var text string
		text, rest, more = strings.Cut(rest, ",")
		key, value, ok := strings.Cut(text, "=")
		part := fmt.Sprintf("%q", text)
		switch {
		case !ok:
			return fail(part, "is not key=value")
		case key == "":
			return fail(part, "the key is empty")
		case !isName(key):
			return fail(part, "the key is not lower-case letters, digits and '-'")
		}
		if _, ok := a.Get(key); ok {
			return fail(part, "%s= is given twice", key)
		}
		a.Params = append(a.Params, Param{key, value})
	}
	return a, nil
}

// invalid is an error with a text that wraps os.ErrInvalid without repeating
// its text.
func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }
func (e *invalidError) Unwrap() error { return os.ErrInvalid }

func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// Get returns the value of a key.
func (a Address) Get(key string) (value string, ok bool) {
	for _, p := range a.Params {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

// String formats the address so that Parse reads the same again.
func (a Address) String() string {
	var b strings.Builder
	b.WriteString(a.Scheme)
	b.WriteByte(':')
	b.WriteString(a.Location)
	for _, p := range a.Params {
		b.WriteByte(',')
		b.WriteString(p.String())
	}
	return b.String()
}
