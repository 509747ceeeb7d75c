#include "disk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static faultdisk *all;
static unsigned last_id;

// MARK: Bytes

static void *checked(void *memory) {
    // A test that runs out of memory has nothing to say about the disk.
    if (!memory) abort();
    return memory;
}

void fd_resize(fd_bytes *bytes, size_t size) {
    if (size > bytes->room) {
        bytes->room = size * 2 > 4096 ? size * 2 : 4096;
        bytes->at = checked(realloc(bytes->at, bytes->room));
    }
    if (size > bytes->size) memset(bytes->at + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

void fd_put(fd_bytes *bytes, const void *from, size_t size, size_t offset) {
    if (offset + size > bytes->size) fd_resize(bytes, offset + size);
    memcpy(bytes->at + offset, from, size);
}

// MARK: Files

fd_node *fd_node_new(faultdisk *disk) {
    fd_node *node = checked(calloc(1, sizeof *node));
    node->last = &node->first;
    node->next = disk->nodes;
    disk->nodes = node;
    return node;
}

static void forget_changes(fd_node *node) {
    while (node->first) {
        fd_change *change = node->first;
        node->first = change->next;
        free(change);
    }
    node->last = &node->first;
}

static void node_free(fd_node *node) {
    forget_changes(node);
    for (int i = 0; i < node->regions; i++) free(node->region[i]);
    free(node->region);
    free(node->now.at);
    free(node->durable.at);
    free(node);
}

void fd_change_add(fd_node *node, const void *bytes, size_t size, size_t offset, int is_truncate) {
    size_t held = is_truncate ? 0 : size;
    fd_change *change = checked(malloc(sizeof *change + held));
    *change = (fd_change){.is_truncate = is_truncate, .offset = offset, .size = size};
    if (held) memcpy(change->bytes, bytes, held);
    *node->last = change;
    node->last = &change->next;
    if (is_truncate) fd_resize(&node->now, size);
    else fd_put(&node->now, bytes, size, offset);
}

void fd_sync(fd_node *node) {
    for (fd_change *change = node->first; change; change = change->next) {
        if (change->is_truncate) fd_resize(&node->durable, change->size);
        else fd_put(&node->durable, change->bytes, change->size, change->offset);
    }
    forget_changes(node);
}

// MARK: Names

fd_name *fd_find(faultdisk *disk, const char *text) {
    fd_name *name = disk->names;
    while (name && strcmp(name->text, text)) name = name->next;
    return name;
}

void fd_lead(faultdisk *disk, const char *text, fd_node *node) {
    fd_name *name = fd_find(disk, text);
    if (!name) {
        name = checked(calloc(1, sizeof *name + strlen(text) + 1));
        strcpy(name->text, text);
        name->next = disk->names;
        disk->names = name;
    }
    name->now = node;
    if (disk->traits & FAULTDISK_KEEPS_NAMES) {
        name->durable = node;
        return;
    }
    if (name->steps == name->room) {
        name->room = name->room * 2 + 4;
        name->step = checked(realloc(name->step, (size_t)name->room * sizeof *name->step));
    }
    name->step[name->steps++] = node;
}

static int is_named(faultdisk *disk, fd_node *node) {
    for (fd_name *name = disk->names; name; name = name->next) {
        if (name->now == node || name->durable == node) return 1;
        for (int i = 0; i < name->steps; i++) {
            if (name->step[i] == node) return 1;
        }
    }
    return 0;
}

void fd_sync_directory(faultdisk *disk) {
    for (fd_name *name = disk->names; name; name = name->next) {
        name->durable = name->now;
        name->steps = 0;
    }
    // A journal per transaction: those that no name leads to any more would pile up.
    for (fd_node **at = &disk->nodes; *at;) {
        fd_node *node = *at;
        if (node->opened || is_named(disk, node)) {
            at = &node->next;
        } else {
            *at = node->next;
            node_free(node);
        }
    }
}

// MARK: Disks

faultdisk *faultdisk_new(unsigned traits) {
    faultdisk *disk = checked(calloc(1, sizeof *disk));
    pthread_mutex_init(&disk->mutex, NULL);
    disk->traits = traits;
    pthread_mutex_lock(&all_mutex);
    disk->id = ++last_id;
    snprintf(disk->directory, sizeof disk->directory, "/faultdisk-%u/", disk->id);
    disk->next = all;
    all = disk;
    pthread_mutex_unlock(&all_mutex);
    return disk;
}

const char *faultdisk_directory(faultdisk *disk) { return disk->directory; }

faultdisk *fd_disk_of(const char *path, const char **name) {
    unsigned id;
    int end = 0;
    if (!path || sscanf(path, "/faultdisk-%u/%n", &id, &end) != 1 || !end) return NULL;
    pthread_mutex_lock(&all_mutex);
    faultdisk *disk = all;
    while (disk && disk->id != id) disk = disk->next;
    if (disk) pthread_mutex_lock(&disk->mutex);
    pthread_mutex_unlock(&all_mutex);
    *name = path + end;
    return disk;
}

static void destroy(faultdisk *disk) {
    while (disk->nodes) {
        fd_node *node = disk->nodes;
        disk->nodes = node->next;
        node_free(node);
    }
    while (disk->names) {
        fd_name *name = disk->names;
        disk->names = name->next;
        free(name->step);
        free(name);
    }
    pthread_mutex_destroy(&disk->mutex);
    free(disk);
}

void fd_unlock(faultdisk *disk) {
    int is_last = disk->is_freed && disk->opened == 0;
    pthread_mutex_unlock(&disk->mutex);
    if (is_last) destroy(disk);
}

void faultdisk_free(faultdisk *disk) {
    pthread_mutex_lock(&all_mutex);
    faultdisk **at = &all;
    while (*at != disk) at = &(*at)->next;
    *at = disk->next;
    // Taken while the list is locked: whoever has found the disk there is done with it before it goes.
    pthread_mutex_lock(&disk->mutex);
    pthread_mutex_unlock(&all_mutex);
    disk->is_freed = disk->is_off = 1;
    fd_unlock(disk);
}
