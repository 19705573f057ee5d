package stmmac

import "github.com/gostmmac/gostmmac/pagepool"

// Verdict is what a program decided about a frame.
type Verdict uint8

// Verdicts. A number that is none of them counts as VerdictAborted.
const (
	VerdictAborted Verdict = iota // the program failed: the frame is dropped and counted as aborted
	VerdictDrop                   // the frame is dropped
	VerdictPass                   // Recv gives the frame out
)

// Program looks at received frames in place before Recv gives them out.
type Program interface {
	// Run decides about the frames of bufs: verdicts[i] about bufs[i]. It may
	// change bytes, and move the start and end of the data inside the buffer
	// ([pagepool.XDPHeadroom] bytes of headroom are there). It runs on the
	// goroutine of Recv and must not keep the buffers.
	Run(bufs []*pagepool.Buf, verdicts []Verdict)
}
