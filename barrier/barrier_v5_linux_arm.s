//go:build !barrier_generic && !arm.6

#include "textflag.h"

// ARMv5 cores keep the order of their accesses (Linux: only compiler barriers there), and CP15 is closed to user mode.
// __kuser_memory_barrier (Documentation/arch/arm/kernel_user_helpers.rst), which the Go runtime calls as well, is for a
// program that runs on a later core; it changes no register, so it is jumped to.
#define KUSER 0xffff0fa0

TEXT ·DMARead(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·DMAWrite(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·DMARelease(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·DMAFull(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·IORead(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·IOWrite(SB), NOSPLIT, $0-0
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·Load32(SB), NOSPLIT, $0-8
	MOVW p+0(FP), R0
	MOVW (R0), R0
	MOVW R0, ret+4(FP)
	MOVW $KUSER, R2
	JMP (R2)

TEXT ·Store32(SB), NOSPLIT, $0-8
	MOVW $KUSER, R2
	CALL (R2)
	MOVW p+0(FP), R0
	MOVW v+4(FP), R1
	MOVW R1, (R0)
	RET
