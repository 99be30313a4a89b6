/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that this build has no kernels. Never knows: more. */
#include "config.h"

#include "device/cuda/launch.h"

enum twill_status tw_gk_load(int device)
{
    return tw_fail(TWILL_ERR_UNSUPPORTED, "CUDA device %d: this build has no GPU support", device);
}

bool tw_gk_follows(int device)
{
    (void)device;
    return false;
}

enum twill_status tw_gk_launch(int device, enum tw_gk_kernel kernel, twill_type_t type,
                               const struct tw_gk_launch *launch, uint32_t threads, void *stream,
                               void *done)
{
    (void)kernel, (void)type, (void)launch, (void)threads, (void)stream, (void)done;
    return tw_gk_load(device);
}
