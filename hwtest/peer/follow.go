package peer

import (
	"context"
	"time"
)

// follow makes a deadline of a file or connection follow a context, until what it
// returns is called; the deadline is off then unless the context has ended.
func follow(ctx context.Context, set func(time.Time) error) (end func()) {
	// What is closed fails in the call that follows, and says why.
	_ = set(time.Time{})
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = set(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done // or it would come into the next call
		}
	}
}
