/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: a matrix product on tensor cores, which collectives are measured beside, and a plain one
 * to compare it with. Never knows: what runs beside it.
 *
 * It is no library's: it is there to keep every multiprocessor busy with work of the usual kind, by
 * short blocks of which two fit on a multiprocessor and there are many more than fit at once. A
 * block has a tile of the result; tiles of the inputs come to shared memory while the last ones are
 * multiplied. Rows in shared memory are longer than their data, so that they begin in different
 * banks. */
#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <mma.h>

#include "product.h"

namespace
{

namespace wmma = nvcuda::wmma;

constexpr int kRows = PERF_PRODUCT_ROWS, kColumns = PERF_PRODUCT_COLUMNS,
              kDepth = PERF_PRODUCT_DEPTH;
constexpr int kTile = 128;    /* rows and columns of a block's part of c */
constexpr int kSlice = 32;    /* of the depth, at once in shared memory */
constexpr int kThreads = 256; /* eight warps: two by four */
constexpr int kWarpRows = 64, kWarpColumns = 32;
constexpr int kEdge = 16; /* of what tensor cores multiply */
constexpr int kDown = kWarpRows / kEdge, kAcross = kWarpColumns / kEdge;
constexpr int kChunk = 8; /* elements of a copy: 16 bytes */
constexpr int kPad = 8;   /* elements behind a row */

static_assert(kRows % kTile == 0 && kColumns % kTile == 0 && kDepth % kSlice == 0, "whole tiles");
static_assert((kTile / kWarpRows) * (kTile / kWarpColumns) * 32 == kThreads,
              "a part for each warp");

struct __align__(128) slice
{
    __nv_bfloat16 a[kTile][kSlice + kPad];
    __nv_bfloat16 b[kSlice][kTile + kPad];
};

using part_a = wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, __nv_bfloat16, wmma::row_major>;
using part_b = wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, __nv_bfloat16, wmma::row_major>;
using part_c = wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float>;

/* Begin to copy the slice of a and b whose depth begins at `at`. */
__device__ void fetch(slice *to, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int at)
{
    const int row = (int)blockIdx.y * kTile, column = (int)blockIdx.x * kTile;
    constexpr int kOfA = kSlice / kChunk, kOfB = kTile / kChunk; /* copies of a row */

    for (int i = (int)threadIdx.x; i < kTile * kOfA; i += kThreads) {
        const int y = i / kOfA, x = i % kOfA * kChunk;
        __pipeline_memcpy_async(&to->a[y][x], a + (size_t)(row + y) * kDepth + at + x, 16);
    }
    for (int i = (int)threadIdx.x; i < kSlice * kOfB; i += kThreads) {
        const int y = i / kOfB, x = i % kOfB * kChunk;
        __pipeline_memcpy_async(&to->b[y][x], b + (size_t)(at + y) * kColumns + column + x, 16);
    }
    __pipeline_commit();
}

/* This warp's part of a slice. */
__device__ void multiply(const slice *from, int row, int column, part_c (&c)[kDown][kAcross])
{
#pragma unroll
    for (int k = 0; k < kSlice; k += kEdge) {
        part_a a[kDown];
        part_b b[kAcross];
#pragma unroll
        for (int i = 0; i < kDown; i++)
            wmma::load_matrix_sync(a[i], &from->a[row + i * kEdge][k], kSlice + kPad);
#pragma unroll
        for (int j = 0; j < kAcross; j++)
            wmma::load_matrix_sync(b[j], &from->b[k][column + j * kEdge], kTile + kPad);
#pragma unroll
        for (int i = 0; i < kDown; i++)
#pragma unroll
            for (int j = 0; j < kAcross; j++)
                wmma::mma_sync(c[i][j], a[i], b[j], c[i][j]);
    }
}

__global__ void __launch_bounds__(kThreads, 2)
    product(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c)
{
    __shared__ slice slices[2];
    const int warp = (int)threadIdx.x / 32;
    const int row = warp % (kTile / kWarpRows) * kWarpRows;
    const int column = warp / (kTile / kWarpRows) * kWarpColumns;
    part_c parts[kDown][kAcross];

#pragma unroll
    for (int i = 0; i < kDown; i++)
#pragma unroll
        for (int j = 0; j < kAcross; j++)
            wmma::fill_fragment(parts[i][j], 0.0f);
    fetch(&slices[0], a, b, 0);
    for (int at = 0; at < kDepth; at += kSlice) {
        const int now = at / kSlice % 2;
        __pipeline_wait_prior(0);
        __syncthreads(); /* everybody's copies are here, and nobody reads the other slice any more
                          */
        if (at + kSlice < kDepth)
            fetch(&slices[1 - now], a, b, at + kSlice);
        multiply(&slices[now], row, column, parts);
    }
    float *to = c + ((size_t)blockIdx.y * kTile + row) * kColumns + blockIdx.x * kTile + column;
#pragma unroll
    for (int i = 0; i < kDown; i++)
#pragma unroll
        for (int j = 0; j < kAcross; j++)
            wmma::store_matrix_sync(to + (size_t)i * kEdge * kColumns + j * kEdge, parts[i][j],
                                    kColumns, wmma::mem_row_major);
}

/* Whole numbers from -8 to 8, so that sums of their products are exact in any order. */
__device__ __nv_bfloat16 input(unsigned index, unsigned seed)
{
    unsigned bits = (index + seed) * 2654435761u;

    bits = (bits ^ bits >> 15) * 2246822519u;
    bits ^= bits >> 13;
    return __float2bfloat16((float)((int)(bits % 17) - 8));
}

__global__ void fill(__nv_bfloat16 *a, __nv_bfloat16 *b, float *c, unsigned *wrong)
{
    const unsigned step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;

    for (unsigned i = first; i < (unsigned)kRows * kDepth; i += step)
        a[i] = input(i, 1);
    for (unsigned i = first; i < (unsigned)kDepth * kColumns; i += step)
        b[i] = input(i, 0x5bd1e995u);
    for (unsigned i = first; i < (unsigned)kRows * kColumns; i += step)
        c[i] = __int_as_float(0x7fffffff); /* no number */
    if (first == 0)
        *wrong = 0;
}

/* A thread for each element. */
__global__ void compare(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *c,
                        unsigned *wrong)
{
    const size_t row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;

    for (size_t k = 0; k < kDepth; k++)
        sum += __bfloat162float(a[row * kDepth + k]) * __bfloat162float(b[k * kColumns + column]);
    if (!(c[row * kColumns + column] == sum))
        atomicAdd(wrong, 1u);
}

} // namespace

int perf_product_fill(const struct perf_product *p, void *stream)
{
    fill<<<1024, kThreads, 0, (cudaStream_t)stream>>>((__nv_bfloat16 *)p->a, (__nv_bfloat16 *)p->b,
                                                      (float *)p->c, (unsigned *)p->wrong);
    return (int)cudaGetLastError();
}

int perf_product_start(const struct perf_product *p, void *stream)
{
    product<<<dim3(kColumns / kTile, kRows / kTile), kThreads, 0, (cudaStream_t)stream>>>(
        (const __nv_bfloat16 *)p->a, (const __nv_bfloat16 *)p->b, (float *)p->c);
    return (int)cudaGetLastError();
}

int perf_product_compare(const struct perf_product *p, void *stream)
{
    compare<<<dim3(kColumns / kThreads, kRows), kThreads, 0, (cudaStream_t)stream>>>(
        (const __nv_bfloat16 *)p->a, (const __nv_bfloat16 *)p->b, (const float *)p->c,
        (unsigned *)p->wrong);
    return (int)cudaGetLastError();
}
