/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: the table of parameters, the environment. Never knows: what a parameter does. */
#include "config.h"

#include "base/param.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"

#define PREFIX "TWILL_"
#define PREFIX_LETTERS 6

enum kind { KIND_STRING, KIND_INT, KIND_BOOL, KIND_BYTES, KIND_NS };

struct entry {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct tw_params */
    const char *dflt, *unit, *doc;
};

static const struct entry table[] = {
#define X(name, field, type, dflt, unit, doc)                                                      \
    {#name, KIND_##type, offsetof(struct tw_params, field), dflt, unit, doc},
#include "base/param.def"
#undef X
};
#define ENTRIES (sizeof(table) / sizeof(table[0]))

static const char *const kind_names[] = {"string", "integer", "switch", "bytes", "time"};
static const char *const kind_expected[] = {
    "fewer than 256 bytes",
    "an integer",
    "0 or 1 (no yes off on false true)",
    "a whole number of bytes like 4096, 64K, 32M or 1G",
    "a time like 1.8us, 20ms or 300s",
};

/* The process's settings, all under the lock. */
static struct {
    pthread_mutex_t lock;
    bool frozen; /* atomic: read without the lock, after which values are const */
    bool warned;
    bool is_set[ENTRIES], has_dflt[ENTRIES];
    char set_text[ENTRIES][TW_PARAM_STRING_BYTES];
    char dflt_text[ENTRIES][TW_PARAM_STRING_BYTES]; /* instead of the table's */
    struct tw_params values;                        /* const once frozen */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct entry *entry_find(const char *name)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

static const char *nearest_name(const char *name)
{
    const char *nearest = table[0].name;
    unsigned least = tw_value_distance(name, nearest);

    for (size_t i = 1; i < ENTRIES; i++) {
        unsigned distance = tw_value_distance(name, table[i].name);
        if (distance < least) {
            least = distance;
            nearest = table[i].name;
        }
    }
    return nearest;
}

/* An empty text is the unset value of every type. @return false when text does not parse */
static bool entry_parse(const struct entry *entry, const char *text, struct tw_params *params)
{
    void *field = (char *)params + entry->offset;

    switch (entry->kind) {
    case KIND_STRING:
        if (strlen(text) >= TW_PARAM_STRING_BYTES)
            return false;
        memcpy(field, text, strlen(text) + 1);
        return true;
    case KIND_INT:
        return tw_value_int(text, field);
    case KIND_BOOL:
        return tw_value_bool(text, field);
    case KIND_BYTES:
        return tw_value_bytes(text, field);
    case KIND_NS:
        return tw_value_ns(text, entry->unit, field);
    }
    return false;
}

static enum twill_status value_refused(const struct entry *entry, const char *text)
{
    return tw_fail(TWILL_ERR_INVALID, PREFIX "%s=\"%.100s\": expected %s", entry->name, text,
                   kind_expected[entry->kind]);
}

static const char *environment_text(const struct entry *entry)
{
    char name[64];

    (void)snprintf(name, sizeof(name), PREFIX "%s", entry->name);
    return getenv(name);
}

/* The text that counts and where it came from: set, else environment, else default. */
static const char *entry_text(size_t i, enum tw_param_source *source)
{
    const char *text = environment_text(&table[i]);

    if (state.is_set[i]) {
        *source = TW_PARAM_SET;
        return state.set_text[i];
    }
    *source = text != NULL && text[0] != '\0' ? TW_PARAM_ENV : TW_PARAM_DEFAULT;
    if (*source == TW_PARAM_ENV)
        return text;
    return state.has_dflt[i] ? state.dflt_text[i] : table[i].dflt;
}

static enum twill_status values_fill(struct tw_params *params)
{
    memset(params, 0, sizeof(*params));
    for (size_t i = 0; i < ENTRIES; i++) {
        enum tw_param_source source = TW_PARAM_DEFAULT;
        const char *text = entry_text(i, &source);
        if (text[0] == '\0' && table[i].kind != KIND_STRING)
            continue; /* unset: 0 */
        if (!entry_parse(&table[i], text, params))
            return value_refused(&table[i], text);
    }
    return TWILL_OK;
}

static void unknown_warn(void)
{
    if (state.warned)
        return;
    state.warned = true;
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        char name[128];
        if (strncmp(*variable, PREFIX, PREFIX_LETTERS) != 0)
            continue;
        size_t letters = strcspn(*variable + PREFIX_LETTERS, "=");
        (void)snprintf(name, sizeof(name), "%.*s", (int)(letters < 127 ? letters : 127),
                       *variable + PREFIX_LETTERS);
        if (entry_find(name) == NULL)
            tw_warn(TW_SUB_BASE,
                    "environment: " PREFIX
                    "%s is no parameter and is ignored; the nearest is " PREFIX "%s",
                    name, nearest_name(name));
    }
}

static enum twill_status values_freeze(void)
{
    enum twill_status status = values_fill(&state.values);

    if (status == TWILL_OK)
        status = tw_log_configure(state.values.log, state.values.log_file);
    if (status != TWILL_OK)
        return status;
    unknown_warn();
    __atomic_store_n(&state.frozen, true, __ATOMIC_RELEASE);
    return TWILL_OK;
}

enum twill_status tw_params_get(const struct tw_params **params)
{
    enum twill_status status = TWILL_OK;

    if (!__atomic_load_n(&state.frozen, __ATOMIC_ACQUIRE)) {
        (void)pthread_mutex_lock(&state.lock);
        if (!state.frozen)
            status = values_freeze();
        (void)pthread_mutex_unlock(&state.lock);
    }
    if (status == TWILL_OK)
        *params = &state.values;
    return status;
}

enum twill_status tw_params_peek(struct tw_params *params)
{
    enum twill_status status = TWILL_OK;

    (void)pthread_mutex_lock(&state.lock);
    if (state.frozen)
        *params = state.values;
    else
        status = values_fill(params);
    (void)pthread_mutex_unlock(&state.lock);
    return status;
}

static enum twill_status entry_named(const char *name, const struct entry **entry)
{
    if (strncmp(name, PREFIX, PREFIX_LETTERS) == 0)
        name += PREFIX_LETTERS;
    *entry = entry_find(name);
    if (*entry != NULL)
        return TWILL_OK;
    return tw_fail(TWILL_ERR_INVALID, "parameter \"%.100s\" is unknown; the nearest is \"%s\"",
                   name, nearest_name(name));
}

/* Keep value in one of the state's rows of texts. */
static enum twill_status text_put(const char *name, const char *value, bool *has,
                                  char (*texts)[TW_PARAM_STRING_BYTES])
{
    enum twill_status status = TWILL_OK;
    const struct entry *entry = NULL;
    struct tw_params scratch;

    if (name == NULL || value == NULL)
        return tw_fail(TWILL_ERR_INVALID, "parameter: %s is NULL", name == NULL ? "name" : "value");
    status = entry_named(name, &entry);
    if (status != TWILL_OK)
        return status;
    if (strlen(value) >= TW_PARAM_STRING_BYTES || !entry_parse(entry, value, &scratch))
        return value_refused(entry, value);
    (void)pthread_mutex_lock(&state.lock);
    if (state.frozen) {
        status = tw_fail(TWILL_ERR_USAGE,
                         "parameter %s: a communicator exists already, parameters are fixed",
                         entry->name);
    } else {
        size_t i = (size_t)(entry - table);
        memcpy(texts[i], value, strlen(value) + 1);
        has[i] = true;
    }
    (void)pthread_mutex_unlock(&state.lock);
    return status;
}

enum twill_status tw_param_set(const char *name, const char *value)
{
    return text_put(name, value, state.is_set, state.set_text);
}

enum twill_status tw_param_default(const char *name, const char *value)
{
    return text_put(name, value, state.has_dflt, state.dflt_text);
}

enum twill_status tw_param_get(const char *name, char *value, size_t bytes)
{
    const struct entry *entry = NULL;
    enum tw_param_source source = TW_PARAM_DEFAULT;
    enum twill_status status = entry_named(name, &entry);

    if (status != TWILL_OK)
        return status;
    (void)pthread_mutex_lock(&state.lock);
    (void)snprintf(value, bytes, "%s", entry_text((size_t)(entry - table), &source));
    (void)pthread_mutex_unlock(&state.lock);
    return status;
}

bool tw_param_row(size_t i, struct tw_param_row *row)
{
    if (i >= ENTRIES)
        return false;
    row->name = table[i].name;
    row->type = kind_names[table[i].kind];
    row->unit = table[i].unit;
    row->dflt = table[i].dflt;
    row->doc = table[i].doc;
    (void)pthread_mutex_lock(&state.lock);
    (void)snprintf(row->value, sizeof(row->value), "%s", entry_text(i, &row->source));
    (void)pthread_mutex_unlock(&state.lock);
    return true;
}

const char *tw_param_env_rank(void)
{
    static const char *const names[] = {"TWILL_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *rank = getenv(names[i]);
        int64_t number = 0;
        if (rank != NULL && tw_value_int(rank, &number))
            return rank;
    }
    return "x";
}

void tw_params_reset(void)
{
    (void)pthread_mutex_lock(&state.lock);
    __atomic_store_n(&state.frozen, false, __ATOMIC_RELEASE);
    state.warned = false;
    memset(state.is_set, 0, sizeof(state.is_set));
    memset(state.has_dflt, 0, sizeof(state.has_dflt));
    (void)pthread_mutex_unlock(&state.lock);
}
