//go:build !barrier_generic && arm.7

#include "textflag.h"

// The assembler has no DSB.
#define DSB_SY WORD $0xf57ff04f
#define DSB_ST WORD $0xf57ff04e

TEXT ·DMARead(SB), NOSPLIT, $0-0
	DMB MB_OSH
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	DMB MB_OSHST
	RET

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	DSB_SY
	RET

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	DSB_SY
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	DSB_SY
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	DSB_ST
	RET

TEXT ·Load32(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW (R0), R0
	DSB_SY
	MOVW R0, ret+4(FP)
	RET

TEXT ·Store32(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW v+4(FP), R1
	DSB_ST
	MOVW R1, (R0)
	RET
