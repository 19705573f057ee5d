package chips

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// groupNames are the parts of the register map of a GMAC4, in the order of Groups.
var groupNames = []string{"MAC", "PTP", "MMC", "MTL", "DMA"}

// Groups tells names of registers of a GMAC4 for people to read: "MAC: …" and so on, a line for
// each part of the map, with registers that differ in a number alone as one, with the numbers
// as ranges.
func Groups(names []string) []string {
	parts := map[string][]string{}
	for _, name := range names {
		g := groupOf(name)
		parts[g] = append(parts[g], name)
	}
	var lines []string
	for _, g := range groupNames {
		if all := parts[g]; len(all) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", g, strings.Join(fold(all), " ")))
		}
	}
	return lines
}

// groupOf is the part of the map that a register belongs to. Counters have no prefix.
func groupOf(name string) string {
	prefix, rest, _ := strings.Cut(name, "_")
	switch {
	case prefix == "MTL" || prefix == "DMA":
		return prefix
	case prefix != "MAC":
		return "MMC"
	}
	for _, word := range []string{"Timestamp", "System_Time", "Sub_Second", "PPS", "Auxiliary"} {
		if strings.Contains(rest, word) {
			return "PTP"
		}
	}
	return "MAC"
}

// fold makes one of names that differ in one number alone, and then of those that differ in
// another.
func fold(names []string) []string {
	list := make([][]string, len(names))
	numbers := 0
	for i, n := range names {
		list[i] = cut(n)
		numbers = max(numbers, len(list[i])/2)
	}
	for k := range numbers {
		var next [][]string
		at := map[string]int{} // of what is the same but for number k from the end, in next
		values := map[string][]int{}
		for _, parts := range list {
			p := len(parts) - 2 - 2*k
			if p < 1 {
				next = append(next, parts)
				continue
			}
			rest := slices.Clone(parts)
			rest[p] = ""
			key := fmt.Sprint(p) + strings.Join(rest, "\x00")
			v, _ := strconv.Atoi(parts[p]) // digits alone, and few
			if _, seen := at[key]; !seen {
				at[key] = len(next)
				next = append(next, parts)
			}
			values[key] = append(values[key], v)
		}
		for key, i := range at {
			if v := values[key]; len(v) > 1 {
				next[i][len(next[i])-2-2*k] = ranges(v)
			}
		}
		list = next
	}
	folded := make([]string, len(list))
	for i, parts := range list {
		folded[i] = strings.Join(parts, "")
	}
	return folded
}

// cut splits a name into text and numbers by turns: it begins and ends with text, which may be
// empty.
func cut(name string) []string {
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	parts := []string{""}
	for i := range len(name) {
		if inNumber := len(parts)%2 == 0; inNumber != digit(name[i]) {
			parts = append(parts, "")
		}
		parts[len(parts)-1] += name[i : i+1]
	}
	if len(parts)%2 == 0 {
		parts = append(parts, "")
	}
	return parts
}

// ranges tells numbers as "[0,2-7]".
func ranges(v []int) string {
	slices.SortFunc(v, cmp.Compare[int])
	v = slices.Compact(v)
	var all []string
	for i := 0; i < len(v); {
		j := i
		for j+1 < len(v) && v[j+1] == v[j]+1 {
			j++
		}
		one := strconv.Itoa(v[i])
		if j > i {
			one += "-" + strconv.Itoa(v[j])
		}
		all = append(all, one)
		i = j + 1
	}
	return "[" + strings.Join(all, ",") + "]"
}
