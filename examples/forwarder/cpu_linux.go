package main

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// cpuScope is what a cpuClock measures.
const cpuScope = "threads"

// cpuClock is the CPU time of a worker's thread: what getrusage(2) tells with
// RUSAGE_THREAD, read so that another thread can, without a part in the loop.
type cpuClock struct {
	thread       atomic.Int64 // clock id, 0 while there is none
	base, passed atomic.Int64 // nanoseconds; passed is what was read last
}

// start begins with the calling thread, to which the goroutine must be locked.
func (c *cpuClock) start() {
	// include/linux/posix-timers_types.h: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
	c.thread.Store(int64(^syscall.Gettid()<<3 | 4 | 2))
	c.base.Store(threadTime(c.thread.Load()))
}

// stop ends; used stays what it was.
func (c *cpuClock) stop() {
	c.used()
	c.thread.Store(0)
}

// used is the time between start and stop, or now. Any goroutine may call it.
func (c *cpuClock) used() time.Duration {
	if id := c.thread.Load(); id != 0 {
		if t := threadTime(id); t != 0 { // 0: the thread has ended
			c.passed.Store(t - c.base.Load())
		}
	}
	return time.Duration(c.passed.Load())
}

func threadTime(clock int64) int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return ts.Nano()
}

// pin binds the calling thread, to which the goroutine must be locked, to a CPU.
func pin(cpu int) error {
	const bits = 8 * unsafe.Sizeof(uintptr(0))
	var set [1024 / bits]uintptr // CPU_SETSIZE of sched.h
	if cpu >= len(set)*int(bits) {
		return fmt.Errorf("bind to CPU %d: %w", cpu, syscall.EINVAL)
	}
	set[cpu/int(bits)] = 1 << (cpu % int(bits))
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	if errno != 0 {
		return fmt.Errorf("bind to CPU %d: %w", cpu, errno)
	}
	return nil
}
