//go:build !barrier_generic && (386 || amd64 || arm64 || loong64 || riscv64 || (arm && (arm.6 || linux)))

package barrier

// DMARead orders earlier loads (the OWN word that a device cleared) before later loads (the other words of the
// descriptor, the payload). Linux: dma_rmb.
//
// amd64, 386: none; arm64: DMB OSHLD; arm: DMB OSH (GOARM=6 CP15 DMB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE ir,ir; loong64: DBAR 0x05; other: fence.
func DMARead()

// DMAWrite orders earlier stores (payload, descriptor bodies) before later stores (the OWN word that hands a descriptor
// to the device). It does not order an earlier load: see [DMARelease]. Linux: dma_wmb.
//
// amd64, 386: none; arm64: DMB OSHST; arm: DMB OSHST (GOARM=6 CP15 DMB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE ow,ow; loong64: DBAR 0x0a; other: fence.
func DMAWrite()

// DMARelease orders earlier loads and stores (the read of a received payload, the body of the refilled descriptor)
// before later stores (the OWN word that gives the buffer back to the device). It does not order a later load: see
// [DMAFull]. Linux has no weaker name for it than dma_mb.
//
// amd64, 386: none; arm64: DMB OSH; arm: DSB SY (GOARM=6 CP15 DSB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE iorw,ow; loong64: DBAR 0x00; other: fence.
func DMARelease()

// DMAFull orders all earlier loads and stores before all later ones. It is needed only between an earlier store (OWN) and
// a later load (whether the device stopped). Linux: dma_mb.
//
// amd64, 386: LOCK ADDL; arm64: DMB OSH; arm: DSB SY (GOARM=6 CP15 DSB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE iorw,iorw; loong64: DBAR 0x00; other: fence.
func DMAFull()

// IORead orders an earlier load of a device register (a status register) before later loads of memory (the descriptors
// that the status speaks of). [Load32] contains it. Linux: __io_ar.
//
// amd64, 386: none; arm64: DMB OSHLD; arm: DSB SY (GOARM=6 CP15 DSB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE i,ir; loong64: DBAR 0x05; other: fence.
func IORead()

// IOWrite orders earlier stores to memory (the OWN word) before a later store to a device register (the doorbell).
// [Store32] contains it. Linux: __io_bw.
//
// amd64, 386: none; arm64: DMB OSHST; arm: DSB ST (GOARM=6 CP15 DSB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE w,o; loong64: DBAR 0x0a; other: fence.
func IOWrite()

// LoadOwn loads the ownership word at p: one 32-bit load, never merged, split or elided, and no ordering. Follow the
// loads of a batch with one [DMARead]. p must be a multiple of 4.
//
// amd64, 386: MOVL; arm64, arm: LDR; riscv64: LW; loong64: LD.W; other: plain load.
//
//go:noescape
func LoadOwn(p *uint32) uint32

// StoreOwn stores v into the ownership word at p: one 32-bit store, never merged with a neighbour, and no ordering.
// Precede the stores of a batch with one [DMAWrite] or [DMARelease]. p must be a multiple of 4.
//
// amd64, 386: MOVL; arm64, arm: STR; riscv64: SW; loong64: ST.W; other: plain store.
//
//go:noescape
func StoreOwn(p *uint32, v uint32)

// Load32 loads the device register at p: one 32-bit load, ordered before later loads of memory and of registers (Linux:
// readl). p must be a multiple of 4. On arm64 it is a load-acquire (Cortex-A57 erratum 832075) after a full barrier
// (NVIDIA Olympus erratum 1027: a register load may pass an earlier register store).
//
// amd64, 386: MOVL; arm64: DMB OSH, LDAR, DMB OSHLD; arm: LDR, DSB SY (GOARM=6 CP15 DSB, GOARM=5
// __kuser_memory_barrier); riscv64: LW, FENCE i,ir; loong64: LD.W, DBAR 0x05; other: fence, plain load, fence.
//
//go:noescape
func Load32(p *uint32) uint32

// Store32 stores v into the device register at p: one 32-bit store, ordered after earlier stores to memory (Linux:
// writel). p must be a multiple of 4. The store may be posted: it has reached the device for certain only after a
// [Load32] from that device.
//
// amd64, 386: MOVL; arm64: DMB OSHST, STR; arm: DSB ST, STR (GOARM=6 CP15 DSB, GOARM=5 __kuser_memory_barrier);
// riscv64: FENCE w,o, SW; loong64: DBAR 0x0a, ST.W, DBAR 0x0a; other: fence, plain store, fence.
//
//go:noescape
func Store32(p *uint32, v uint32)
