//go:build !barrier_generic

#include "textflag.h"

// The assembler's FENCE takes no operands. Word: 0x0f | predecessors<<24 | successors<<20, I=8 O=4 R=2 W=1.
#define FENCE_IR_IR WORD $0x0aa0000f
#define FENCE_OW_OW WORD $0x0550000f
#define FENCE_IORW_OW WORD $0x0f50000f
#define FENCE_I_IR WORD $0x08a0000f
#define FENCE_W_O WORD $0x0140000f

TEXT ·DMARead(SB), NOSPLIT, $0-0
	FENCE_IR_IR
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	FENCE_OW_OW
	RET

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	FENCE_IORW_OW
	RET

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	FENCE // iorw, iorw
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	FENCE_I_IR
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	FENCE_W_O
	RET

TEXT ·LoadOwn(SB), NOSPLIT, $0-12
	MOV p+0(FP), X10
	MOVW (X10), X10
	MOVW X10, ret+8(FP)
	RET

TEXT ·StoreOwn(SB), NOSPLIT, $0-12
	MOV p+0(FP), X10
	MOVW v+8(FP), X11
	MOVW X11, (X10)
	RET

TEXT ·Load32(SB), NOSPLIT, $0-12
	MOV p+0(FP), X10
	MOVW (X10), X10
	FENCE_I_IR
	MOVW X10, ret+8(FP)
	RET

TEXT ·Store32(SB), NOSPLIT, $0-12
	MOV p+0(FP), X10
	MOVW v+8(FP), X11
	FENCE_W_O
	MOVW X11, (X10)
	RET
