/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: NCCL's variables, in the environment and in its files, and which of twill's parameters
 * each is. Never knows: what a parameter does. This is the one place that reads them; what the
 * environment says to twill itself is stronger. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "compat/compat.h"

#define PREFIX "NCCL_"
#define PREFIX_LETTERS 5
#define NAME_BYTES 64
#define VALUE_BYTES 256
#define FILE_SETTINGS 64

/* What files say, the first that says it. */
struct settings {
    size_t count;
    struct {
        char name[NAME_BYTES], value[VALUE_BYTES];
    } all[FILE_SETTINGS];
};

/* ---- what the variables are ---------------------------------------------------------------------
 */

/* @return NULL: it is taken over; otherwise why it has no effect */
typedef const char *(*take_fn)(const char *value);

static const char *take(const char *param, const char *value)
{
    return twill_param_default(param, value) < 0 ? twill_last_error(NULL) : NULL;
}

static const char *take_debug(const char *value)
{
    static const char *const levels[][2] = {{"NONE", "none"},   {"VERSION", "warn"},
                                            {"WARN", "warn"},   {"INFO", "info"},
                                            {"ABORT", "debug"}, {"TRACE", "trace"}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcasecmp(value, levels[i][0]))
            return take("LOG", levels[i][1]);
    return "it is none of VERSION, WARN, INFO and TRACE";
}

/* Of the name of a file only what twill's has too is understood. */
static const char *take_debug_file(const char *value)
{
    for (const char *at = strchr(value, '%'); at; at = strchr(at + 2, '%'))
        if (at[1] != 'h' && at[1] != 'p')
            return "behind % there may be h or p";
    return take("LOG_FILE", value);
}

static bool is_off(const char *value) { return !strcmp(value, "0"); }

static const char *take_p2p_disable(const char *value)
{
    return is_off(value) ? NULL : take("P2P", "0");
}

static const char *take_p2p_level(const char *value)
{
    if (!strcasecmp(value, "LOC") || is_off(value))
        return take("P2P", "0");
    return "twill tries whether devices reach each other; LOC alone is understood";
}

/* There, whoever set it wants what is fast with NCCL: a plan is interpreted, and slow. */
static bool has_device(void)
{
    int device = TWILL_DEVICE_HOST;
    return twill_current_device(&device) == TWILL_OK && device != TWILL_DEVICE_HOST;
}

/* One name, or names that are left out. */
static const char *take_algo(const char *value)
{
    static const char *const names[][2] = {
        {"ring", "ring"}, {"tree", "double_tree"}, {"pat", "pat"}};
    char list[VALUE_BYTES] = "";
    char copy[VALUE_BYTES];
    bool out = value[0] == '^';
    char *rest = NULL;
    int count = 0;
    (void)snprintf(copy, sizeof copy, "%s", value + out);
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strcasecmp(word, names[i][0]))
                name = names[i][1];
        if (!name && out)
            continue; /* twill has none of it: it is left out */
        if (!name || (count++ && !out))
            return "one of Ring, Tree and PAT, or ^ and several, are understood; see TWILL_ALGO";
        size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s%s", used ? "," : "", out ? "^" : "",
                       name);
    }
    if (!out && has_device())
        return "devices have kernels of their own, far faster than a plan of that name; TWILL_ALGO "
               "has it run all the same";
    return list[0] ? take("ALGO", list) : NULL;
}

static const char *take_proto(const char *value)
{
    return strcasecmp(value, "Simple") ? "twill chooses protocols by itself; Simple is understood"
                                       : take("PROTO", "simple");
}

static const char *take_channels(const char *value) { return take("CHANNELS", value); }
static const char *take_ctas(const char *value) { return take("MAX_SMS", value); }
static const char *take_hostid(const char *value) { return take("HOSTID", value); }
static const char *take_nothing(const char *value)
{
    (void)value;
    return NULL;
}

static const char one_host[] = "the ranks of this version of twill are on one host";
static const char its_own[] = "twill measures and sizes by itself; twill-info lists its parameters";

static const struct variable {
    const char *name; /* without NCCL_ */
    take_fn take;     /* NULL: no effect */
    const char *why;
} variables[] = {
    {"DEBUG", take_debug, NULL},
    {"DEBUG_FILE", take_debug_file, NULL},
    {"DEBUG_SUBSYS", NULL, "TWILL_LOG=level,part=level,... chooses parts of the log"},
    {"P2P_DISABLE", take_p2p_disable, NULL},
    {"P2P_LEVEL", take_p2p_level, NULL},
    {"ALGO", take_algo, NULL},
    {"PROTO", take_proto, NULL},
    {"MAX_NCHANNELS", take_channels, NULL},
    {"MAX_CTAS", take_ctas, NULL},
    {"HOSTID", take_hostid, NULL},
    {"MIN_NCHANNELS", NULL, its_own},
    {"MIN_CTAS", NULL, its_own},
    {"BUFFSIZE", NULL, "TWILL_STAGING and TWILL_DEVICE_STAGING bound all of a process's buffers"},
    {"SHM_DISABLE", NULL, "processes of a host have no other way to each other"},
    {"CUMEM_ENABLE", NULL, its_own},
    {"TOPO_FILE", NULL, "TWILL_TOPO_FILE takes files as twill-topo writes them"},
    {"COMM_ID", NULL, one_host},
    {"SOCKET_IFNAME", NULL, one_host},
    {"SOCKET_FAMILY", NULL, one_host},
    {"IB_HCA", NULL, one_host},
    {"IB_DISABLE", NULL, one_host},
    /* of this file, and labels that images and builds carry */
    {"CONF_FILE", take_nothing, NULL},
    {"VERSION", take_nothing, NULL},
    {"HOME", take_nothing, NULL},
    {"ROOT", take_nothing, NULL},
    {"INCLUDE_DIR", take_nothing, NULL},
    {"LIB_DIR", take_nothing, NULL},
};

static const struct variable *variable_find(const char *name)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!strcmp(variables[i].name, name))
            return &variables[i];
    return NULL;
}

/* ---- where they are -----------------------------------------------------------------------------
 */

static void line_read(char *line, struct settings *settings)
{
    char *name = line + strspn(line, " \t");
    char *equals = strchr(name, '=');
    char spelt[NAME_BYTES + PREFIX_LETTERS];
    line[strcspn(line, "\r\n")] = '\0';
    if (name[0] == '#' || !equals || strncmp(name, PREFIX, PREFIX_LETTERS) != 0)
        return;
    *equals = '\0';
    name += PREFIX_LETTERS;
    name[strcspn(name, " \t")] = '\0';
    (void)snprintf(spelt, sizeof spelt, PREFIX "%s", name);
    if (getenv(spelt) || settings->count == FILE_SETTINGS)
        return; /* the environment is stronger */
    for (size_t i = 0; i < settings->count; i++)
        if (!strcmp(settings->all[i].name, name))
            return;
    equals++;
    (void)snprintf(settings->all[settings->count].name, NAME_BYTES, "%s", name);
    (void)snprintf(settings->all[settings->count].value, VALUE_BYTES, "%s",
                   equals + strspn(equals, " \t"));
    settings->count++;
}

static void file_read(const char *path, struct settings *settings)
{
    char line[NAME_BYTES + VALUE_BYTES];
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        line_read(line, settings);
    (void)fclose(file);
}

/* The file that is named, or the user's; then the machine's. */
static void files_read(struct settings *settings)
{
    char path[4096];
    const char *named = getenv(PREFIX "CONF_FILE");
    const char *home = getenv("HOME");
    if (named) {
        file_read(named, settings);
    } else if (home) {
        (void)snprintf(path, sizeof path, "%s/.nccl.conf", home);
        file_read(path, settings);
    }
    file_read("/etc/nccl.conf", settings);
}

/* ---- taking them over ---------------------------------------------------------------------------
 */

/* What is to be said once the log is open. */
struct remarks {
    char *text; /* owned; lines */
    size_t bytes;
};

static void remark(struct remarks *remarks, const char *line)
{
    size_t more = strlen(line) + 2;
    char *text = realloc(remarks->text, remarks->bytes + more);
    if (!text)
        return;
    remarks->text = text;
    remarks->bytes += (size_t)snprintf(text + remarks->bytes, more, "%s\n", line);
}

static void setting_take(const char *name, const char *value, struct remarks *remarks)
{
    const struct variable *variable = variable_find(name);
    const char *why = "twill has no such setting; twill-info lists its parameters";
    char line[512];
    if (variable)
        why = variable->take ? variable->take(value) : variable->why;
    if (!why)
        return;
    (void)snprintf(line, sizeof line, "nccl: " PREFIX "%s=\"%.100s\" has no effect: %.300s", name,
                   value, why);
    remark(remarks, line);
}

static void environment_take(struct remarks *remarks)
{
    for (char **variable = environ; variable && *variable; variable++) {
        char name[NAME_BYTES];
        const char *equals = strchr(*variable, '=');
        if (!equals || strncmp(*variable, PREFIX, PREFIX_LETTERS) != 0)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *variable) - PREFIX_LETTERS,
                       *variable + PREFIX_LETTERS);
        setting_take(name, equals + 1, remarks);
    }
}

static void version_say(const struct settings *settings)
{
    const char *debug = getenv(PREFIX "DEBUG");
    char interface[32] = "", line[160];
    int version = 0;
    for (size_t i = 0; i < settings->count && !debug; i++)
        if (!strcmp(settings->all[i].name, "DEBUG"))
            debug = settings->all[i].value;
    if (!debug || twill_version(&version) != TWILL_OK ||
        twill_param_get("NCCL_VERSION", interface, sizeof interface) != TWILL_OK)
        return;
    (void)snprintf(line, sizeof line,
                   "nccl: this is twill %d.%d.%d in place of NCCL, and reports version %s",
                   version / 10000, version / 100 % 100, version % 100, interface);
    (void)twill_log_warn(line);
}

void tw_compat_environment(void)
{
    struct settings *settings = calloc(1, sizeof *settings);
    struct remarks remarks = {NULL, 0};
    char *rest = NULL;
    if (!settings)
        return;
    files_read(settings);
    for (size_t i = 0; i < settings->count; i++)
        setting_take(settings->all[i].name, settings->all[i].value, &remarks);
    environment_take(&remarks);
    version_say(settings);
    for (char *line = remarks.text ? strtok_r(remarks.text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        (void)twill_log_warn(line);
    free(remarks.text);
    free(settings);
}
