/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how two ends show each other that they hold a key. Never knows: whose key, what for. */
#include "config.h"

#include <sodium.h>
#include <string.h>

#include "base/host.h"
#include "base/sock.h"
#include "base/status.h"

#define NONCE_BYTES 32
#define PROOF_BYTES 32

/* What one side proves with: the key over the side's role, the context and both nonces. A proof is
 * of use for one role of one connection only, so sending it back, or to another, shows nothing. */
struct exchange {
    const uint8_t *key; /* borrowed */
    const char *context;
    uint8_t nonces[2][NONCE_BYTES]; /* of role 0, of role 1 */
};

static void proof_compute(const struct exchange *exchange, int role, uint8_t proof[PROOF_BYTES])
{
    static const char domain[] = "twill connection proof 1";
    const uint8_t role_byte = (uint8_t)role;
    uint64_t context_bytes = strlen(exchange->context);
    uint8_t length[8];
    crypto_generichash_state state;

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(context_bytes >> (8 * i));
    (void)crypto_generichash_init(&state, exchange->key, TW_KEY_BYTES, PROOF_BYTES);
    (void)crypto_generichash_update(&state, (const uint8_t *)domain, sizeof(domain));
    (void)crypto_generichash_update(&state, &role_byte, 1);
    (void)crypto_generichash_update(&state, length, sizeof(length));
    (void)crypto_generichash_update(&state, (const uint8_t *)exchange->context, context_bytes);
    (void)crypto_generichash_update(&state, exchange->nonces[0], 2 * (size_t)NONCE_BYTES);
    (void)crypto_generichash_final(&state, proof, PROOF_BYTES);
    sodium_memzero(&state, sizeof(state));
}

enum twill_status tw_sock_prove(int fd, const uint8_t key[TW_KEY_BYTES], int role,
                                const char *context, const struct tw_sock_wait *wait)
{
    struct exchange exchange = {.key = key, .context = context};
    uint8_t mine[PROOF_BYTES];
    uint8_t expected[PROOF_BYTES];
    uint8_t theirs[PROOF_BYTES];

    if (role != 0 && role != 1)
        return tw_fail(TWILL_ERR_INVALID, "connection proof: role %d is neither 0 nor 1", role);
    if (sodium_init() < 0)
        return tw_fail(TWILL_ERR_SYSTEM, "connection proof: libsodium does not initialise");
    tw_random(exchange.nonces[role], NONCE_BYTES);
    enum twill_status status = tw_sock_send(fd, exchange.nonces[role], NONCE_BYTES, wait);
    if (status == TWILL_OK)
        status = tw_sock_recv(fd, exchange.nonces[1 - role], NONCE_BYTES, wait);
    if (status != TWILL_OK)
        return status;
    proof_compute(&exchange, role, mine);
    proof_compute(&exchange, 1 - role, expected);
    status = tw_sock_send(fd, mine, PROOF_BYTES, wait);
    if (status == TWILL_OK)
        status = tw_sock_recv(fd, theirs, PROOF_BYTES, wait);
    if (status != TWILL_OK)
        return status;
    if (sodium_memcmp(theirs, expected, PROOF_BYTES) != 0)
        return tw_fail(TWILL_ERR_AUTH,
                       "connection for \"%s\": the peer did not prove the job's key", context);
    return TWILL_OK;
}
