/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: that this build has no kernels. Never knows: more. */
#include "config.h"

#include "device/cuda/probe.h"

enum twill_status tw_gk_probe_load(int device)
{
    return tw_fail(TWILL_ERR_UNSUPPORTED, "CUDA device %d: this build has no GPU support", device);
}

enum twill_status tw_gk_probe_start(int device, const struct tw_gk_probe *probe, void *stream)
{
    (void)probe, (void)stream;
    return tw_gk_probe_load(device);
}
