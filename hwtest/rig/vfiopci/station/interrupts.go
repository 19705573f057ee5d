package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// interrupts counts those of VFIO by kind and function.
func interrupts() (map[string]map[string]uint64, error) {
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return nil, err
	}
	return parseInterrupts(string(text))
}

// A line of /proc/interrupts is the number of the interrupt, the counts of the processors,
// the controller, and the names of who has it; VFIO names its vectors so
// (vfio_pci_intrs.c). Several functions may share a line.
var (
	counts = regexp.MustCompile(`^ *\d+:((?: +\d+)+) `)
	vector = regexp.MustCompile(`\bvfio-(msix|msi|intx)(?:\[\d+\])?\(([0-9a-f:.]+)\)`)
)

func parseInterrupts(text string) (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	for l := range strings.Lines(text) {
		c, names := counts.FindStringSubmatch(l), vector.FindAllStringSubmatch(l, -1)
		if c == nil || names == nil {
			continue
		}
		sum := uint64(0)
		for f := range strings.FieldsSeq(c[1]) {
			n, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("/proc/interrupts: %q: %w", l, err)
			}
			sum += n
		}
		for _, n := range names {
			kind, place := n[1], n[2]
			if all[kind] == nil {
				all[kind] = map[string]uint64{}
			}
			all[kind][place] += sum
		}
	}
	return all, nil
}
