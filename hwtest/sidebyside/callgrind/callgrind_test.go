package callgrind

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func buildStraight(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip(err)
	}
	bin := filepath.Join(t.TempDir(), "straight")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./testdata/straight")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// A function without branches costs the same each time, so counts of it are exact multiples.
func TestCountIsLinear(t *testing.T) {
	bin := buildStraight(t)
	count := func(n int) uint64 {
		sum, functions, err := Count(t.Context(), bin, []string{strconv.Itoa(n)},
			func(fn string) bool { return fn == "main.work" })
		if err != nil {
			t.Fatal(err)
		}
		if len(functions) != 1 || functions["main.work"] != sum {
			t.Fatalf("sum %d of %v", sum, functions)
		}
		return sum
	}
	one := count(1)
	// Three shifts, three exclusive ors and the return at least; on amd64 three copies too.
	if one < 7 || one > 30 {
		t.Errorf("one call takes %d instructions", one)
	}
	if many := count(1000); many != 1000*one {
		t.Errorf("1000 calls take %d instructions, one takes %d", many, one)
	}
}

func TestCountReportsFailure(t *testing.T) {
	bin := buildStraight(t)
	_, _, err := Count(t.Context(), bin, []string{"x"}, func(string) bool { return true })
	var e *Error
	var exit *exec.ExitError
	if !errors.As(err, &e) || e.Op != "run" || e.Bin != bin || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("got %v, want Op run and exit status 3", err)
	}
	if !strings.Contains(err.Error(), "straight: bad argument") {
		t.Errorf("%q does not quote stderr", err)
	}
}

func TestCountCancelled(t *testing.T) {
	bin := buildStraight(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Count(ctx, bin, []string{"1"}, func(string) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestCountWithoutValgrind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, _, err := Count(t.Context(), "prog", nil, func(string) bool { return true })
	var e *Error
	if !errors.As(err, &e) || e.Op != "find" || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want Op find and exec.ErrNotFound", err)
	}
}
