/* Runs kernels of PTX on a software GPU, on memory of the calling program. No GPU and no CUDA are needed. */

#ifndef WARPSTRIDE_PTX_RUN_H
#define WARPSTRIDE_PTX_RUN_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs the one kernel of a PTX text, and returns when it has ended.
 *
 *   source        the text, which ends with a NUL
 *   count         the number of the kernel's parameters
 *   arguments     their values in order. A parameter of 8 bytes is the address of a buffer, or a number; a narrower parameter takes the
 *                 low bytes of its value
 *   block_x...    the extents of a block, in threads
 *   grid_x...     the extents of the grid, in blocks
 *   shared        the bytes of dynamic shared memory
 *
 * The kernel reads and writes the program's own memory. It can use each range of memory that the program can read and write and that
 * the value of an 8-byte parameter lies in, as /proc/self/maps has them. An access outside of these ranges stops the launch. An access
 * past the end of a buffer and within its range is like one of the program itself: nothing notices it.
 *
 * Any number of threads may call it at a time. Variables of the PTX begin afresh with each call.
 *
 * Returns 0, or the number that CUDA has for the error, and writes a sentence about it to standard error:
 *
 *     1  an argument that no launch accepts        500  the text has no kernel
 *     2  the host has too little memory            700  an access outside of the ranges
 *   218  the text is not PTX, or not supported     702  the launch took more work than a launch may
 *                                                  716  an address that is not a multiple of the access's size
 *                                                  719  another fault of the kernel
 *   999  a bug of this library
 */
int ptx_run(const char *source, int count, void **arguments, int block_x, int block_y, int block_z, int grid_x, int grid_y,
            int grid_z, int shared);

#ifdef __cplusplus
}
#endif

#endif
