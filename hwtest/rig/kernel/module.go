package kernel

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Module is a module of a kernel, as a file that the kernel loads as it is.
type Module struct {
	Name string // with underscores, as the kernel has it
	File string
}

// ModuleName is the name that the kernel has for a module: it takes - for _.
func ModuleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// modinfo is what a module says of itself.
type modinfo struct {
	name     string
	depends  []string
	vermagic string
}

// parseModule reads it from an ELF file: strings key=value in the section .modinfo.
func parseModule(file []byte) (m modinfo, err error) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return m, fmt.Errorf("no module: %w", err)
	}
	s := f.Section(".modinfo")
	if s == nil {
		return m, fmt.Errorf("no module: no section .modinfo")
	}
	b, err := s.Data()
	if err != nil {
		return m, fmt.Errorf("no module: %w", err)
	}
	for line := range bytes.SplitSeq(b, []byte{0}) {
		key, value, _ := strings.Cut(string(line), "=")
		switch key {
		case "name":
			m.name = value
		case "vermagic":
			m.vermagic = value
		case "depends":
			for d := range strings.SplitSeq(value, ",") {
				if d != "" {
					m.depends = append(m.depends, ModuleName(d))
				}
			}
		}
	}
	return m, nil
}

// order lists names with all that they depend on, each behind what it depends on. What
// depends does not know is an error.
func order(names []string, depends func(name string) ([]string, error)) ([]string, error) {
	var all []string
	var open []string // the way to the name that is looked at
	var visit func(name string) error
	visit = func(name string) error {
		if slices.Contains(all, name) {
			return nil
		}
		if slices.Contains(open, name) {
			return fmt.Errorf("modules depend on each other: %s", strings.Join(append(open, name), ", "))
		}
		open = append(open, name)
		d, err := depends(name)
		if err != nil {
			return err
		}
		for _, n := range d {
			if err := visit(n); err != nil {
				return err
			}
		}
		open = open[:len(open)-1]
		all = append(all, name)
		return nil
	}
	for _, n := range names {
		if err := visit(ModuleName(n)); err != nil {
			return nil, err
		}
	}
	return all, nil
}
