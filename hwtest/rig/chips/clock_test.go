package chips

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestSkip: the time of a card jumps ahead, and timers still fire.
func TestSkip(t *testing.T) {
	k := newCard(t, "gmac4", Options{})
	c := k.model.Clock()
	before := c.Now()
	k.Skip(time.Hour)
	if d := c.Now() - before; d < time.Hour {
		t.Errorf("%v have passed", d)
	}
	fired := make(chan struct{})
	c.AfterFunc(time.Microsecond, func() { close(fired) })
	<-fired
	if stop := c.AfterFunc(time.Hour, func() { t.Error("a timer that was stopped fires") }); !stop() {
		t.Error("it was not stopped")
	}
	if err := c.Sleep(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
