package core

const (
	// flowLeast is the smallest receive queue that can ask for pauses: a smaller
	// one has no thresholds in the databook.
	flowLeast = 4096
	// flowReaction is what a partner may send between the end of a pause frame
	// and its effect, in bytes: two slots of 512 bit times at 1 Gbit/s (IEEE
	// 802.3 annex 31B), and what is on the cable and in the PHYs.
	flowReaction = 512
	// PauseTime is the time that a pause frame asks for, in slots of 512 bit
	// times. A frame with time 0 ends it when the queue has room again.
	PauseTime = 0xffff
)

// FlowThresholds says where a receive queue of size bytes asks for a pause and
// where it ends it, in bytes below its end, multiples of step and at most last;
// both are 0 if the queue is too small for pauses to save anything, or if what
// they need lies behind last. Frames have at most frame bytes with FCS.
//
// A pause is asked for while there is still room for what comes before the
// partner stops: the frame that it is sending, what it sends until it has seen
// the request, and, since the request waits for a frame that this MAC is
// sending, one more. A queue that would then pause with less than two frames in
// it keeps room for the first only. The partner goes on when another frame has
// left, or half of what was there.
func FlowThresholds(size, frame, step, last int) (stop, start int) {
	if size < flowLeast {
		return 0, 0
	}
	// The partner does not know of a small MTU here.
	frame = max(frame, MaxFrameLen(1500))
	one := roundUp(frame, step)
	stop = max(one, min(roundUp(2*frame+flowReaction, step), (size-2*frame)/step*step))
	if size-stop < 2*step {
		return 0, 0
	}
	start = stop + max(step, min(one, (size-stop)/2/step*step))
	if start > last {
		return 0, 0
	}
	return stop, start
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
