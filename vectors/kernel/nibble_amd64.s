#include "textflag.h"

// Inner products of int8 codes with rows of nibbles, with AVX2 and AVX-512 VNNI, and codes put together of their nibbles.
//
// The lists of rows are worked on in groups of four. R8 to R11 point to the rows of a group; CX, DX, R14 and R15 to
// those of a group that is AHEAD rows behind it, whose memory is fetched meanwhile; R13 is the number of its first row.
// Behind the end of the list stands its last row again: it costs little, as it is in the cache, and is not stored.
//
// Memory is fetched into the cache of the second level: more such requests can be under way than into the first.

// AHEAD is how many rows before their use memory is fetched, a multiple of 4. Fewer leave the memory idle.
#define AHEAD 16

// NUMBER sets reg to the number of the row that is k behind R13, at most count-1, which is in R12.
#define NUMBER(k, reg) \
	LEAQ    k(R13), reg \
	CMPQ    reg, R12    \
	CMOVQGT R12, reg

// LISTED makes the number of a row the one that the list at DI has there.
#define LISTED(reg) \
	MOVL (DI)(reg*4), reg

// ADDRESS makes a pointer of the number of a row.
#define ADDRESS(reg) \
	IMULQ stride+24(FP), reg \
	ADDQ  plane+16(FP), reg

// ROWS sets four registers to the rows that begin k behind row R13; skip is a label. R12 becomes count-1, and DI ids.
#define ROWS(k, a, b, c, d, skip) \
	MOVQ  count+40(FP), R12 \
	DECQ  R12               \
	NUMBER(k, a)            \
	NUMBER(k+1, b)          \
	NUMBER(k+2, c)          \
	NUMBER(k+3, d)          \
	MOVQ  ids+32(FP), DI    \
	TESTQ DI, DI            \
	JZ    skip              \
	LISTED(a)               \
	LISTED(b)               \
	LISTED(c)               \
	LISTED(d)               \
skip:                       \
	ADDRESS(a)              \
	ADDRESS(b)              \
	ADDRESS(c)              \
	ADDRESS(d)

#define FETCH \
	PREFETCHT1 (CX)(AX*1)  \
	PREFETCHT1 (DX)(AX*1)  \
	PREFETCHT1 (R14)(AX*1) \
	PREFETCHT1 (R15)(AX*1)

// FIRST fetches the first AHEAD rows, as far as there are so many, and leaves R13 at 0.
#define FIRST(group, skip, line, done) \
	XORQ R13, R13                          \
group:                                   \
	ROWS(0, CX, DX, R14, R15, skip)        \
	XORQ AX, AX                            \
line:                                    \
	FETCH                                  \
	ADDQ $64, AX                           \
	CMPQ AX, n+8(FP)                       \
	JLT  line                              \
	ADDQ $4, R13                           \
	CMPQ R13, R12                          \
	JGT  done                              \
	CMPQ R13, $AHEAD                       \
	JLT  group                             \
done:                                    \
	XORQ R13, R13

// FOURSUMS leaves the sums of the lanes of Y0 to Y3 in X0.
#define FOURSUMS \
	VPHADDD      Y1, Y0, Y0 \
	VPHADDD      Y3, Y2, Y2 \
	VPHADDD      Y2, Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1 \
	VPADDD       X1, X0, X0

// VNNI multiplies unsigned bytes with signed ones. The upper nibbles need no shift: as they stand they are 16 times
// what they mean, and so are their sums, which are kept apart.

// NIBBLES adds to low and high the products of 128 components, those of q in Z8 and Z9.
#define NIBBLES(row, tmp, low, high) \
	VPANDD   (row)(AX*1), Z30, tmp \
	VPDPBUSD Z8, tmp, low          \
	VPANDD   (row)(AX*1), Z31, tmp \
	VPDPBUSD Z9, tmp, high

#define NIBBLESFOUR \
	VMOVDQU8 (SI)(AX*2), Z8   \
	VMOVDQU8 64(SI)(AX*2), Z9 \
	NIBBLES(R8, Z10, Z0, Z4)  \
	NIBBLES(R9, Z11, Z1, Z5)  \
	NIBBLES(R10, Z12, Z2, Z6) \
	NIBBLES(R11, Z13, Z3, Z7) \
	ADDQ     $64, AX

// FOLD adds a sixteenth of the sums in high to those in z, and the upper half of these to the lower one.
#define FOLD(high, z, y) \
	VPSRAD        $4, high, high \
	VPADDD        high, z, z     \
	VEXTRACTI64X4 $1, z, Y10     \
	VPADDD        Y10, y, y

// func dotsNibblesAVX512(q *int8, n int, plane *byte, stride int, ids *uint32, count int, out *int32)
TEXT ·dotsNibblesAVX512(SB), NOSPLIT, $0-56
	MOVQ         q+0(FP), SI
	MOVL         $0x0f0f0f0f, AX
	VPBROADCASTD AX, Z30
	VPSLLD       $4, Z30, Z31
	FIRST(fetch, fetchListed, fetchLine, fetched)
	MOVQ         n+8(FP), BX

group:
	ROWS(0, R8, R9, R10, R11, listed)
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	XORQ   AX, AX
	LEAQ   AHEAD(R13), DI
	CMPQ   DI, R12
	JGT    near
	ROWS(AHEAD, CX, DX, R14, R15, listedAhead)

chunk:
	FETCH
	NIBBLESFOUR
	CMPQ AX, BX
	JLT  chunk
	JMP  sums

	// What is behind has been fetched: the same without.
near:
	NIBBLESFOUR
	CMPQ AX, BX
	JLT  near

sums:
	FOLD(Z4, Z0, Y0)
	FOLD(Z5, Z1, Y1)
	FOLD(Z6, Z2, Y2)
	FOLD(Z7, Z3, Y3)
	FOURSUMS

	// R12 is count-1; R13 becomes the row behind this group.
	MOVQ    out+48(FP), DI
	ADDQ    $4, R13
	INCQ    R12
	CMPQ    R13, R12
	JGT     last
	VMOVDQU X0, -16(DI)(R13*4)
	JLT     group
	VZEROUPPER
	RET

last:
	MOVQ      $15, AX
	SUBQ      R12, R13
	XCHGQ     R13, CX
	SHRQ      CX, AX
	KMOVQ     AX, K2
	SUBQ      $4, R12
	ADDQ      CX, R12
	VMOVDQU32 X0, K2, (DI)(R12*4)
	VZEROUPPER
	RET

// func scanNibblesAVX512(q *int8, n int, plane *byte, stride int, count int, out *int32)
TEXT ·scanNibblesAVX512(SB), NOSPLIT, $0-48
	MOVQ         q+0(FP), SI
	MOVQ         n+8(FP), BX
	MOVQ         plane+16(FP), R8
	MOVQ         stride+24(FP), R13
	MOVQ         count+32(FP), R12
	MOVQ         out+40(FP), DI
	MOVL         $0x0f0f0f0f, AX
	VPBROADCASTD AX, Z30
	VPSLLD       $4, Z30, Z31

group:
	LEAQ   (R8)(R13*1), R9
	LEAQ   (R8)(R13*2), R10
	LEAQ   (R9)(R13*2), R11
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	XORQ   AX, AX

chunk:
	NIBBLESFOUR
	CMPQ AX, BX
	JLT  chunk
	FOLD(Z4, Z0, Y0)
	FOLD(Z5, Z1, Y1)
	FOLD(Z6, Z2, Y2)
	FOLD(Z7, Z3, Y3)
	FOURSUMS
	VMOVDQU X0, (DI)
	ADDQ    $16, DI
	LEAQ    (R8)(R13*4), R8
	SUBQ    $4, R12
	JGT     group
	VZEROUPPER
	RET

// The numbers of sixteen lanes.
DATA numbers<>+0(SB)/8, $0x0000000100000000
DATA numbers<>+8(SB)/8, $0x0000000300000002
DATA numbers<>+16(SB)/8, $0x0000000500000004
DATA numbers<>+24(SB)/8, $0x0000000700000006
DATA numbers<>+32(SB)/8, $0x0000000900000008
DATA numbers<>+40(SB)/8, $0x0000000b0000000a
DATA numbers<>+48(SB)/8, $0x0000000d0000000c
DATA numbers<>+56(SB)/8, $0x0000000f0000000e
GLOBL numbers<>(SB), RODATA|NOPTR, $64

// func siftAVX512(dots, norms *int32, count int, ratio int64, shift int, add, limit int32, below *uint32) int
TEXT ·siftAVX512(SB), NOSPLIT, $0-64
	MOVQ         dots+0(FP), SI
	MOVQ         norms+8(FP), DX
	MOVQ         count+16(FP), BX
	VPBROADCASTQ ratio+24(FP), Z15
	VMOVQ        shift+32(FP), X14
	MOVL         add+40(FP), AX
	VPBROADCASTD AX, Z13
	MOVL         limit+44(FP), AX
	VPBROADCASTD AX, Z12
	MOVQ         below+48(FP), DI
	VMOVDQU32    numbers<>(SB), Z11
	MOVL         $16, AX
	VPBROADCASTD AX, Z10
	MOVL         $0xaaaa, AX
	KMOVW        AX, K2
	XORQ         AX, AX
	XORQ         R8, R8

sixteen:
	// The norms times the ratio, those of even lanes and those of odd ones, by 2^16.
	VMOVDQU32   (DX)(AX*4), Z0
	VPSRLQ      $32, Z0, Z1
	VPMULDQ     Z15, Z0, Z0
	VPMULDQ     Z15, Z1, Z1
	VPSRAQ      $16, Z0, Z0
	VPSLLQ      $16, Z1, Z1
	VMOVDQA32   Z1, K2, Z0
	VMOVDQU32   (SI)(AX*4), Z2
	VPSLLD      X14, Z2, Z2
	VPSUBD      Z2, Z0, Z0
	VPADDD      Z13, Z0, Z0
	VMOVDQU32   Z0, (SI)(AX*4)
	VPCMPD      $2, Z12, Z0, K1
	VPCOMPRESSD Z11, K1, Z3
	VMOVDQU32   Z3, (DI)(R8*4)        // R8 is at most AX
	KMOVW       K1, CX
	POPCNTL     CX, CX
	ADDQ        CX, R8
	VPADDD      Z10, Z11, Z11
	ADDQ        $16, AX
	CMPQ        AX, BX
	JLT         sixteen
	MOVQ        R8, ret+56(FP)
	VZEROUPPER
	RET

// PAIRS adds to acc the products of 64 components at d behind AX, those of q in Y8 and Y9: two products of a nibble and
// a component, and two such sums, fit into 16 bits.
#define PAIRS(d, row, acc) \
	VMOVDQU    d(row)(AX*1), Y10 \
	VPSRLW     $4, Y10, Y11      \
	VPAND      Y14, Y10, Y10     \
	VPAND      Y14, Y11, Y11     \
	VPMADDUBSW Y8, Y10, Y10      \
	VPMADDUBSW Y9, Y11, Y11      \
	VPADDW     Y11, Y10, Y10     \
	VPMADDWD   Y15, Y10, Y10     \
	VPADDD     Y10, acc, acc

#define PAIRSFOUR(d) \
	VMOVDQU d(SI)(AX*2), Y8     \
	VMOVDQU 64+d(SI)(AX*2), Y9  \
	PAIRS(d, R8, Y0)            \
	PAIRS(d, R9, Y1)            \
	PAIRS(d, R10, Y2)           \
	PAIRS(d, R11, Y3)

// func dotsNibblesAVX2(q *int8, n int, plane *byte, stride int, ids *uint32, count int, out *int32)
TEXT ·dotsNibblesAVX2(SB), NOSPLIT, $0-56
	MOVQ         q+0(FP), SI
	MOVL         $0x0f0f0f0f, AX
	VMOVD        AX, X14
	VPBROADCASTD X14, Y14
	MOVL         $0x00010001, AX
	VMOVD        AX, X15
	VPBROADCASTD X15, Y15
	FIRST(fetch, fetchListed, fetchLine, fetched)
	MOVQ         n+8(FP), BX

group:
	ROWS(0, R8, R9, R10, R11, listed)
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	XORQ  AX, AX
	LEAQ  AHEAD(R13), DI
	CMPQ  DI, R12
	JGT   near
	ROWS(AHEAD, CX, DX, R14, R15, listedAhead)

chunk:
	FETCH
	PAIRSFOUR(0)
	PAIRSFOUR(32)
	ADDQ $64, AX
	CMPQ AX, BX
	JLT  chunk
	JMP  sums

	// What is behind has been fetched: the same without.
near:
	PAIRSFOUR(0)
	PAIRSFOUR(32)
	ADDQ $64, AX
	CMPQ AX, BX
	JLT  near

sums:
	FOURSUMS

	// R12 is count-1; R13 becomes the row behind this group.
	MOVQ    out+48(FP), DI
	ADDQ    $4, R13
	INCQ    R12
	CMPQ    R13, R12
	JGT     last
	VMOVDQU X0, -16(DI)(R13*4)
	JLT     group
	VZEROUPPER
	RET

last:
	// One to three rows are left: R13-3 is the number of the second, R13-2 that of the third.
	VMOVD   X0, -16(DI)(R13*4)
	SUBQ    $3, R13
	CMPQ    R13, R12
	JGE     done
	VPEXTRD $1, X0, (DI)(R13*4)
	INCQ    R13
	CMPQ    R13, R12
	JGE     done
	VPEXTRD $2, X0, (DI)(R13*4)

done:
	VZEROUPPER
	RET

// HALF joins 32 bytes of nibbles that begin off behind those of a block: Y13 has lower nibbles, Y14 upper ones, Y15 signs.
#define HALF(off) \
	VMOVDQU off(SI), Y0        \
	VMOVDQU (DX), Y1           \
	VPAND   Y13, Y0, Y2        \
	VPSLLW  $4, Y2, Y2         \
	VPAND   Y13, Y1, Y3        \
	VPOR    Y2, Y3, Y2         \
	VPXOR   Y15, Y2, Y2        \
	VMOVDQU Y2, off(DI)        \
	VPAND   Y14, Y0, Y4        \
	VPSRLW  $4, Y1, Y5         \
	VPAND   Y13, Y5, Y5        \
	VPOR    Y4, Y5, Y4         \
	VPXOR   Y15, Y4, Y4        \
	VMOVDQU Y4, (off + 64)(DI) \
	ADDQ    R8, DX

// func joinNibblesAVX2(code *int8, high, low *byte, n, step int)
TEXT ·joinNibblesAVX2(SB), NOSPLIT, $0-40
	MOVQ         code+0(FP), DI
	MOVQ         high+8(FP), SI
	MOVQ         low+16(FP), DX
	MOVQ         n+24(FP), CX
	MOVQ         step+32(FP), R8
	SHLQ         $5, R8
	MOVL         $0x0f0f0f0f, AX
	VMOVD        AX, X13
	VPBROADCASTD X13, Y13
	VPSLLW       $4, Y13, Y14
	MOVL         $0x80808080, AX
	VMOVD        AX, X15
	VPBROADCASTD X15, Y15

block:
	HALF(0)
	HALF(32)
	ADDQ $64, SI
	ADDQ $128, DI
	SUBQ $64, CX
	JNZ  block
	VZEROUPPER
	RET
