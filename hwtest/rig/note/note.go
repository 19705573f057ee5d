package note

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Notes are what a test said. Its methods may be called by several goroutines.
type Notes struct {
	mu   sync.Mutex
	said []string
}

type key struct{}

// Take returns a context for one test and what the test says with it.
func Take(ctx context.Context) (context.Context, *Notes) {
	n := new(Notes)
	return context.WithValue(ctx, key{}, n), n
}

// Printf says something for the report, in a few words. Without Take nobody listens.
func Printf(ctx context.Context, format string, args ...any) {
	if n, ok := ctx.Value(key{}).(*Notes); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.said = append(n.said, fmt.Sprintf(format, args...))
	}
}

// String is all that was said, in one line.
func (n *Notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.ReplaceAll(strings.Join(n.said, "; "), "\n", " ")
}
