package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// warmRounds are run untimed before each slice: twice around the rings, which another contender has pushed out of the caches.
const warmRounds = 2 * ringSize / burst

// allocRounds is the number of rounds that an allocation count averages over.
const allocRounds = 40

// measureLoops times every contender at every batch size, interleaved slice by slice so that a disturbance of the machine
// hits all of them, and counts their allocations.
func measureLoops(ctx context.Context, table []contender, rounds, burstsPerSlice int, progress io.Writer) (_ []result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A collection inside a slice would be charged to whoever is running.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	opened := make([]loop, 0, len(table))
	defer func() {
		for _, l := range opened {
			if cerr := l.Close(); err == nil {
				err = cerr
			}
		}
	}()
	for _, c := range table {
		l, err := c.open()
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", c.name, err)
		}
		opened = append(opened, l)
	}

	slicesOf := make([][]float64, len(table)*len(batches))
	clock := clockCost()
	for round := range rounds {
		for b, batch := range batches {
			for i := range table {
				// The first one of a round finds other caches than the rest: take turns.
				c := (i + round) % len(table)
				ns, err := timeSlice(opened[c], batch, burstsPerSlice, clock)
				if err != nil {
					return nil, fmt.Errorf("%s, batch %d: %w", table[c].name, batch, err)
				}
				slicesOf[c*len(batches)+b] = append(slicesOf[c*len(batches)+b], ns)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if (round+1)%10 == 0 || round+1 == rounds {
			fmt.Fprintf(progress, "timing: round %d of %d\n", round+1, rounds)
		}
	}

	var results []result
	for c := range table {
		for b, batch := range batches {
			allocs, err := countAllocs(opened[c], batch)
			if err != nil {
				return nil, fmt.Errorf("%s, batch %d: %w", table[c].name, batch, err)
			}
			samples := slicesOf[c*len(batches)+b]
			slices.Sort(samples)
			r := result{
				Contender: table[c].name, Batch: batch, AllocsPerRound: allocs,
				Min: samples[0], P25: quantile(samples, 0.25), Median: quantile(samples, 0.5),
			}
			if c > 0 {
				r.Ratio = r.P25 / results[b].P25
			} else {
				r.Ratio = 1
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// timedRound runs one round and returns how long the driver took.
func timedRound(l loop, batch int) (time.Duration, error) {
	if err := l.Arrive(); err != nil {
		return 0, err
	}
	start := time.Now()
	sent := l.Forward(batch)
	took := time.Since(start)
	return took, depart(l, sent)
}

// depart ends a round: a driver that loses packets is not compared.
func depart(l loop, sent int) error {
	left, err := l.Depart()
	if err == nil && (sent != burst || left != burst) {
		err = fmt.Errorf("of %d packets %d were forwarded and %d sent", burst, sent, left)
	}
	return err
}

// timeSlice returns ns per packet over a number of rounds.
func timeSlice(l loop, batch, bursts int, clock time.Duration) (float64, error) {
	for range warmRounds {
		if _, err := timedRound(l, batch); err != nil {
			return 0, err
		}
	}
	var total time.Duration
	for range bursts {
		took, err := timedRound(l, batch)
		if err != nil {
			return 0, err
		}
		total += took - clock
	}
	return float64(total.Nanoseconds()) / float64(bursts*burst), nil
}

// clockCost is what reading the clock adds to a timed region, at least.
func clockCost() time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 10_000 {
		start := time.Now()
		least = min(least, time.Since(start))
	}
	return least
}

// countAllocs returns the heap allocations of the driver per round, rounded down like testing.AllocsPerRun
// because the runtime allocates now and then on its own.
func countAllocs(l loop, batch int) (uint64, error) {
	var before, after runtime.MemStats
	var allocs uint64
	for range allocRounds {
		if err := l.Arrive(); err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&before)
		sent := l.Forward(batch)
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
		if err := depart(l, sent); err != nil {
			return 0, err
		}
	}
	return allocs / allocRounds, nil
}

// quantile returns the q-quantile of sorted samples by the nearest rank.
func quantile(sorted []float64, q float64) float64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
