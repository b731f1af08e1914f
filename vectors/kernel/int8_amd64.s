#include "textflag.h"

// Inner products of int8 codes, with AVX2 and AVX-512 VNNI.
//
// The lists of rows are worked on in groups of four. R8 to R11 point to the rows of a group; CX, DX, R14 and R15 to
// those of a group that is AHEAD rows behind it, whose memory is fetched meanwhile; R13 is the number of its first row.
// Behind the end of the list stands its last row again: it costs little, as it is in the cache, and is not stored.
//
// Memory is fetched into the cache of the second level: more such requests can be under way than into the first.

// AHEAD is how many rows before their use memory is fetched, a multiple of 4. Fewer leave the memory idle.
#define AHEAD 12

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
	ADDQ  codes+16(FP), reg

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

// VNNI multiplies unsigned bytes with signed ones, so 128 is added to each component of a row, by flipping its upper
// bit, and 128 times the sum of q is taken from the result.

// FLIPPED adds to acc the products of 64 components, those of q in Z8.
#define FLIPPED(row, tmp, acc) \
	VPXORD   (row)(AX*1), Z30, tmp \
	VPDPBUSD Z8, tmp, acc

// FLIPPEDTAIL does so with those that are in the mask K1.
#define FLIPPEDTAIL(row, tmp, acc) \
	VMOVDQU8.Z (row)(AX*1), K1, tmp \
	VPXORD     Z30, tmp, tmp        \
	VPDPBUSD   Z8, tmp, acc

// FOLD adds the upper half of a register to the lower one.
#define FOLD(z, y) \
	VEXTRACTI64X4 $1, z, Y9 \
	VPADDD        Y9, y, y

// CONSTANTS sets Z30 to bytes of 128, Z31 to bytes of 1, and K1 to the mask of n%64 bytes; it changes AX, BX and CX.
// n is in BX, and becomes a multiple of 64.
#define CONSTANTS \
	MOVL         $0x80808080, AX \
	VPBROADCASTD AX, Z30         \
	MOVL         $0x01010101, AX \
	VPBROADCASTD AX, Z31         \
	MOVQ         BX, CX          \
	ANDQ         $63, CX         \
	MOVQ         $1, AX          \
	SHLQ         CX, AX          \
	DECQ         AX              \
	KMOVQ        AX, K1          \
	ANDQ         $~63, BX

// func dotInt8AVX512(a, b *int8, n int) int32
TEXT ·dotInt8AVX512(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), R8
	MOVQ   n+16(FP), BX
	CONSTANTS
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	XORQ   AX, AX
	MOVQ   BX, DX
	ANDQ   $~127, DX
	JMP    pairs

pair:
	VMOVDQU8 (SI)(AX*1), Z8
	FLIPPED(R8, Z9, Z0)
	VPDPBUSD Z8, Z31, Z1
	VMOVDQU8 64(SI)(AX*1), Z8
	VPXORD   64(R8)(AX*1), Z30, Z10
	VPDPBUSD Z8, Z10, Z2
	VPDPBUSD Z8, Z31, Z3
	ADDQ     $128, AX

pairs:
	CMPQ AX, DX
	JLT  pair
	CMPQ AX, BX
	JGE  tail
	VMOVDQU8 (SI)(AX*1), Z8
	FLIPPED(R8, Z9, Z0)
	VPDPBUSD Z8, Z31, Z1
	ADDQ     $64, AX

tail:
	KTESTQ     K1, K1
	JZ         sums
	VMOVDQU8.Z (SI)(AX*1), K1, Z8
	FLIPPEDTAIL(R8, Z10, Z2)
	VPDPBUSD   Z8, Z31, Z3

sums:
	VPADDD       Z2, Z0, Z0
	VPADDD       Z3, Z1, Z1
	VPSLLD       $7, Z1, Z1
	VPSUBD       Z1, Z0, Z0
	FOLD(Z0, Y0)
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+24(FP)
	VZEROUPPER
	RET

// func dotsInt8AVX512(q *int8, n int, codes *int8, stride int, ids *uint32, count int, out *int32)
TEXT ·dotsInt8AVX512(SB), NOSPLIT, $0-56
	MOVQ q+0(FP), SI
	MOVQ n+8(FP), BX
	CONSTANTS
	FIRST(fetch, fetchListed, fetchLine, fetched)

	// X7 becomes 128 times the sum of q, four times.
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	XORQ   AX, AX
	MOVQ   BX, DX
	ANDQ   $~127, DX
	JMP    pairsOfQ

pairOfQ:
	VPDPBUSD (SI)(AX*1), Z31, Z0
	VPDPBUSD 64(SI)(AX*1), Z31, Z1
	ADDQ     $128, AX

pairsOfQ:
	CMPQ     AX, DX
	JLT      pairOfQ
	CMPQ     AX, BX
	JGE      tailOfQ
	VPDPBUSD (SI)(AX*1), Z31, Z0
	ADDQ     $64, AX

tailOfQ:
	KTESTQ     K1, K1
	JZ         offset
	VMOVDQU8.Z (SI)(AX*1), K1, Z8
	VPDPBUSD   Z8, Z31, Z1

offset:
	VPADDD       Z1, Z0, Z0
	FOLD(Z0, Y0)
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPADDD       X1, X0, X0
	VPSLLD       $7, X0, X7

group:
	ROWS(0, R8, R9, R10, R11, listed)
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	XORQ   AX, AX
	LEAQ   AHEAD(R13), DI
	CMPQ   DI, R12
	JGT    nears
	ROWS(AHEAD, CX, DX, R14, R15, listedAhead)
	JMP    chunks

chunk:
	FETCH
	VMOVDQU8 (SI)(AX*1), Z8
	FLIPPED(R8, Z9, Z0)
	FLIPPED(R9, Z10, Z1)
	FLIPPED(R10, Z11, Z2)
	FLIPPED(R11, Z12, Z3)
	ADDQ     $64, AX

chunks:
	CMPQ   AX, BX
	JLT    chunk
	KTESTQ K1, K1
	JZ     sums
	FETCH
	JMP    tail

	// What is behind has been fetched: the same without.
near:
	VMOVDQU8 (SI)(AX*1), Z8
	FLIPPED(R8, Z9, Z0)
	FLIPPED(R9, Z10, Z1)
	FLIPPED(R10, Z11, Z2)
	FLIPPED(R11, Z12, Z3)
	ADDQ     $64, AX

nears:
	CMPQ   AX, BX
	JLT    near
	KTESTQ K1, K1
	JZ     sums

tail:
	VMOVDQU8.Z (SI)(AX*1), K1, Z8
	FLIPPEDTAIL(R8, Z9, Z0)
	FLIPPEDTAIL(R9, Z10, Z1)
	FLIPPEDTAIL(R10, Z11, Z2)
	FLIPPEDTAIL(R11, Z12, Z3)

sums:
	FOLD(Z0, Y0)
	FOLD(Z1, Y1)
	FOLD(Z2, Y2)
	FOLD(Z3, Y3)
	FOURSUMS
	VPSUBD X7, X0, X0

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

// WIDENED adds to acc the products of 16 components at d behind AX, those of q in Y8 as int16.
#define WIDENED(d, row, tmp, acc) \
	VPMOVSXBW d(row)(AX*1), tmp \
	VPMADDWD  Y8, tmp, tmp      \
	VPADDD    tmp, acc, acc

#define WIDENEDFOUR(d) \
	VPMOVSXBW d(SI)(AX*1), Y8 \
	WIDENED(d, R8, Y9, Y0)    \
	WIDENED(d, R9, Y10, Y1)   \
	WIDENED(d, R10, Y11, Y2)  \
	WIDENED(d, R11, Y12, Y3)

// func dotInt8AVX2(a, b *int8, n int) int32
TEXT ·dotInt8AVX2(SB), NOSPLIT, $0-28
	MOVQ  a+0(FP), SI
	MOVQ  b+8(FP), R8
	MOVQ  n+16(FP), BX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	XORQ  AX, AX
	MOVQ  BX, DX
	ANDQ  $~31, DX
	JMP   pairs

pair:
	VPMOVSXBW (SI)(AX*1), Y8
	WIDENED(0, R8, Y9, Y0)
	VPMOVSXBW 16(SI)(AX*1), Y8
	WIDENED(16, R8, Y10, Y1)
	ADDQ      $32, AX

pairs:
	CMPQ AX, DX
	JLT  pair
	CMPQ AX, BX
	JGE  sums
	VPMOVSXBW (SI)(AX*1), Y8
	WIDENED(0, R8, Y9, Y0)

sums:
	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+24(FP)
	VZEROUPPER
	RET

// func dotsInt8AVX2(q *int8, n int, codes *int8, stride int, ids *uint32, count int, out *int32)
TEXT ·dotsInt8AVX2(SB), NOSPLIT, $0-56
	MOVQ q+0(FP), SI
	FIRST(fetch, fetchListed, fetchLine, fetched)

	// n is a multiple of 16; BX is what of it is a multiple of 64.
	MOVQ n+8(FP), BX
	ANDQ $~63, BX

group:
	ROWS(0, R8, R9, R10, R11, listed)
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	XORQ  AX, AX
	LEAQ  AHEAD(R13), DI
	CMPQ  DI, R12
	JGT   nears
	ROWS(AHEAD, CX, DX, R14, R15, listedAhead)
	JMP   chunks

chunk:
	FETCH
	WIDENEDFOUR(0)
	WIDENEDFOUR(16)
	WIDENEDFOUR(32)
	WIDENEDFOUR(48)
	ADDQ $64, AX

chunks:
	CMPQ AX, BX
	JLT  chunk
	FETCH
	JMP  tails

	// What is behind has been fetched: the same without.
near:
	WIDENEDFOUR(0)
	WIDENEDFOUR(16)
	WIDENEDFOUR(32)
	WIDENEDFOUR(48)
	ADDQ $64, AX

nears:
	CMPQ AX, BX
	JLT  near
	JMP  tails

tail:
	WIDENEDFOUR(0)
	ADDQ $16, AX

tails:
	CMPQ AX, n+8(FP)
	JLT  tail
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
