//go:build !barrier_generic

#include "textflag.h"

// Hints of DBAR, completion forms (bit 4 clear): a clear bit 3, 2, 1, 0 covers earlier loads, earlier stores, later loads,
// later stores.
#define FULL 0x00
#define LOADS 0x05
#define STORES 0x0a

TEXT ·DMARead(SB), NOSPLIT, $0-0
	DBAR $LOADS
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	DBAR $STORES
	RET

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	DBAR $FULL
	RET

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	DBAR $FULL
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	DBAR $LOADS
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	DBAR $STORES
	RET

TEXT ·LoadOwn(SB), NOSPLIT, $0-12
	MOVV p+0(FP), R4
	MOVW (R4), R4
	MOVW R4, ret+8(FP)
	RET

TEXT ·StoreOwn(SB), NOSPLIT, $0-12
	MOVV p+0(FP), R4
	MOVW v+8(FP), R5
	MOVW R5, (R4)
	RET

TEXT ·Load32(SB), NOSPLIT, $0-12
	MOVV p+0(FP), R4
	MOVW (R4), R4
	DBAR $LOADS
	MOVW R4, ret+8(FP)
	RET

// The barrier behind the store keeps it from mixing with stores of the next holder of a lock (Linux: mmiowb).
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVV p+0(FP), R4
	MOVW v+8(FP), R5
	DBAR $STORES
	MOVW R5, (R4)
	DBAR $STORES
	RET
