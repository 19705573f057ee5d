// Package barrier orders the accesses that a driver in user space and a bus-mastering device make to the memory they
// share, and makes the single 32-bit accesses that such a driver needs: the ownership word of a descriptor and a device
// register. The Go memory model covers goroutines only and sync/atomic is no substitute: its stores are locked
// exchanges on x86 (a bus lock on an uncached mapping), LR and AMO on riscv64 and AM* on loong64 (which device memory
// need not support), and they order towards other processors, not towards a device.
//
// It imports nothing but, on ports without assembly, sync/atomic. It has no state, and every function may be called from
// any goroutine. Start reading at [DMARead], [DMAWrite] and [LoadOwn]: a receive ring needs those three and
// [DMARelease]. Encodings are in the .s file of each GOARCH, their judge is encoding_test.go.
//
// # Use
//
//	receive   LoadOwn of a batch, DMARead, other descriptor words and payload
//	refill    payload read, new descriptor bodies, DMARelease, StoreOwn
//	send      payload and descriptor bodies, DMAWrite, StoreOwn of the first descriptor, Store32 of the doorbell
//	re-arm    StoreOwn, DMAFull, load of the word in which the device says that it stopped
//	interrupt Load32 of the status register, then descriptors
//
// # Instructions
//
//	            amd64, 386       arm64                        riscv64            loong64
//	DMARead     none             DMB OSHLD                    FENCE ir,ir        DBAR 0x05
//	DMAWrite    none             DMB OSHST                    FENCE ow,ow        DBAR 0x0a
//	DMARelease  none             DMB OSH                      FENCE iorw,ow      DBAR 0x00
//	DMAFull     LOCK ADDL        DMB OSH                      FENCE iorw,iorw    DBAR 0x00
//	IORead      none             DMB OSHLD                    FENCE i,ir         DBAR 0x05
//	IOWrite     none             DMB OSHST                    FENCE w,o          DBAR 0x0a
//	LoadOwn     MOVL             LDR                          LW                 LD.W
//	StoreOwn    MOVL             STR                          SW                 ST.W
//	Load32      MOVL             DMB OSH, LDAR, DMB OSHLD     LW, FENCE i,ir     LD.W, DBAR 0x05
//	Store32     MOVL             DMB OSHST, STR               FENCE w,o, SW      DBAR 0x0a, ST.W, DBAR 0x0a
//
//	            arm, GOARM=7     arm, GOARM=6                 arm, GOARM=5, Linux            other
//	DMARead     DMB OSH          CP15 DMB                     __kuser_memory_barrier         fence
//	DMAWrite    DMB OSHST        CP15 DMB                     __kuser_memory_barrier         fence
//	DMARelease  DSB SY           CP15 DSB                     __kuser_memory_barrier         fence
//	DMAFull     DSB SY           CP15 DSB                     __kuser_memory_barrier         fence
//	IORead      DSB SY           CP15 DSB                     __kuser_memory_barrier         fence
//	IOWrite     DSB ST           CP15 DSB                     __kuser_memory_barrier         fence
//	LoadOwn     LDR              LDR                          LDR                            plain load
//	StoreOwn    STR              STR                          STR                            plain store
//	Load32      LDR, DSB SY      LDR, CP15 DSB                LDR, __kuser_memory_barrier    fence, plain load, fence
//	Store32     DSB ST, STR      CP15 DSB, STR                __kuser_memory_barrier, STR    fence, plain store, fence
//
// "none" is the call alone: the compiler keeps no memory access in flight across a call of a function that it cannot see
// into, and the x86 memory model (Intel SDM vol. 3, "Memory Ordering"; AMD APM vol. 2, "Memory System") keeps every pair
// of accesses but a store and a later load in order. CP15 DMB and DSB are MCR p15, 0, Rt, c7, c10, 5 and 4. "fence" is an atomic store and an
// atomic load of a private word: SYNC on ppc64x and mips*, BCR 14,0 on s390x. "other" includes arm with GOARM=5 outside
// Linux. The choices are those of Linux (asm/barrier.h, asm/io.h) for dma_rmb, dma_wmb, dma_mb, readl and writel, or
// stronger.
//
// # Limits
//
// Memory is taken to be write-back and coherent with the device, or uncached; device registers are taken to be mapped
// uncached. Write-combining mappings and non-temporal stores on x86 are not ordered by the functions that are empty
// there. On 32-bit arm with a PL310 outer cache Linux also drains that cache, which user space cannot do. A program built
// with GOARM=5 has only the kernel's helper, which orders towards other processors: enough for ARMv5 cores, which keep
// the order themselves, but not for an ARMv7 one; build with the GOARM of the machine. Words are in the byte order of the
// processor; nothing here swaps bytes.
//
// The build tag barrier_generic forces the "other" column on any GOARCH, to test it; it is too weak for a driver on
// riscv64, where atomics on memory do not order device accesses.
package barrier
