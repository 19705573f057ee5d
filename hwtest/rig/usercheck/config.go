package usercheck

import "context"

// Config says what to run.
type Config struct {
	// Command is QEMU for amd64 (qemu-system-x86_64), with the arguments that go before
	// all others, and Env what is added to its environment.
	Command, Env []string
	// Log is the file that gets what QEMU writes; "" keeps nothing but what an error
	// shows.
	Log string
}

// Test is one check. It starts machines of its own and ends them.
type Test struct {
	Name string
	Run  func(ctx context.Context, c Config) error
}
