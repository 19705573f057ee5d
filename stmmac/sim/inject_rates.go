package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// FaultRates are the rates of the faults of an [Injector], each the share of
// frames from 0 to 1; a frame has one fault at most, so they add up to 1 at most.
type FaultRates struct {
	Drop    float64 // the frame vanishes
	CRC     float64 // the FCS is bad
	Corrupt float64 // one byte of the payload is another, the FCS is good
	Dup     float64 // the frame comes twice
	Reorder float64 // the frame comes after later ones
	Seed    uint64
}

// faultKind is the place of a fault in [FaultRates].
type faultKind int

const (
	faultDrop faultKind = iota
	faultCRC
	faultCorrupt
	faultDup
	faultReorder
	faultNone
)

func (f FaultRates) rates() [5]float64 {
	return [5]float64{f.Drop, f.CRC, f.Corrupt, f.Dup, f.Reorder}
}

// What is wrong with the text of fault rates.
var (
	ErrFaultName  = errors.New("unknown fault")
	ErrFaultTwice = errors.New("given twice")
	ErrFaultRate  = errors.New("not a rate from 0 to 1")
	ErrFaultSeed  = errors.New("not a 64-bit number")
	ErrFaultSum   = errors.New("the rates add up to more than 1")
)

// FaultRateError is an error in the text of fault rates.
type FaultRateError struct {
	Key, Value string // as they were given; empty for ErrFaultSum
	Err        error  // one of ErrFault…
}

// Error implements error.
func (e *FaultRateError) Error() string {
	if e.Key == "" && e.Value == "" {
		return "sim: fault rates: " + e.Err.Error()
	}
	return fmt.Sprintf("sim: fault rates: %q=%q: %v", e.Key, e.Value, e.Err)
}

// Unwrap returns the cause.
func (e *FaultRateError) Unwrap() error { return e.Err }

// ParseFaultRates reads rates as "drop=1e-4,dup=1e-3,seed=7": the keys are
// drop, crc, corrupt, dup, reorder and seed, each at most once, in any order.
// An empty text has no faults. The error is a [*FaultRateError].
func ParseFaultRates(text string) (FaultRates, error) {
	var f FaultRates
	if text == "" {
		return f, nil
	}
	field := map[string]*float64{
		"drop": &f.Drop, "crc": &f.CRC, "corrupt": &f.Corrupt, "dup": &f.Dup, "reorder": &f.Reorder,
	}
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		fail := func(err error) (FaultRates, error) {
			return FaultRates{}, &FaultRateError{Key: key, Value: value, Err: err}
		}
		if given[key] {
			return fail(ErrFaultTwice)
		}
		given[key] = true
		if key == "seed" {
			seed, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return fail(ErrFaultSeed)
			}
			f.Seed = seed
			continue
		}
		to := field[key]
		if to == nil {
			return fail(ErrFaultName)
		}
		rate, err := strconv.ParseFloat(value, 64)
		if err != nil || !(rate >= 0 && rate <= 1) { // NaN fails both
			return fail(ErrFaultRate)
		}
		*to = rate
	}
	sum := 0.0
	for _, rate := range f.rates() {
		sum += rate
	}
	if sum > 1+1e-9 { // decimal fractions that add up to 1 may round above it
		return FaultRates{}, &FaultRateError{Err: ErrFaultSum}
	}
	return f, nil
}
