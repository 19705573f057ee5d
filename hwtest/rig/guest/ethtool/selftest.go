package ethtool

import (
	"errors"
	"fmt"
	"slices"
)

// Flags of a self-test.
const (
	testOffline = 1 << 0
	testFailed  = 1 << 1
)

// Test is the outcome of one self-test: 0 is a pass, and the rest is the driver's, with
// stmmac a negative error number.
type Test struct {
	Name   string
	Result int64
}

// Self-tests of stmmac that the hardware has nothing for have this result (EOPNOTSUPP).
const unsupported = -95

// Passed says whether the test passed.
func (t Test) Passed() bool { return t.Result == 0 }

// Unsupported says whether the driver left it out.
func (t Test) Unsupported() bool { return t.Result == unsupported }

// ErrNotRun is the error of self-tests that the driver refused: all results are 0 then,
// which looks like a pass.
var ErrNotRun = errors.New("the driver ran no self-test: stmmac does that without a link, without the flag offline, and when it gets no loopback")

// SelfTest runs the driver's self-tests with the interface taken out of service, as
// ethtool -t does with offline, and returns all outcomes. An outcome that is a failure is
// no error.
func (i *Interface) SelfTest() ([]Test, error) {
	names, err := i.names("self-tests", namesOfTests)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("ethtool: self-tests of %s: %w", i.name, errors.ErrUnsupported)
	}
	const head = 16
	b := newBlock(cmdTest, head+8*len(names))
	b.put(1, testOffline)
	b.put(3, uint32(len(names)))
	if _, err := i.do("self-tests", b); err != nil {
		return nil, err
	}
	results := make([]int64, len(names))
	for k := range names {
		results[k] = int64(b.get64(head + 8*k))
	}
	all, err := outcomes(names, results, b.get(1))
	if err != nil {
		return nil, fmt.Errorf("ethtool: self-tests of %s: %w", i.name, err)
	}
	return all, nil
}

// outcomes joins names and results. flags are what the driver returned.
func outcomes(names []string, results []int64, flags uint32) ([]Test, error) {
	if flags&testFailed != 0 && !slices.ContainsFunc(results, func(r int64) bool { return r != 0 }) {
		return nil, ErrNotRun
	}
	var all []Test
	for k, n := range names {
		all = append(all, Test{n, results[k]})
	}
	return all, nil
}
