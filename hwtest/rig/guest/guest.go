package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/channel"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/qemu"
)

// Guest is a Linux that runs. Its methods may be called by several goroutines.
type Guest struct {
	name    string
	qemu    *qemu.Child
	console *console
	files   []io.Closer // closed at the end
	client  *channel.Client
	readers sync.WaitGroup // of console and line
	off     chan struct{}  // closed when its end is meant
	once    sync.Once
	closing error // the result of Close
}

// Names of files in Config.Dir.
const (
	ConsoleLog = "console.log" // what the guest's kernel said
	QEMULog    = "qemu.log"    // what QEMU said, behind its command
)

// Boot starts a guest and returns when its first program is ready for jobs. The end of ctx
// ends the start, not the guest.
func Boot(ctx context.Context, c Config) (*Guest, error) {
	g := &Guest{name: "without a kernel", off: make(chan struct{})}
	if c.Kernel != nil {
		g.name = c.Kernel.Arch + ", linux " + c.Kernel.Release
	}
	fail := func(op string, err error) (*Guest, error) {
		return nil, &Error{Op: op, Guest: g.name, Err: err}
	}
	b, err := c.complete()
	if err != nil {
		return fail("start", err)
	}
	init := c.Init
	if init == "" {
		init = filepath.Join(c.Dir, "init-"+b.goarch)
		if err := Build(ctx, b.goarch, init, initPackage); err != nil {
			return fail("build the first program", err)
		}
	}
	archive := filepath.Join(c.Dir, "initrd")
	if err := c.writeInitrd(archive, init); err != nil {
		return fail("make the initrd", err)
	}
	dtb := ""
	if b.tree {
		if c.DeviceTree == "" {
			c.DeviceTree = twoGMACs
		}
		if dtb, err = compile(ctx, c.Tree, c.DeviceTree, c.Dir); err != nil {
			return fail("start", err)
		}
	}
	command, env := c.Tree.System(b.processor)
	command = append(command, c.args(b, archive, dtb)...)
	if err := g.start(c, command, env); err != nil {
		return fail("start QEMU", err)
	}
	if err := g.client.Ready(ctx); err != nil {
		return nil, errors.Join(g.why("boot", err), g.Close())
	}
	return g, nil
}

// start makes the process and what is connected to it.
func (g *Guest) start(c Config, command, env []string) (err error) {
	defer func() {
		if err != nil {
			for _, f := range g.files {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	consoleFile, err := os.Create(filepath.Join(c.Dir, ConsoleLog))
	if err != nil {
		return err
	}
	g.files = append(g.files, consoleFile)
	g.console = &console{file: consoleFile}
	qemuFile, err := os.Create(filepath.Join(c.Dir, QEMULog))
	if err != nil {
		return err
	}
	g.files = append(g.files, qemuFile)
	fmt.Fprintf(qemuFile, "%q\n", command)
	console, qemuConsole, err := socketPair()
	if err != nil {
		return err
	}
	g.files = append(g.files, console)
	defer qemuConsole.Close()
	line, qemuLine, err := socketPair()
	if err != nil {
		return err
	}
	g.files = append(g.files, line)
	defer qemuLine.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.ExtraFiles = append([]*os.File{qemuConsole, qemuLine}, c.Files...)
	// What QEMU says is bad news too.
	said := io.MultiWriter(qemuFile, g.console)
	cmd.Stdout, cmd.Stderr = said, said
	if g.qemu, err = qemu.StartChild(cmd); err != nil {
		return err
	}
	g.readers.Go(func() { _, _ = io.Copy(g.console, console) }) // it ends with QEMU, or with Close
	g.client = channel.NewClient(line, c.Log)
	return nil
}

// why makes err the error of a call: how the guest ended, if it has, and what it said last.
func (g *Guest) why(op string, err error) error {
	e := &Error{Op: op, Guest: g.name, Err: err}
	if errors.Is(err, channel.ErrClosed) {
		// The line ends with the process. How that ended is known in a moment, and so is the
		// end of what the console said.
		select {
		case <-g.qemu.Ended():
		case <-time.After(endTime):
		}
		exit := g.qemu.Kill()
		g.readers.Wait()
		switch fatal := g.console.end(); {
		case g.isOff():
			e.Err = fmt.Errorf("%w: it was ended", ErrGone)
			return e
		case fatal != "":
			e.Err = fmt.Errorf("%w: %w: %s", ErrGone, ErrPanic, fatal)
		case exit != nil:
			e.Err = fmt.Errorf("%w: QEMU: %w", ErrGone, exit)
		default:
			e.Err = fmt.Errorf("%w: QEMU ended, which a restart of the guest does too", ErrGone)
		}
	}
	var job *channel.JobError
	if !errors.As(err, &job) {
		e.Console = g.console.tail()
	}
	return e
}

func (g *Guest) isOff() bool {
	select {
	case <-g.off:
		return true
	default:
		return false
	}
}

// endTime is how long QEMU gets from closing a line to its end.
const endTime = 10 * time.Second

// Do runs a job in the guest and returns its result. The end of ctx cancels the job. An error
// of the job itself is a *channel.JobError; of a guest that panicked it is ErrPanic and of
// one that is not there any more ErrGone.
func Do[R any](ctx context.Context, g *Guest, j jobs.Job[R]) (result R, err error) {
	if err := g.client.Do(ctx, j.Name(), j, &result); err != nil {
		return result, g.why(j.Name(), err)
	}
	return result, nil
}

// Load loads modules in the order in which they are, which is that of kernel.Load, with
// parameters by the names of modules, written with - or _. Those for a module that is not
// loaded are refused with os.ErrInvalid.
func (g *Guest) Load(ctx context.Context, modules []kernel.Module, params map[string]string) error {
	given, err := paramsOf(modules, params)
	if err != nil {
		return err
	}
	for i, m := range modules {
		if _, err := Do(ctx, g, jobs.Load{File: modulePath(m), Params: given[i]}); err != nil {
			return err
		}
	}
	return nil
}

// paramsOf gives each module its parameters.
func paramsOf(modules []kernel.Module, params map[string]string) ([]string, error) {
	given := make([]string, len(modules))
	for name, p := range params {
		i := slices.IndexFunc(modules, func(m kernel.Module) bool { return m.Name == kernel.ModuleName(name) })
		if i < 0 {
			return nil, fmt.Errorf("parameters %q are for the module %s, which is not among those to load: %w", p, name, os.ErrInvalid)
		}
		given[i] = p
	}
	return given, nil
}

// Warnings are lines of the console that tell of a bug in the kernel after which it went on.
// An oops is not among them: it ends the guest.
func (g *Guest) Warnings() []string { return g.console.bugs() }

// TakeWarnings returns those with a text in them, which are no Warnings any more: they were
// provoked.
func (g *Guest) TakeWarnings(text string) []string { return g.console.take(text) }

// Off ends the guest in good order, and says how it ended: a panic on the way is an error.
// The end of ctx ends it the hard way.
func (g *Guest) Off(ctx context.Context) error {
	_, err := Do(ctx, g, jobs.PowerOff{})
	var e *Error
	if errors.As(err, &e) && errors.Is(err, ErrGone) && !errors.Is(err, ErrPanic) && g.qemu.Kill() == nil {
		err = nil
	}
	return errors.Join(err, g.Close())
}

// Close ends the guest at once. It is safe to call twice and while jobs run, which then
// return an error that is ErrGone.
func (g *Guest) Close() error {
	g.once.Do(func() {
		close(g.off)
		_ = g.qemu.Kill() // it was ended, and that is how it ended
		g.client.End(errors.New("the guest was ended"))
		g.readers.Wait()
		errs := []error{g.console.err()}
		for _, f := range g.files {
			errs = append(errs, f.Close())
		}
		if err := errors.Join(errs...); err != nil {
			g.closing = &Error{Op: "end", Guest: g.name, Err: err}
		}
	})
	return g.closing
}
