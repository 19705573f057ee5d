//go:build !barrier_generic && arm.6 && !arm.7

#include "textflag.h"

// ARMv6 has its barriers in CP15, open to user mode; the register must hold zero. The kernel's helper would not do: it is
// a barrier between processors, patched out on a machine with one.
#define CP15DMB(r) MCR 15, 0, r, C7, C10, 5
#define CP15DSB(r) MCR 15, 0, r, C7, C10, 4

TEXT ·DMARead(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DMB(R0)
	RET

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DMB(R0)
	RET

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DSB(R0)
	RET

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DSB(R0)
	RET

TEXT ·IORead(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DSB(R0)
	RET

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	MOVW $0, R0
	CP15DSB(R0)
	RET

TEXT ·Load32(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW (R0), R0
	MOVW $0, R1
	CP15DSB(R1)
	MOVW R0, ret+4(FP)
	RET

TEXT ·Store32(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW v+4(FP), R1
	MOVW $0, R2
	CP15DSB(R2)
	MOVW R1, (R0)
	RET
