package jobs

import "fmt"

// Load loads a module from a file, which is not packed.
type Load struct {
	returns[None]
	File   string
	Params string // as insmod(8) takes them: a=1 b=2
}

// Name implements Job.
func (Load) Name() string { return "load" }

func (j Load) run(run) (any, error) {
	if err := loadModule(j.File, j.Params); err != nil {
		return nil, fmt.Errorf("load %s: %w; the guest's console says more", j.File, err)
	}
	return None{}, nil
}

// Unload removes a module by the name that the kernel has for it.
type Unload struct {
	returns[None]
	Module string
}

// Name implements Job.
func (Unload) Name() string { return "unload" }

func (j Unload) run(run) (any, error) {
	if err := unloadModule(j.Module); err != nil {
		return nil, fmt.Errorf("unload %s: %w", j.Module, err)
	}
	return None{}, nil
}
