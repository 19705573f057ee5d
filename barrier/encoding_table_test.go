package barrier_test

// insn is one machine instruction: its encoding as hex digits, and the text that llvm-mc assembles to it. On x86 the digits
// are the bytes in memory order, elsewhere the value of the little-endian word. short and shortText are the compressed
// form of riscv64, of which the assembler may take either.
type insn struct{ enc, text, short, shortText string }

type code map[string][]insn

// target is one set of assembly files and all that they may assemble to.
type target struct {
	name         string
	goos, goarch string
	goarm        string
	llvm         []string // arguments of llvm-mc
	bytes        bool     // encodings are bytes in memory order
	padded       bool     // the assembler fills a function with zeros up to its alignment
	code         code
}

var targets = []target{
	{name: "amd64", goos: "linux", goarch: "amd64", llvm: []string{"--triple=x86_64"}, bytes: true, code: codeAMD64},
	{name: "amd64-windows", goos: "windows", goarch: "amd64", llvm: []string{"--triple=x86_64"}, bytes: true, code: codeAMD64},
	{name: "386", goos: "linux", goarch: "386", llvm: []string{"--triple=i386"}, bytes: true, code: code386},
	{name: "arm64", goos: "linux", goarch: "arm64", llvm: []string{"--triple=aarch64"}, padded: true, code: codeARM64},
	{name: "arm64-darwin", goos: "darwin", goarch: "arm64", llvm: []string{"--triple=aarch64"}, padded: true, code: codeARM64},
	{name: "arm7", goos: "linux", goarch: "arm", goarm: "7", llvm: []string{"--triple=armv7"}, code: codeARM7},
	{name: "arm6", goos: "linux", goarch: "arm", goarm: "6", llvm: []string{"--triple=armv6"}, code: codeARM6},
	{name: "arm6-netbsd", goos: "netbsd", goarch: "arm", goarm: "6", llvm: []string{"--triple=armv6"}, code: codeARM6},
	{name: "arm5", goos: "linux", goarch: "arm", goarm: "5", llvm: []string{"--triple=armv5te"}, code: codeARM5},
	{name: "riscv64", goos: "linux", goarch: "riscv64", llvm: []string{"--triple=riscv64"}, code: codeRISCV64},
	{name: "loong64", goos: "linux", goarch: "loong64", llvm: []string{"--triple=loongarch64"}, code: codeLOONG64},
}

var codeAMD64 = func() code {
	ret := insn{enc: "c3", text: "retq"}
	p := insn{enc: "488b442408", text: "movq 8(%rsp), %rax"}
	v := insn{enc: "8b4c2410", text: "movl 16(%rsp), %ecx"}
	load := []insn{p, {enc: "8b00", text: "movl (%rax), %eax"}, {enc: "89442410", text: "movl %eax, 16(%rsp)"}, ret}
	store := []insn{p, v, {enc: "8908", text: "movl %ecx, (%rax)"}, ret}
	return code{
		"DMARead":    {ret},
		"DMAWrite":   {ret},
		"DMARelease": {ret},
		"DMAFull":    {{enc: "f0", text: "lock"}, {enc: "834424fc00", text: "addl $0, -4(%rsp)"}, ret},
		"IORead":     {ret},
		"IOWrite":    {ret},
		"LoadOwn":    load,
		"StoreOwn":   store,
		"Load32":     load,
		"Store32":    store,
	}
}()

var code386 = func() code {
	ret := insn{enc: "c3", text: "retl"}
	p := insn{enc: "8b442404", text: "movl 4(%esp), %eax"}
	v := insn{enc: "8b4c2408", text: "movl 8(%esp), %ecx"}
	load := []insn{p, {enc: "8b00", text: "movl (%eax), %eax"}, {enc: "89442408", text: "movl %eax, 8(%esp)"}, ret}
	store := []insn{p, v, {enc: "8908", text: "movl %ecx, (%eax)"}, ret}
	return code{
		"DMARead":    {ret},
		"DMAWrite":   {ret},
		"DMARelease": {ret},
		"DMAFull":    {{enc: "f0", text: "lock"}, {enc: "834424fc00", text: "addl $0, -4(%esp)"}, ret},
		"IORead":     {ret},
		"IOWrite":    {ret},
		"LoadOwn":    load,
		"StoreOwn":   store,
		"Load32":     load,
		"Store32":    store,
	}
}()

var codeARM64 = func() code {
	ret := insn{enc: "d65f03c0", text: "ret"}
	p := insn{enc: "f94007e0", text: "ldr x0, [sp, #8]"}
	v := insn{enc: "b94013e1", text: "ldr w1, [sp, #16]"}
	result := insn{enc: "b90013e0", text: "str w0, [sp, #16]"}
	store := insn{enc: "b9000001", text: "str w1, [x0]"}
	osh := insn{enc: "d50333bf", text: "dmb osh"}
	oshld := insn{enc: "d50331bf", text: "dmb oshld"}
	oshst := insn{enc: "d50332bf", text: "dmb oshst"}
	return code{
		"DMARead":    {oshld, ret},
		"DMAWrite":   {oshst, ret},
		"DMARelease": {osh, ret},
		"DMAFull":    {osh, ret},
		"IORead":     {oshld, ret},
		"IOWrite":    {oshst, ret},
		"LoadOwn":    {p, {enc: "b9400000", text: "ldr w0, [x0]"}, result, ret},
		"StoreOwn":   {p, v, store, ret},
		"Load32":     {p, osh, {enc: "88dffc00", text: "ldar w0, [x0]"}, oshld, result, ret},
		"Store32":    {p, v, oshst, store, ret},
	}
}()

// Parts that every GOARM has.
var (
	armRet    = insn{enc: "e28ef000", text: "add pc, lr, #0"}
	armP      = insn{enc: "e59d0004", text: "ldr r0, [sp, #4]"}
	armV      = insn{enc: "e59d1008", text: "ldr r1, [sp, #8]"}
	armLoad   = insn{enc: "e5900000", text: "ldr r0, [r0]"}
	armStore  = insn{enc: "e5801000", text: "str r1, [r0]"}
	armResult = insn{enc: "e58d0008", text: "str r0, [sp, #8]"}
)

var codeARM7 = func() code {
	dsb := insn{enc: "f57ff04f", text: "dsb sy"}
	dsbst := insn{enc: "f57ff04e", text: "dsb st"}
	return code{
		"DMARead":    {{enc: "f57ff053", text: "dmb osh"}, armRet},
		"DMAWrite":   {{enc: "f57ff052", text: "dmb oshst"}, armRet},
		"DMARelease": {dsb, armRet},
		"DMAFull":    {dsb, armRet},
		"IORead":     {dsb, armRet},
		"IOWrite":    {dsbst, armRet},
		"LoadOwn":    {armP, armLoad, armResult, armRet},
		"StoreOwn":   {armP, armV, armStore, armRet},
		"Load32":     {armP, armLoad, dsb, armResult, armRet},
		"Store32":    {armP, armV, dsbst, armStore, armRet},
	}
}()

var codeARM6 = func() code {
	zero := insn{enc: "e3a00000", text: "mov r0, #0"}
	dmb := []insn{zero, {enc: "ee070fba", text: "mcr p15, #0, r0, c7, c10, #5"}, armRet}
	dsb := []insn{zero, {enc: "ee070f9a", text: "mcr p15, #0, r0, c7, c10, #4"}, armRet}
	return code{
		"DMARead":    dmb,
		"DMAWrite":   dmb,
		"DMARelease": dsb,
		"DMAFull":    dsb,
		"IORead":     dsb,
		"IOWrite":    dsb,
		"LoadOwn":    {armP, armLoad, armResult, armRet},
		"StoreOwn":   {armP, armV, armStore, armRet},
		"Load32": {armP, armLoad, {enc: "e3a01000", text: "mov r1, #0"},
			{enc: "ee071f9a", text: "mcr p15, #0, r1, c7, c10, #4"}, armResult, armRet},
		"Store32": {armP, armV, {enc: "e3a02000", text: "mov r2, #0"},
			{enc: "ee072f9a", text: "mcr p15, #0, r2, c7, c10, #4"}, armStore, armRet},
	}
}()

var codeARM5 = func() code {
	// The address of the helper is a literal behind the code, guarded by a branch to itself.
	helper := insn{enc: "e59f2004", text: "ldr r2, [pc, #4]"}
	jump := insn{enc: "e282f000", text: "add pc, r2, #0"}
	guard := insn{enc: "eafffffe", text: "b #-8"}
	literal := insn{enc: "ffff0fa0"}
	call := []insn{helper, jump, guard, literal}
	return code{
		"DMARead":    call,
		"DMAWrite":   call,
		"DMARelease": call,
		"DMAFull":    call,
		"IORead":     call,
		"IOWrite":    call,
		"LoadOwn":    {armP, armLoad, armResult, armRet},
		"StoreOwn":   {armP, armV, armStore, armRet},
		"Load32":     {armP, armLoad, armResult, helper, jump, guard, literal},
		"Store32": {
			{enc: "e52de004", text: "str lr, [sp, #-4]!"},
			{enc: "e59f2014", text: "ldr r2, [pc, #20]"},
			{enc: "e12fff32", text: "blx r2"},
			{enc: "e59d0008", text: "ldr r0, [sp, #8]"},
			{enc: "e59d100c", text: "ldr r1, [sp, #12]"},
			armStore,
			{enc: "e49df004", text: "ldr pc, [sp], #4"},
			guard, literal,
		},
	}
}()

var codeRISCV64 = func() code {
	ret := insn{enc: "00008067", text: "ret", short: "8082", shortText: "c.jr ra"}
	p := insn{enc: "00813503", text: "ld a0, 8(sp)", short: "6522", shortText: "c.ldsp a0, 8(sp)"}
	v := insn{enc: "01012583", text: "lw a1, 16(sp)", short: "45c2", shortText: "c.lwsp a1, 16(sp)"}
	load := insn{enc: "00052503", text: "lw a0, 0(a0)", short: "4108", shortText: "c.lw a0, 0(a0)"}
	store := insn{enc: "00b52023", text: "sw a1, 0(a0)", short: "c10c", shortText: "c.sw a1, 0(a0)"}
	result := insn{enc: "00a12823", text: "sw a0, 16(sp)", short: "c82a", shortText: "c.swsp a0, 16(sp)"}
	iir := insn{enc: "08a0000f", text: "fence i, ir"}
	wo := insn{enc: "0140000f", text: "fence w, o"}
	return code{
		"DMARead":    {{enc: "0aa0000f", text: "fence ir, ir"}, ret},
		"DMAWrite":   {{enc: "0550000f", text: "fence ow, ow"}, ret},
		"DMARelease": {{enc: "0f50000f", text: "fence iorw, ow"}, ret},
		"DMAFull":    {{enc: "0ff0000f", text: "fence iorw, iorw"}, ret},
		"IORead":     {iir, ret},
		"IOWrite":    {wo, ret},
		"LoadOwn":    {p, load, result, ret},
		"StoreOwn":   {p, v, store, ret},
		"Load32":     {p, load, iir, result, ret},
		"Store32":    {p, v, wo, store, ret},
	}
}()

var codeLOONG64 = func() code {
	ret := insn{enc: "4c000020", text: "ret"}
	p := insn{enc: "28c02064", text: "ld.d $a0, $sp, 8"}
	v := insn{enc: "28804065", text: "ld.w $a1, $sp, 16"}
	load := insn{enc: "28800084", text: "ld.w $a0, $a0, 0"}
	store := insn{enc: "29800085", text: "st.w $a1, $a0, 0"}
	result := insn{enc: "29804064", text: "st.w $a0, $sp, 16"}
	full := insn{enc: "38720000", text: "dbar 0"}
	loads := insn{enc: "38720005", text: "dbar 5"}
	stores := insn{enc: "3872000a", text: "dbar 10"}
	return code{
		"DMARead":    {loads, ret},
		"DMAWrite":   {stores, ret},
		"DMARelease": {full, ret},
		"DMAFull":    {full, ret},
		"IORead":     {loads, ret},
		"IOWrite":    {stores, ret},
		"LoadOwn":    {p, load, result, ret},
		"StoreOwn":   {p, v, store, ret},
		"Load32":     {p, load, loads, result, ret},
		"Store32":    {p, v, stores, store, stores, ret},
	}
}()
