package jobs

import (
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// Space makes a network namespace with that name.
type Space struct {
	returns[None]
	Space string
}

// Name implements Job.
func (Space) Name() string { return "space" }

func (j Space) run(r run) (any, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if j.Space == "" || r.w.spaces[j.Space] != nil {
		return nil, fmt.Errorf("space %q: %w", j.Space, os.ErrExist)
	}
	n, err := netns.New()
	if err != nil {
		return nil, err
	}
	r.w.spaces[j.Space] = n
	return None{}, nil
}

// Move gives an interface to another namespace, where it is down.
type Move struct {
	returns[None]
	Space     string
	Interface string
	To        string
}

// Name implements Job.
func (Move) Name() string { return "move" }

func (j Move) run(r run) (any, error) {
	from, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	to, err := r.w.space(j.To)
	if err != nil {
		return nil, err
	}
	return None{}, from.Move(j.Interface, to)
}
