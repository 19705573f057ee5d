package note

import (
	"context"
	"testing"
)

func TestNotes(t *testing.T) {
	Printf(t.Context(), "nobody listens")
	ctx, n := Take(t.Context())
	other, o := Take(ctx)
	if n.String() != "" {
		t.Errorf("%q before anything was said", n)
	}
	inner, end := context.WithCancel(ctx)
	defer end()
	Printf(inner, "%d frames", 3)
	Printf(ctx, "two\nlines")
	Printf(other, "another test")
	if n.String() != "3 frames; two lines" || o.String() != "another test" {
		t.Errorf("%q and %q", n, o)
	}
}
