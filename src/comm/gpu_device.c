/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: which devices a process uses. Never knows: what for. */
#include "config.h"

#include "comm/gpu_device.h"

#include <stdlib.h>

#include "base/mem.h"

void tw_gpu_devices_init(struct tw_gpu_devices *devices)
{
    devices->first = NULL;
    tw_gpu_graph_init(&devices->graph);
    (void)pthread_mutex_init(&devices->lock, NULL);
}

void tw_gpu_devices_fini(struct tw_gpu_devices *devices)
{
    while (devices->first != NULL) {
        struct tw_gpu_device *device = devices->first;

        devices->first = device->next;
        (void)pthread_mutex_destroy(&device->lock);
        free(device->ranks);
        free(device->ahead);
        free(device);
    }
    tw_gpu_graph_fini(&devices->graph);
    (void)pthread_mutex_destroy(&devices->lock);
}

static struct tw_gpu_device *device_create(int number, int multiprocessors)
{
    struct tw_gpu_device *device = tw_alloc(sizeof(*device));

    if (device == NULL)
        return NULL;
    device->number = number;
    device->budget = multiprocessors > 0 ? (uint32_t)multiprocessors : 1;
    (void)pthread_mutex_init(&device->lock, NULL);
    return device;
}

struct tw_gpu_device *tw_gpu_device_get(struct tw_gpu_devices *devices, int number,
                                        int multiprocessors)
{
    (void)pthread_mutex_lock(&devices->lock);
    struct tw_gpu_device *device = devices->first;
    while (device != NULL && device->number != number)
        device = device->next;
    if (device == NULL && (device = device_create(number, multiprocessors)) != NULL) {
        device->next = devices->first;
        devices->first = device;
    }
    (void)pthread_mutex_unlock(&devices->lock);
    return device;
}
