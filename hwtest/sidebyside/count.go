package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/sidebyside/callgrind"
)

// countFlag makes the program the one that runs under valgrind: a contender, a batch size and a number of rounds follow.
// It is not shown in the usage.
const countFlag = "-counted-run"

// A count is the difference of two runs, which removes the start of the process and the set-up. Both
// are past the first turn of the rings, and the difference is whole turns, so many that what set-up varies by (some
// hundred instructions) is below 0.1 per packet.
const (
	shortRun = 10 // rounds
	longRun  = shortRun + 100*ringSize/burst
)

func countedRun(args []string) error {
	if len(args) != 3 {
		return errors.New("want contender, batch and rounds")
	}
	c, err := find(contenders(), args[0])
	if err != nil {
		return err
	}
	batch, err := strconv.Atoi(args[1])
	if err != nil || batch < 1 || batch > burst {
		return fmt.Errorf("batch %q", args[1])
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	l, err := c.open()
	if err != nil {
		return err
	}
	for range rounds {
		if err := l.Arrive(); err != nil {
			return errors.Join(err, l.Close())
		}
		if err := depart(l, l.Forward(batch)); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	return l.Close()
}

// countInstructions adds the instructions per packet to the results. Without valgrind the error wraps exec.ErrNotFound.
func countInstructions(ctx context.Context, table []contender, results []result, progress io.Writer) error {
	// Ask first: building a program only to find that nothing can run it takes long.
	if _, err := exec.LookPath("valgrind"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sidebyside")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := countableBinary(ctx, dir)
	if err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		c, err := find(table, r.Contender)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "counting: %s, batch %d\n", c.name, r.Batch)
		var totals [2]uint64
		var runs [2]map[string]uint64
		for n, rounds := range [...]int{shortRun, longRun} {
			args := []string{countFlag, c.name, strconv.Itoa(r.Batch), strconv.Itoa(rounds)}
			if totals[n], runs[n], err = callgrind.Count(ctx, bin, args, inPackages(c.packages)); err != nil {
				return err
			}
		}
		if totals[1] <= totals[0] {
			// A driver cannot work for nothing: its symbols have changed, or all of it was inlined elsewhere.
			return fmt.Errorf("no instructions per packet found in %s", strings.Join(c.packages, ", "))
		}
		// Signed: set-up code differs by a few instructions in either direction.
		perPacket := func(long, short uint64) float64 {
			return float64(int64(long-short)) / ((longRun - shortRun) * burst)
		}
		r.Functions = make(map[string]float64)
		instructions := perPacket(totals[1], totals[0])
		driver := instructions
		inLoop := inPackages([]string{c.loop})
		for fn, n := range runs[1] {
			v := perPacket(n, runs[0][fn])
			if c.loop != "" && inLoop(fn) {
				driver -= v
			}
			if v >= 0.01 {
				r.Functions[fn] = v
			}
		}
		r.Instructions = &instructions
		if c.loop != "" {
			r.Driver = &driver
		}
	}
	return nil
}

// inPackages accepts the symbols of exactly these packages. In a symbol the package ends at the first dot behind
// the last slash of the path; dots inside that last element are escaped by the linker. Type arguments, which
// may have slashes, come later.
func inPackages(packages []string) func(string) bool {
	return func(fn string) bool {
		for _, p := range packages {
			slash := strings.LastIndexByte(p, '/') + 1
			symbol := p[:slash] + strings.ReplaceAll(p[slash:], ".", "%2e") + "."
			if strings.HasPrefix(fn, symbol) {
				return true
			}
		}
		return false
	}
}

// countableBinary returns this program without cgo and with a symbol table. That is the running one, unless some
// import made the linker use cgo or "go run" stripped it; then it is built anew in dir.
func countableBinary(ctx context.Context, dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	countable, err := isCountable(self)
	if err != nil || countable {
		return self, err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("linked with cgo or stripped, and without build information: use go build with CGO_ENABLED=0")
	}
	bin := filepath.Join(dir, "sidebyside")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, info.Path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("linked with cgo or stripped, and building %s failed: %w: %s", info.Path, err, out)
	}
	return bin, nil
}

// isCountable reports whether an ELF program has symbols and no dynamic linker.
func isCountable(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	switch _, err := f.Symbols(); {
	case errors.Is(err, elf.ErrNoSymbols):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
