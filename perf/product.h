/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: what cuda_rt.c has of product.cu; for C and C++. Never knows: when products run. */
#ifndef TW_PERF_PRODUCT_H
#define TW_PERF_PRODUCT_H

/* a: [ROWS x DEPTH], b: [DEPTH x COLUMNS], bfloat16; c = a b: [ROWS x COLUMNS], float; all by rows.
 * Twice as many operations as the three have in product. */
#define PERF_PRODUCT_ROWS 8192
#define PERF_PRODUCT_COLUMNS 4096
#define PERF_PRODUCT_DEPTH 1024
#define PERF_PRODUCT_A_BYTES ((size_t)2 * PERF_PRODUCT_ROWS * PERF_PRODUCT_DEPTH)
#define PERF_PRODUCT_B_BYTES ((size_t)2 * PERF_PRODUCT_DEPTH * PERF_PRODUCT_COLUMNS)
#define PERF_PRODUCT_C_BYTES ((size_t)4 * PERF_PRODUCT_ROWS * PERF_PRODUCT_COLUMNS)

/* Memory of one device; borrowed. */
struct perf_product {
    void *a, *b, *c;
    void *wrong; /* unsigned: elements of c that are */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Each is enqueued on stream, one of the current device, and answers with cudaError_t. fill: inputs
 * whose sums are exact, no output yet, nothing wrong. compare: with a product made plainly. */
int perf_product_fill(const struct perf_product *product, void *stream);
int perf_product_start(const struct perf_product *product, void *stream);
int perf_product_compare(const struct perf_product *product, void *stream);

#ifdef __cplusplus
}
#endif

#endif
