#include "textflag.h"

// Making codes, with AVX2: scaling, quantising, and the steps of a rotation. Inner products of exact vectors.

// func quantizeInt8AVX2(dst *int8, v *float32, n int, scale float32)
TEXT ·quantizeInt8AVX2(SB), NOSPLIT, $0-28
	MOVQ         dst+0(FP), DI
	MOVQ         v+8(FP), SI
	MOVQ         n+16(FP), BX
	VBROADCASTSS scale+24(FP), Y15
	MOVL         $0x42fe0000, AX      // 127
	VMOVD        AX, X14
	VBROADCASTSS X14, Y14
	MOVL         $0xc2fe0000, AX      // -127
	VMOVD        AX, X13
	VBROADCASTSS X13, Y13
	XORQ         AX, AX

eight:
	// The smaller of two is the second operand, here the limit, if one of them is not a number.
	VMULPS       (SI)(AX*4), Y15, Y0
	VMINPS       Y14, Y0, Y0
	VMAXPS       Y13, Y0, Y0
	VCVTPS2DQ    Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
	VPACKSSWB    X0, X0, X0
	VMOVQ        X0, (DI)(AX*1)
	ADDQ         $8, AX
	CMPQ         AX, BX
	JLT          eight
	VZEROUPPER
	RET

// The signs with which neighbours, pairs and fours of components are added to their partners.
DATA negate1<>+0(SB)/8, $0x8000000000000000
DATA negate1<>+8(SB)/8, $0x8000000000000000
DATA negate1<>+16(SB)/8, $0x8000000000000000
DATA negate1<>+24(SB)/8, $0x8000000000000000
GLOBL negate1<>(SB), RODATA|NOPTR, $32
DATA negate2<>+0(SB)/8, $0
DATA negate2<>+8(SB)/8, $0x8000000080000000
DATA negate2<>+16(SB)/8, $0
DATA negate2<>+24(SB)/8, $0x8000000080000000
GLOBL negate2<>(SB), RODATA|NOPTR, $32
DATA negate4<>+0(SB)/8, $0
DATA negate4<>+8(SB)/8, $0
DATA negate4<>+16(SB)/8, $0x8000000080000000
DATA negate4<>+24(SB)/8, $0x8000000080000000
GLOBL negate4<>(SB), RODATA|NOPTR, $32

// func walshAVX2(v *float32, n int, signs *uint32, scale float32)
TEXT ·walshAVX2(SB), NOSPLIT, $0-28
	MOVQ         v+0(FP), SI
	MOVQ         n+8(FP), BX
	MOVQ         signs+16(FP), DX
	VBROADCASTSS scale+24(FP), Y15
	VMOVUPS      negate1<>(SB), Y14
	VMOVUPS      negate2<>(SB), Y13
	VMOVUPS      negate4<>(SB), Y12
	SHLQ         $2, BX               // bytes
	XORQ         AX, AX

	// Signs, scale, and the steps of 1, 2 and 4 within eight components: a partner is added to each, which is negated
	// where it is the one to be taken away.
eight:
	VMOVUPS    (SI)(AX*1), Y0
	VXORPS     (DX)(AX*1), Y0, Y0
	VMULPS     Y15, Y0, Y0
	VPERMILPS  $0xb1, Y0, Y1
	VXORPS     Y14, Y0, Y0
	VADDPS     Y1, Y0, Y0
	VPERMILPS  $0x4e, Y0, Y1
	VXORPS     Y13, Y0, Y0
	VADDPS     Y1, Y0, Y0
	VPERM2F128 $0x01, Y0, Y0, Y1
	VXORPS     Y12, Y0, Y0
	VADDPS     Y1, Y0, Y0
	VMOVUPS    Y0, (SI)(AX*1)
	ADDQ       $32, AX
	CMPQ       AX, BX
	JLT        eight

	// The other steps: CX is the step in bytes, DI the upper half of a block, R8 its end.
	MOVQ $32, CX
	JMP  steps

step:
	MOVQ SI, AX
	LEAQ (SI)(BX*1), R9

block:
	LEAQ (AX)(CX*1), R8

butterfly:
	VMOVUPS (AX), Y0
	VMOVUPS (AX)(CX*1), Y1
	VADDPS  Y1, Y0, Y2
	VSUBPS  Y1, Y0, Y3
	VMOVUPS Y2, (AX)
	VMOVUPS Y3, (AX)(CX*1)
	ADDQ    $32, AX
	CMPQ    AX, R8
	JLT     butterfly
	ADDQ    CX, AX
	CMPQ    AX, R9
	JLT     block
	SHLQ    $1, CX

steps:
	CMPQ CX, BX
	JLT  step
	VZEROUPPER
	RET

// func halvesAVX2(a, b *float32, n int, scale float32)
TEXT ·halvesAVX2(SB), NOSPLIT, $0-28
	MOVQ         a+0(FP), SI
	MOVQ         b+8(FP), DI
	MOVQ         n+16(FP), BX
	VBROADCASTSS scale+24(FP), Y15
	XORQ         AX, AX

eight:
	VMOVUPS (SI)(AX*4), Y0
	VMOVUPS (DI)(AX*4), Y1
	VADDPS  Y1, Y0, Y2
	VSUBPS  Y1, Y0, Y3
	VMULPS  Y15, Y2, Y2
	VMULPS  Y15, Y3, Y3
	VMOVUPS Y2, (SI)(AX*4)
	VMOVUPS Y3, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, BX
	JLT     eight
	VZEROUPPER
	RET

// func prefetchRows(p unsafe.Pointer, n int, ids *uint32, count int)
TEXT ·prefetchRows(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	MOVQ ids+16(FP), DI
	MOVQ count+24(FP), CX

row:
	MOVL  (DI), AX
	IMULQ BX, AX
	LEAQ  (AX)(BX*1), DX
	ADDQ  SI, DX
	ADDQ  SI, AX
	ANDQ  $~63, AX

line:
	PREFETCHT1 (AX)
	ADDQ       $64, AX
	CMPQ       AX, DX
	JLT        line
	ADDQ       $4, DI
	DECQ       CX
	JNZ        row
	RET

// func prefetch(p unsafe.Pointer, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	ADDQ SI, BX
	ANDQ $~63, SI

line:
	PREFETCHT1 (SI)
	ADDQ       $64, SI
	CMPQ       SI, BX
	JLT        line
	RET

// The first n of eight lanes, read 4*(8-n) bytes from its begin.
DATA lanes<>+0(SB)/8, $0xffffffffffffffff
DATA lanes<>+8(SB)/8, $0xffffffffffffffff
DATA lanes<>+16(SB)/8, $0xffffffffffffffff
DATA lanes<>+24(SB)/8, $0xffffffffffffffff
DATA lanes<>+32(SB)/8, $0
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// ROW makes a pointer to the row whose number the list at DI has at k.
#define ROW(k, reg) \
	MOVL  4*k(DI), reg \
	IMULQ R13, reg     \
	ADDQ  DX, reg

// LAST adds to sum the products of the last components, those of q in Y8.
#define LAST(row, sum) \
	VMASKMOVPS  (row)(AX*4), Y15, Y9 \
	VFMADD231PS Y9, Y8, sum

// func dotRowsAVX2(q *float32, n int, rows *float32, ids *uint32, count int, out *float32)
TEXT ·dotRowsAVX2(SB), NOSPLIT, $0-48
	MOVQ    q+0(FP), SI
	MOVQ    n+8(FP), BX
	MOVQ    rows+16(FP), DX
	MOVQ    ids+24(FP), DI
	MOVQ    count+32(FP), R12
	MOVQ    out+40(FP), R14
	LEAQ    (BX*4), R13           // bytes of a row
	MOVQ    BX, AX
	ANDQ    $7, AX
	NEGQ    AX
	LEAQ    lanes<>+32(SB), CX
	VMOVUPS (CX)(AX*4), Y15
	MOVQ    BX, CX
	ANDQ    $-8, CX               // components in full registers
	MOVQ    BX, R15
	ANDQ    $-16, R15             // in pairs of these

	CMPQ    R12, $4
	JLT     one

four:
	ROW(0, R8)
	ROW(1, R9)
	ROW(2, R10)
	ROW(3, R11)
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	XORQ   AX, AX
	CMPQ   AX, R15
	JGE    eight

sixteen:
	VMOVUPS     (SI)(AX*4), Y8
	VMOVUPS     32(SI)(AX*4), Y9
	VFMADD231PS (R8)(AX*4), Y8, Y0
	VFMADD231PS (R9)(AX*4), Y8, Y1
	VFMADD231PS (R10)(AX*4), Y8, Y2
	VFMADD231PS (R11)(AX*4), Y8, Y3
	VFMADD231PS 32(R8)(AX*4), Y9, Y4
	VFMADD231PS 32(R9)(AX*4), Y9, Y5
	VFMADD231PS 32(R10)(AX*4), Y9, Y6
	VFMADD231PS 32(R11)(AX*4), Y9, Y7
	ADDQ        $16, AX
	CMPQ        AX, R15
	JLT         sixteen

eight:
	CMPQ        AX, CX
	JGE         rest
	VMOVUPS     (SI)(AX*4), Y8
	VFMADD231PS (R8)(AX*4), Y8, Y0
	VFMADD231PS (R9)(AX*4), Y8, Y1
	VFMADD231PS (R10)(AX*4), Y8, Y2
	VFMADD231PS (R11)(AX*4), Y8, Y3
	ADDQ        $8, AX

rest:
	CMPQ       AX, BX
	JGE        sums
	VMASKMOVPS (SI)(AX*4), Y15, Y8
	LAST(R8, Y0)
	LAST(R9, Y1)
	LAST(R10, Y2)
	LAST(R11, Y3)

sums:
	VADDPS       Y4, Y0, Y0
	VADDPS       Y5, Y1, Y1
	VADDPS       Y6, Y2, Y2
	VADDPS       Y7, Y3, Y3
	VHADDPS      Y1, Y0, Y0
	VHADDPS      Y3, Y2, Y2
	VHADDPS      Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVUPS      X0, (R14)
	ADDQ         $16, R14
	ADDQ         $16, DI
	SUBQ         $4, R12
	CMPQ         R12, $4
	JGE          four
	TESTQ        R12, R12
	JLE          done

	// The sums of a single row are added in the same order: it gives the same bits.
one:
	ROW(0, R8)
	VXORPS Y0, Y0, Y0
	VXORPS Y4, Y4, Y4
	XORQ   AX, AX
	CMPQ   AX, R15
	JGE    oneEight

oneSixteen:
	VMOVUPS     (SI)(AX*4), Y8
	VMOVUPS     32(SI)(AX*4), Y9
	VFMADD231PS (R8)(AX*4), Y8, Y0
	VFMADD231PS 32(R8)(AX*4), Y9, Y4
	ADDQ        $16, AX
	CMPQ        AX, R15
	JLT         oneSixteen

oneEight:
	CMPQ        AX, CX
	JGE         oneRest
	VMOVUPS     (SI)(AX*4), Y8
	VFMADD231PS (R8)(AX*4), Y8, Y0
	ADDQ        $8, AX

oneRest:
	CMPQ       AX, BX
	JGE        oneSum
	VMASKMOVPS (SI)(AX*4), Y15, Y8
	LAST(R8, Y0)

oneSum:
	VADDPS       Y4, Y0, Y0
	VHADDPS      Y0, Y0, Y0
	VHADDPS      Y0, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVSS       X0, (R14)
	ADDQ         $4, R14
	ADDQ         $4, DI
	DECQ         R12
	JGT          one

done:
	VZEROUPPER
	RET

// func scaleAVX2(dst, v *float32, n int, by float64)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         v+8(FP), SI
	MOVQ         n+16(FP), BX
	VBROADCASTSD by+24(FP), Y15
	XORQ         AX, AX

four:
	VCVTPS2PD  (SI)(AX*4), Y0
	VMULPD     Y15, Y0, Y0
	VCVTPD2PSY Y0, X0
	VMOVUPS    X0, (DI)(AX*4)
	ADDQ       $4, AX
	CMPQ       AX, BX
	JLT        four
	VZEROUPPER
	RET

// func largestAVX2(v *float32, n int) uint32
TEXT ·largestAVX2(SB), NOSPLIT, $0-20
	MOVQ         v+0(FP), SI
	MOVQ         n+8(FP), BX
	MOVL         $0x7fffffff, AX
	VMOVD        AX, X15
	VPBROADCASTD X15, Y15
	VPXOR        Y0, Y0, Y0
	XORQ         AX, AX

eight:
	VPAND        (SI)(AX*4), Y15, Y1
	VPMAXUD      Y1, Y0, Y0
	ADDQ         $8, AX
	CMPQ         AX, BX
	JLT          eight
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPMAXUD      X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+16(FP)
	VZEROUPPER
	RET

// func codeSumsAVX2(code *int8, n int) (sum, squares int32)
TEXT ·codeSumsAVX2(SB), NOSPLIT, $0-24
	MOVQ         code+0(FP), SI
	MOVQ         n+8(FP), BX
	MOVL         $0x00010001, AX
	VMOVD        AX, X15
	VPBROADCASTD X15, Y15
	VPXOR        Y0, Y0, Y0
	VPXOR        Y1, Y1, Y1
	XORQ         AX, AX

sixteen:
	VPMOVSXBW    (SI)(AX*1), Y2
	VPMADDWD     Y15, Y2, Y3
	VPMADDWD     Y2, Y2, Y2
	VPADDD       Y3, Y0, Y0
	VPADDD       Y2, Y1, Y1
	ADDQ         $16, AX
	CMPQ         AX, BX
	JLT          sixteen
	VPHADDD      Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPHADDD      X0, X0, X0
	VMOVD        X0, AX
	MOVL         AX, sum+16(FP)
	VPEXTRD      $1, X0, AX
	MOVL         AX, squares+20(FP)
	VZEROUPPER
	RET
