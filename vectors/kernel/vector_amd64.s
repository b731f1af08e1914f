#include "textflag.h"

// Making codes, with AVX2: quantising, and the steps of a rotation.

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
