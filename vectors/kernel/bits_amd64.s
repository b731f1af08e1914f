#include "textflag.h"

// Eight rows are worked on at a time: (R8), (R8)(R9*1), (R8)(R9*2), (R8)(R10*1), and the same from R11.

#define COUNT(row, tmp, acc) \
	VPXORQ   row, Z16, tmp \
	VPOPCNTQ tmp, tmp      \
	VPADDQ   tmp, acc, acc

#define COUNTTAIL(row, tmp, acc) \
	VMOVDQU64.Z row, K1, tmp  \
	VPXORQ      Z16, tmp, tmp \
	VPOPCNTQ    tmp, tmp      \
	VPADDQ      tmp, acc, acc

// PAIR puts the counts of two rows, which are below 2^32, side by side into the words of a.
#define PAIR(b, a) \
	VPSLLQ $32, b, b \
	VPADDQ b, a, a

// func scanBitsAVX512(q *uint64, words int, codes *uint64, rows int, out *int32)
TEXT ·scanBitsAVX512(SB), NOSPLIT, $0-40
	MOVQ  q+0(FP), SI
	MOVQ  words+8(FP), BX
	MOVQ  codes+16(FP), R8
	MOVQ  rows+24(FP), R12
	MOVQ  out+32(FP), DI
	MOVQ  BX, CX
	ANDQ  $7, CX
	MOVQ  $1, AX
	SHLQ  CX, AX
	DECQ  AX
	KMOVQ AX, K1
	SHLQ  $3, BX            // bytes of a row
	MOVQ  BX, R9
	LEAQ  (BX)(BX*2), R10
	MOVQ  BX, DX
	ANDQ  $~63, DX          // bytes of its full chunks
	LEAQ  (R8)(BX*4), R11
	LEAQ  (BX*8), R13
	SUBQ  DX, R13           // from the end of the chunks of a row to the eighth row behind it

group:
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	XORQ   AX, AX
	JMP    chunks

chunk:
	VMOVDQU64 (SI)(AX*1), Z16
	COUNT((R8), Z17, Z0)
	COUNT((R8)(R9*1), Z18, Z1)
	COUNT((R8)(R9*2), Z19, Z2)
	COUNT((R8)(R10*1), Z20, Z3)
	COUNT((R11), Z21, Z4)
	COUNT((R11)(R9*1), Z22, Z5)
	COUNT((R11)(R9*2), Z23, Z6)
	COUNT((R11)(R10*1), Z24, Z7)
	ADDQ      $64, AX
	ADDQ      $64, R8
	ADDQ      $64, R11

chunks:
	CMPQ        AX, DX
	JLT         chunk
	KTESTB      K1, K1
	JZ          sums
	VMOVDQU64.Z (SI)(AX*1), K1, Z16
	COUNTTAIL((R8), Z17, Z0)
	COUNTTAIL((R8)(R9*1), Z18, Z1)
	COUNTTAIL((R8)(R9*2), Z19, Z2)
	COUNTTAIL((R8)(R10*1), Z20, Z3)
	COUNTTAIL((R11), Z21, Z4)
	COUNTTAIL((R11)(R9*1), Z22, Z5)
	COUNTTAIL((R11)(R9*2), Z23, Z6)
	COUNTTAIL((R11)(R10*1), Z24, Z7)

sums:
	PAIR(Z1, Z0)
	PAIR(Z3, Z2)
	PAIR(Z5, Z4)
	PAIR(Z7, Z6)

	// Z0 becomes four lanes, each with parts of the counts of rows 0 to 3, Z4 of rows 4 to 7.
	VPUNPCKLQDQ   Z2, Z0, Z1
	VPUNPCKHQDQ   Z2, Z0, Z3
	VPADDD        Z3, Z1, Z0
	VPUNPCKLQDQ   Z6, Z4, Z5
	VPUNPCKHQDQ   Z6, Z4, Z7
	VPADDD        Z7, Z5, Z4
	VEXTRACTI64X4 $1, Z0, Y1
	VPADDD        Y1, Y0, Y0
	VEXTRACTI64X4 $1, Z4, Y5
	VPADDD        Y5, Y4, Y4
	VPERM2I128    $0x20, Y4, Y0, Y1
	VPERM2I128    $0x31, Y4, Y0, Y2
	VPADDD        Y2, Y1, Y0
	VMOVDQU       Y0, (DI)
	ADDQ          $32, DI
	ADDQ          R13, R8
	ADDQ          R13, R11
	SUBQ          $8, R12
	JG            group
	VZEROUPPER
	RET
