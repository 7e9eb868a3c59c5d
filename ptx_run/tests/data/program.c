/* Runs two kernels, and checks what they did. */

#include <stdio.h>
#include <stdlib.h>

#include "ptx_run.h"

static const char square[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry square(.param .u64 out, .param .u32 add) {\n"
    ".reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [out];\nld.param.u32 %r3, [add];\nmov.u32 %r1, %tid.x;\n"
    "mad.lo.u32 %r2, %r1, %r1, %r3;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3], %r2;\nret;\n}\n";

static const char prints[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n"
    ".global .align 1 .b8 format[22] = {116,104,101,32,107,101,114,110,101,108,32,112,114,105,110,116,115,32,37,100,10,0};\n"
    ".visible .entry prints() {\n"
    ".local .align 8 .b8 values[8];\n.reg .b32 %r<3>;\n.reg .b64 %d<4>;\n"
    "mov.u64 %d1, values;\ncvta.local.u64 %d2, %d1;\nmov.u32 %r1, 3;\nst.local.u32 [%d1], %r1;\n"
    "mov.u64 %d3, format;\ncvta.global.u64 %d3, %d3;\n"
    "{\n.param .b64 a;\nst.param.b64 [a], %d3;\n.param .b64 b;\nst.param.b64 [b], %d2;\n.param .b32 c;\n"
    "call.uni (c), vprintf, (a, b);\nld.param.b32 %r2, [c];\n}\nret;\n}\n";

int main(void)
{
    unsigned out[32];
    unsigned i;
    void *arguments[2];

    arguments[0] = out;
    arguments[1] = (void *)(size_t)5;
    if (ptx_run(square, 2, arguments, 32, 1, 1, 1, 1, 1, 0) != 0)
        return EXIT_FAILURE;
    for (i = 0; i < 32; i++)
        if (out[i] != i * i + 5)
            return EXIT_FAILURE;
    if (ptx_run(NULL, 2, arguments, 32, 1, 1, 1, 1, 1, 0) != 1)
        return EXIT_FAILURE;
    if (ptx_run(prints, 0, NULL, 1, 1, 1, 1, 1, 1, 0) != 0)
        return EXIT_FAILURE;
    puts("all is right");
    return EXIT_SUCCESS;
}
