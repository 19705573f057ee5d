//go:build !barrier_generic && (arm.6 || linux)

#include "textflag.h"

TEXT ·LoadOwn(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW (R0), R0
	MOVW R0, ret+4(FP)
	RET

TEXT ·StoreOwn(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW v+4(FP), R1
	MOVW R1, (R0)
	RET
