#ifndef FAULTDISK_DISK_H
#define FAULTDISK_DISK_H

#include "include/faultdisk.h"
#include <pthread.h>
#include <sqlite3.h>

// A growing row of bytes.
typedef struct {
    unsigned char *at;
    size_t size, room;
} fd_bytes;

void fd_put(fd_bytes *bytes, const void *from, size_t size, size_t offset);
void fd_resize(fd_bytes *bytes, size_t size);

// Something that was done to a file since its last sync. `size` is the new length where it was truncated.
typedef struct fd_change {
    struct fd_change *next;
    int is_truncate;
    size_t offset, size;
    unsigned char bytes[];
} fd_change;

struct fd_file;

enum { FD_SHM_LOCKS = SQLITE_SHM_NLOCK };

// A file's content, whatever its name is by now.
typedef struct fd_node {
    struct fd_node *next;
    fd_bytes now, durable;
    fd_change *first, **last;
    int opened;
    // The classic locks.
    int shared;
    struct fd_file *reserved, *pending, *exclusive;
    // The WAL's shared memory: it lives as long as somebody has it mapped.
    int mapped, regions;
    void **region;
    int shm_shared[FD_SHM_LOCKS];
    struct fd_file *shm_exclusive[FD_SHM_LOCKS];
} fd_node;

// A name in the directory: what it leads to now, what it would lead to after a power cut, and the steps between.
typedef struct fd_name {
    struct fd_name *next;
    fd_node *now, *durable;
    int steps, room;
    fd_node **step;
    char text[];
} fd_name;

struct faultdisk {
    struct faultdisk *next;
    pthread_mutex_t mutex;
    unsigned id, traits;
    int opened, is_freed, is_off;
    fd_node *nodes;
    fd_name *names;
    uint64_t counts[7];
    struct {
        unsigned kinds;
        uint64_t left;
        int code, again;
    } order;
    uint64_t failures;
    char failed_call[200];
    char directory[40];
};

// An open file, as SQLite holds it.
typedef struct fd_file {
    sqlite3_file base;
    faultdisk *disk;
    fd_node *node;
    const char *name;
    int level, syncs_directory, has_mapped;
    unsigned shm_shared, shm_exclusive;
} fd_file;

// All of these want the disk's mutex.
int fd_call(faultdisk *disk, unsigned kind, const char *name);
fd_name *fd_find(faultdisk *disk, const char *name);
void fd_lead(faultdisk *disk, const char *name, fd_node *node);
fd_node *fd_node_new(faultdisk *disk);
void fd_change_add(fd_node *node, const void *bytes, size_t size, size_t offset, int is_truncate);
void fd_sync(fd_node *node);
void fd_sync_directory(faultdisk *disk);
void fd_off(faultdisk *disk);

// The disk that a path leads to, locked, and the file's name on it; NULL where it is none of ours.
faultdisk *fd_disk_of(const char *path, const char **name);
void fd_unlock(faultdisk *disk);

extern const sqlite3_io_methods fd_methods;

#endif
