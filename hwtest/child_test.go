//go:build hwtest

package hwtest

import "testing"

// TestKilledProcess kills a process that has a simulated device of its own: what the
// test of a killed process needs comes so far, and ends.
func TestKilledProcess(t *testing.T) {
	if err := killOnce(interruptible(t), "sim:gmac4"); err != nil {
		t.Error(err)
	}
}
