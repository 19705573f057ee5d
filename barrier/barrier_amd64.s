//go:build !barrier_generic

#include "textflag.h"

// Total store order: only a store and a later load may change places, so the call is barrier enough elsewhere.

TEXT ·DMARead(SB), NOSPLIT, $0-0
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	RET

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	RET

// LOCK ADDL orders write-back memory as MFENCE does, for a fraction of the time; MFENCE is stronger only for
// non-temporal and write-combined accesses, which the package does not cover. The word below SP is private to this
// thread; the word at SP is the return address, and RET would wait for it.
TEXT ·DMAFull(SB), NOSPLIT, $0-0
	LOCK
	ADDL $0, -4(SP)
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	RET

TEXT ·LoadOwn(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL (AX), AX
	MOVL AX, ret+8(FP)
	RET

TEXT ·StoreOwn(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

TEXT ·Load32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL (AX), AX
	MOVL AX, ret+8(FP)
	RET

TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET
