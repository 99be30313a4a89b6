/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: small systems of linear equations. Never knows: what they are of.
 *
 * Source: Cholesky's factorisation, as in Golub and Van Loan, Matrix Computations, section 4.2. */
#include <math.h>

#include "tune.h"

static bool factorise(size_t n, double *a)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    }
    return true;
}

bool tune_solve(size_t n, double *a, double *b)
{
    if (!factorise(n, a))
        return false;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= a[k * n + i] * b[k];
        b[i] /= a[i * n + i];
    }
    return true;
}
