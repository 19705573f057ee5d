//go:build !barrier_generic

#include "textflag.h"

// CRm of DMB: outer shareable, as a device may be outside the inner domain; loads, stores or both.
#define OSHLD 1
#define OSHST 2
#define OSH 3

TEXT ·DMARead(SB), NOSPLIT, $0-0
	DMB $OSHLD
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	DMB $OSHST
	RET

// Load to store needs the full form: OSHST leaves loads alone, OSHLD earlier stores.
TEXT ·DMARelease(SB), NOSPLIT, $0-0
	DMB $OSH
	RET

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	DMB $OSH
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	DMB $OSHLD
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	DMB $OSHST
	RET

TEXT ·LoadOwn(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU (R0), R0
	MOVW R0, ret+8(FP)
	RET

TEXT ·StoreOwn(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVW R1, (R0)
	RET

// The first DMB is for NVIDIA Olympus erratum 1027, LDAR for Cortex-A57 erratum 832075: user space has no alternatives
// patching, and a register read costs far more than both.
TEXT ·Load32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	DMB $OSH
	LDARW (R0), R0
	DMB $OSHLD
	MOVW R0, ret+8(FP)
	RET

TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	DMB $OSHST
	MOVW R1, (R0)
	RET
