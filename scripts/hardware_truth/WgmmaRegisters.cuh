//===- WgmmaRegisters.cuh - Register lists of wgmma -------------*- C++ -*-===//
//
// Part of the Humming project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Inline assembly needs its operands spelled out. TEXT_n and LIST_n are the
// first n accumulator registers as text and as operands.
//
//===----------------------------------------------------------------------===//

#ifndef HUMMING_SCRIPTS_HARDWARETRUTH_WGMMAREGISTERS_CUH
#define HUMMING_SCRIPTS_HARDWARETRUTH_WGMMAREGISTERS_CUH

// clang-format off
#define TEXT_2 "%0,%1"
#define LIST_2 "+r"(d[0]),"+r"(d[1])
#define TEXT_4 TEXT_2 ",%2,%3"
#define LIST_4 LIST_2, "+r"(d[2]),"+r"(d[3])
#define TEXT_8 TEXT_4 ",%4,%5,%6,%7"
#define LIST_8 LIST_4, "+r"(d[4]),"+r"(d[5]),"+r"(d[6]),"+r"(d[7])
#define TEXT_12 TEXT_8 ",%8,%9,%10,%11"
#define LIST_12 LIST_8, "+r"(d[8]),"+r"(d[9]),"+r"(d[10]),"+r"(d[11])
#define TEXT_16 TEXT_12 ",%12,%13,%14,%15"
#define LIST_16 LIST_12, "+r"(d[12]),"+r"(d[13]),"+r"(d[14]),"+r"(d[15])
#define TEXT_20 TEXT_16 ",%16,%17,%18,%19"
#define LIST_20 LIST_16, "+r"(d[16]),"+r"(d[17]),"+r"(d[18]),"+r"(d[19])
#define TEXT_32 TEXT_20 ",%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST_32 LIST_20, "+r"(d[20]),"+r"(d[21]),"+r"(d[22]),"+r"(d[23]),"+r"(d[24]),"+r"(d[25]),"+r"(d[26]),"+r"(d[27]),"+r"(d[28]),"+r"(d[29]),"+r"(d[30]),"+r"(d[31])
#define TEXT_48 TEXT_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define LIST_48 LIST_32, "+r"(d[32]),"+r"(d[33]),"+r"(d[34]),"+r"(d[35]),"+r"(d[36]),"+r"(d[37]),"+r"(d[38]),"+r"(d[39]),"+r"(d[40]),"+r"(d[41]),"+r"(d[42]),"+r"(d[43]),"+r"(d[44]),"+r"(d[45]),"+r"(d[46]),"+r"(d[47])
#define TEXT_64 TEXT_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define LIST_64 LIST_48, "+r"(d[48]),"+r"(d[49]),"+r"(d[50]),"+r"(d[51]),"+r"(d[52]),"+r"(d[53]),"+r"(d[54]),"+r"(d[55]),"+r"(d[56]),"+r"(d[57]),"+r"(d[58]),"+r"(d[59]),"+r"(d[60]),"+r"(d[61]),"+r"(d[62]),"+r"(d[63])
#define TEXT_96 TEXT_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define LIST_96 LIST_64, "+r"(d[64]),"+r"(d[65]),"+r"(d[66]),"+r"(d[67]),"+r"(d[68]),"+r"(d[69]),"+r"(d[70]),"+r"(d[71]),"+r"(d[72]),"+r"(d[73]),"+r"(d[74]),"+r"(d[75]),"+r"(d[76]),"+r"(d[77]),"+r"(d[78]),"+r"(d[79]),"+r"(d[80]),"+r"(d[81]),"+r"(d[82]),"+r"(d[83]),"+r"(d[84]),"+r"(d[85]),"+r"(d[86]),"+r"(d[87]),"+r"(d[88]),"+r"(d[89]),"+r"(d[90]),"+r"(d[91]),"+r"(d[92]),"+r"(d[93]),"+r"(d[94]),"+r"(d[95])
#define TEXT_128 TEXT_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define LIST_128 LIST_96, "+r"(d[96]),"+r"(d[97]),"+r"(d[98]),"+r"(d[99]),"+r"(d[100]),"+r"(d[101]),"+r"(d[102]),"+r"(d[103]),"+r"(d[104]),"+r"(d[105]),"+r"(d[106]),"+r"(d[107]),"+r"(d[108]),"+r"(d[109]),"+r"(d[110]),"+r"(d[111]),"+r"(d[112]),"+r"(d[113]),"+r"(d[114]),"+r"(d[115]),"+r"(d[116]),"+r"(d[117]),"+r"(d[118]),"+r"(d[119]),"+r"(d[120]),"+r"(d[121]),"+r"(d[122]),"+r"(d[123]),"+r"(d[124]),"+r"(d[125]),"+r"(d[126]),"+r"(d[127])
// clang-format on

#define SS_2(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%4,0; " PTX " {" TEXT_2           \
               "},%2,%3,p" TAIL ";}"                                           \
               : LIST_2                                                        \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_2(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%7,0; " PTX " {" TEXT_2           \
               "},{%2,%3,%4,%5},%6,p" TAIL ";}"                                \
               : LIST_2                                                        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_4(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%6,0; " PTX " {" TEXT_4           \
               "},%4,%5,p" TAIL ";}"                                           \
               : LIST_4                                                        \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_4(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%9,0; " PTX " {" TEXT_4           \
               "},{%4,%5,%6,%7},%8,p" TAIL ";}"                                \
               : LIST_4                                                        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_8(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%10,0; " PTX " {" TEXT_8          \
               "},%8,%9,p" TAIL ";}"                                           \
               : LIST_8                                                        \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_8(PTX, TAIL)                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%13,0; " PTX " {" TEXT_8          \
               "},{%8,%9,%10,%11},%12,p" TAIL ";}"                             \
               : LIST_8                                                        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_12(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%14,0; " PTX " {" TEXT_12         \
               "},%12,%13,p" TAIL ";}"                                         \
               : LIST_12                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_12(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%17,0; " PTX " {" TEXT_12         \
               "},{%12,%13,%14,%15},%16,p" TAIL ";}"                           \
               : LIST_12                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_16(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%18,0; " PTX " {" TEXT_16         \
               "},%16,%17,p" TAIL ";}"                                         \
               : LIST_16                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_16(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%21,0; " PTX " {" TEXT_16         \
               "},{%16,%17,%18,%19},%20,p" TAIL ";}"                           \
               : LIST_16                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_20(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%22,0; " PTX " {" TEXT_20         \
               "},%20,%21,p" TAIL ";}"                                         \
               : LIST_20                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_20(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%25,0; " PTX " {" TEXT_20         \
               "},{%20,%21,%22,%23},%24,p" TAIL ";}"                           \
               : LIST_20                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_32(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%34,0; " PTX " {" TEXT_32         \
               "},%32,%33,p" TAIL ";}"                                         \
               : LIST_32                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_32(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%37,0; " PTX " {" TEXT_32         \
               "},{%32,%33,%34,%35},%36,p" TAIL ";}"                           \
               : LIST_32                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_48(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%50,0; " PTX " {" TEXT_48         \
               "},%48,%49,p" TAIL ";}"                                         \
               : LIST_48                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_48(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%53,0; " PTX " {" TEXT_48         \
               "},{%48,%49,%50,%51},%52,p" TAIL ";}"                           \
               : LIST_48                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_64(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%66,0; " PTX " {" TEXT_64         \
               "},%64,%65,p" TAIL ";}"                                         \
               : LIST_64                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_64(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%69,0; " PTX " {" TEXT_64         \
               "},{%64,%65,%66,%67},%68,p" TAIL ";}"                           \
               : LIST_64                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_96(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%98,0; " PTX " {" TEXT_96         \
               "},%96,%97,p" TAIL ";}"                                         \
               : LIST_96                                                       \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_96(PTX, TAIL)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%101,0; " PTX " {" TEXT_96        \
               "},{%96,%97,%98,%99},%100,p" TAIL ";}"                          \
               : LIST_96                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")
#define SS_128(PTX, TAIL)                                                      \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%130,0; " PTX " {" TEXT_128       \
               "},%128,%129,p" TAIL ";}"                                       \
               : LIST_128                                                      \
               : "l"(descA), "l"(descB), "r"(scaleD)                           \
               : "memory")
#define RS_128(PTX, TAIL)                                                      \
  asm volatile("{.reg .pred p; setp.ne.b32 p,%133,0; " PTX " {" TEXT_128       \
               "},{%128,%129,%130,%131},%132,p" TAIL ";}"                      \
               : LIST_128                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB),       \
                 "r"(scaleD)                                                   \
               : "memory")

#endif // HUMMING_SCRIPTS_HARDWARETRUTH_WGMMAREGISTERS_CUH
