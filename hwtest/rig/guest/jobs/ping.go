package jobs

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Ping sends ICMP echo requests, each after the answer to the one before.
type Ping struct {
	returns[PingResult]
	Space string
	To    string
	Size  int // bytes of payload, 0 to 65507
	Count int
	// Patience is how long an answer may take in milliseconds, after which it counts as lost.
	// 0 waits until the job is cancelled: then none may be lost.
	Patience int `json:",omitempty"`
}

// PingResult is the result of Ping.
type PingResult struct {
	Answered, Lost int
	// Fastest and Slowest are microseconds of those that were answered.
	Fastest, Slowest int64
}

// Name implements Job.
func (Ping) Name() string { return "ping" }

func (j Ping) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddr(j.To)
	if err != nil {
		return nil, err
	}
	var result PingResult
	for range j.Count {
		ctx, cancel := r.ctx, context.CancelFunc(func() {})
		if j.Patience > 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(j.Patience)*time.Millisecond)
		}
		begin := time.Now()
		err := n.Ping(ctx, to, j.Size)
		took := time.Since(begin).Microseconds()
		late := ctx.Err() != nil
		cancel()
		switch {
		case r.ctx.Err() != nil:
			return nil, fmt.Errorf("%d of %d were answered: %w", result.Answered, j.Count, r.ctx.Err())
		case err == nil:
			if result.Answered == 0 || took < result.Fastest {
				result.Fastest = took
			}
			result.Answered, result.Slowest = result.Answered+1, max(result.Slowest, took)
		case late:
			result.Lost++
		default:
			return nil, err
		}
	}
	return result, nil
}
