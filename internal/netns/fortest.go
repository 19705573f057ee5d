package netns

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"
	"time"
)

// leakPatience is how long what ends by itself, a goroutine or a thread, may take.
const leakPatience = 30 * time.Second

// ForTest returns a namespace that is closed at the end of the test. It skips the
// test, with the reason, on a machine or for a user that cannot make one, or that
// has no TAP to put into it.
func ForTest(t testing.TB) *NS {
	t.Helper()
	n, err := New()
	switch {
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no TAP: ", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// CheckLeaks fails the test if goroutines, file descriptors or threads in another
// network namespace are left at its end that were not there at this call. It is
// called first in a test that does not run in parallel with others.
func CheckLeaks(t testing.TB) {
	t.Helper()
	// The first file that can be polled makes the runtime open what it polls with.
	if r, w, err := os.Pipe(); err == nil {
		if err := errors.Join(r.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	goroutines := runtime.NumGoroutine()
	fds, spaces := resources()
	t.Cleanup(func() {
		var g, f, s int
		for end := time.Now().Add(leakPatience); ; time.Sleep(time.Millisecond) {
			g = runtime.NumGoroutine()
			f, s = resources()
			if g <= goroutines && f <= fds && s <= spaces {
				return
			}
			if time.Now().After(end) {
				break
			}
		}
		buf := make([]byte, 1<<20)
		t.Errorf("left behind: goroutines %d, before %d; file descriptors %d, before %d; network namespaces with a thread in them %d, before %d\n%s",
			g, goroutines, f, fds, s, spaces, buf[:runtime.Stack(buf, true)])
	})
}
