/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: how to find which libnccl.so.2 a process has, or a program would load, and whether that is
 * twill's. Never knows: what is in such a library. */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "info.h"

#define LIBRARY "libnccl.so"

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "twill-info: %s: %s\n", path, why);
    return 1;
}

/* ---- files --------------------------------------------------------------------------------------
 */

struct image {
    const char *bytes; /* mapped; NULL: empty */
    size_t count;
};

static bool image_open(const char *path, struct image *image)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *image = (struct image){NULL, 0};
    bool good = fd >= 0 && fstat(fd, &about) == 0;
    if (good && !S_ISREG(about.st_mode)) {
        errno = EINVAL;
        good = false;
    }
    if (good && about.st_size > 0) {
        void *at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        good = at != MAP_FAILED;
        if (good)
            *image = (struct image){at, (size_t)about.st_size};
        /* cppcheck-suppress memleak ; the image has it */
    }
    if (fd >= 0)
        (void)close(fd);
    return good;
}

static void image_close(const struct image *image)
{
    if (image->bytes)
        (void)munmap((void *)(uintptr_t)image->bytes, image->count);
}

/* The program that loads it. @return "": it names none, as libraries do; NULL: not such a file */
static const char *loader_of(const struct image *image)
{
    Elf64_Ehdr head;
    if (image->count < sizeof head)
        return NULL;
    memcpy(&head, image->bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return NULL;
    for (size_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        const size_t at = head.e_phoff + i * sizeof part;
        if (at < head.e_phoff || at > image->count || image->count - at < sizeof part)
            return NULL;
        memcpy(&part, image->bytes + at, sizeof part);
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_offset > image->count || part.p_filesz > image->count - part.p_offset ||
            !part.p_filesz || image->bytes[part.p_offset + part.p_filesz - 1])
            return NULL;
        return image->bytes + part.p_offset;
    }
    return "";
}

/* A sentence that only twill's has. */
static bool is_twill(const char *path)
{
    static const char mark[] = "in place of NCCL, and reports version";
    struct image image;
    if (!image_open(path, &image))
        return false;
    bool found = image.bytes && memmem(image.bytes, image.count, mark, sizeof mark - 1) != NULL;
    image_close(&image);
    return found;
}

/* ---- what is said -------------------------------------------------------------------------------
 */

/* The library that a line names: of a loader's list or of a process's map. */
static bool line_library(const char *line, char path[PATH_MAX])
{
    const char *slash = strchr(line, '/');
    const char *name = slash;
    if (!slash)
        return false;
    size_t length = strcspn(slash, " \n");
    for (const char *at = slash; at < slash + length; at++)
        if (*at == '/')
            name = at + 1;
    if (strncmp(name, LIBRARY, sizeof LIBRARY - 1) != 0 || length >= PATH_MAX)
        return false;
    memcpy(path, slash, length);
    path[length] = '\0';
    return true;
}

/* Each library once. @return how many there were */
static int lines_show(FILE *in)
{
    char line[PATH_MAX + 256], path[PATH_MAX], last[PATH_MAX] = "";
    int count = 0;
    while (fgets(line, sizeof line, in)) {
        if (strstr(line, LIBRARY ".2 => not found")) {
            printf(LIBRARY ".2: not found\n");
            count++;
        }
        if (!line_library(line, path) || !strcmp(path, last))
            continue;
        (void)snprintf(last, sizeof last, "%s", path);
        printf("%s: %s\n", path, is_twill(path) ? "twill's" : "not twill's");
        count++;
    }
    return count;
}

static int process_show(const char *number)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%.20s/maps", number);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return fail(path, strerror(errno));
    if (!lines_show(maps))
        printf("process %s has no " LIBRARY ".2 loaded\n", number);
    (void)fclose(maps);
    return 0;
}

/* What the loader would do, with this environment. */
static FILE *loader_list(const char *loader, const char *path, pid_t *pid)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    *pid = fork();
    if (*pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(loader, loader, "--list", path, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *list = *pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (!list)
        (void)close(ends[0]);
    return list;
}

static int listed_show(const char *loader, const char *path)
{
    char full[PATH_MAX];
    int status = 0;
    pid_t pid = -1;
    if (!realpath(path, full))
        return fail(path, strerror(errno));
    FILE *list = loader_list(loader, full, &pid);
    if (!list)
        return fail(path, strerror(errno));
    int count = lines_show(list);
    (void)fclose(list);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(path, "the loader cannot list what it needs");
    if (!count)
        printf("%s is not linked with " LIBRARY ".2; it may open one later, which --nccl with the "
               "process's number shows\n",
               path);
    return 0;
}

static int file_show(const char *path)
{
    struct image own, image;
    int status = 1;
    if (!image_open(path, &image))
        return fail(path, strerror(errno));
    if (!image_open("/proc/self/exe", &own)) {
        image_close(&image);
        return fail("/proc/self/exe", strerror(errno));
    }
    const char *loader = loader_of(&image);
    if (loader && !*loader)
        loader = loader_of(&own); /* a library goes by the loader of programs, as of this one */
    if (loader && *loader)
        status = listed_show(loader, path);
    else
        status = fail(path, "neither a program nor a library that is loaded dynamically");
    image_close(&own);
    image_close(&image);
    return status;
}

int info_nccl(const char *what)
{
    return *what && strspn(what, "0123456789") == strlen(what) ? process_show(what)
                                                               : file_show(what);
}
