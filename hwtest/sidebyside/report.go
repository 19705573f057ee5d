package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// The reference loop stands for ixy.go, whose driver takes 219 x86-64 instructions per packet at batch 32 in the same setting
// (unmodified driver package over a simulated 82599, Go 1.26, callgrind). It may be 10 % off.
const (
	calibrationContender = "ixystyle"
	calibrationBatch     = 32
	calibrationLow       = 197
	calibrationHigh      = 241
)

// result is one contender at one batch size. Times are ns per packet.
type result struct {
	Contender      string   `json:"contender"`
	Batch          int      `json:"batch"`
	Min            float64  `json:"ns_min"`
	P25            float64  `json:"ns_p25"`
	Median         float64  `json:"ns_median"`
	Ratio          float64  `json:"p25_ratio"` // to the first contender
	AllocsPerRound uint64   `json:"allocs_per_round"`
	Instructions   *float64 `json:"instructions_per_packet,omitempty"`
	// Driver is Instructions without the loop that calls the driver, where the two can be told apart.
	Driver *float64 `json:"driver_instructions_per_packet,omitempty"`
	// Functions splits Instructions by symbol, without what is below 0.01.
	Functions map[string]float64 `json:"functions,omitempty"`
}

// calibration is the verdict on the reference loop.
type calibration struct {
	Batch        int     `json:"batch"`
	Instructions float64 `json:"instructions_per_packet"`
	Low          float64 `json:"low"`
	High         float64 `json:"high"`
	OK           bool    `json:"ok"`
}

func (c *calibration) String() string {
	verdict := "in"
	if !c.OK {
		verdict = "OUT OF"
	}
	return fmt.Sprintf("%s at batch %d takes %.1f instructions per packet: %s calibration (%.0f to %.0f)",
		calibrationContender, c.Batch, c.Instructions, verdict, c.Low, c.High)
}

// calibrate judges the reference loop, or returns nil when nothing was counted or the instructions are not those of
// x86-64, where ixy.go was counted.
func calibrate(results []result, goarch string) *calibration {
	if goarch != "amd64" {
		return nil
	}
	for _, r := range results {
		if r.Contender == calibrationContender && r.Batch == calibrationBatch && r.Instructions != nil {
			n := *r.Instructions
			return &calibration{
				Batch: calibrationBatch, Instructions: n, Low: calibrationLow, High: calibrationHigh,
				OK: calibrationLow <= n && n <= calibrationHigh,
			}
		}
	}
	return nil
}

// overspent names the contenders that take more instructions per packet than their limit. The limits are for x86-64.
func overspent(table []contender, results []result, goarch string) []string {
	if goarch != "amd64" {
		return nil
	}
	var over []string
	for _, c := range table {
		for _, r := range results {
			most, ok := c.most[r.Batch]
			if ok && r.Contender == c.name && r.Driver != nil && *r.Driver > most {
				over = append(over, fmt.Sprintf("the driver of %s at batch %d takes %.1f instructions per packet, more than %.0f",
					c.name, r.Batch, *r.Driver, most))
			}
		}
	}
	return over
}

type report struct {
	Set             string       `json:"set"`
	GoVersion       string       `json:"go"`
	GOOS            string       `json:"goos"`
	GOARCH          string       `json:"goarch"`
	CPUs            int          `json:"cpus"`
	Burst           int          `json:"burst"`
	Rounds          int          `json:"rounds"`
	PacketsPerSlice int          `json:"packets_per_slice"`
	Results         []result     `json:"results"`
	CountsSkipped   string       `json:"counts_skipped,omitempty"` // why
	Calibration     *calibration `json:"calibration,omitempty"`
	Overspent       []string     `json:"overspent,omitempty"`
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(r)
}

func (r *report) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s %s/%s, %d CPUs; rings of %d, bursts of %d, frames of %d bytes; %d slices of %d packets\n\n",
		r.GoVersion, r.GOOS, r.GOARCH, r.CPUs, ringSize, r.Burst, frameSize, r.Rounds, r.PacketsPerSlice)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "batch\tcontender\tmin ns\tp25 ns\tmedian ns\tp25 ratio\tinsns/packet\tdriver\tallocs/round\t")
	for _, batch := range batches {
		for _, res := range r.Results {
			if res.Batch != batch {
				continue
			}
			insns := "-"
			if res.Instructions != nil {
				insns = fmt.Sprintf("%.1f", *res.Instructions)
			}
			driver := "-"
			if res.Driver != nil {
				driver = fmt.Sprintf("%.1f", *res.Driver)
			}
			fmt.Fprintf(t, "%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%s\t%d\t\n",
				res.Batch, res.Contender, res.Min, res.P25, res.Median, res.Ratio, insns, driver, res.AllocsPerRound)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var err error
	switch {
	case r.CountsSkipped != "":
		_, err = fmt.Fprintf(w, "\ninstruction counts skipped: %s\n", r.CountsSkipped)
	case r.Calibration != nil:
		_, err = fmt.Fprintf(w, "\n%s\n", r.Calibration)
	default:
		_, err = fmt.Fprintf(w, "\nno calibration: the reference was counted on amd64, not on %s\n", r.GOARCH)
	}
	return err
}
