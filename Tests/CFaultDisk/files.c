#include "disk.h"
#include <stdlib.h>
#include <string.h>

// What SQLite is told; where the power went off at a call, that call only has failed.
static int told(int code, int otherwise) { return code == FAULTDISK_POWER_CUT ? otherwise : code; }

static fd_file *lock(sqlite3_file *base) {
    fd_file *file = (fd_file *)base;
    pthread_mutex_lock(&file->disk->mutex);
    return file;
}

static int unlock(fd_file *file, int code) {
    pthread_mutex_unlock(&file->disk->mutex);
    return code;
}

// MARK: Content

static int fd_read(sqlite3_file *base, void *to, int size, sqlite3_int64 offset) {
    fd_file *file = lock(base);
    int code = fd_call(file->disk, FAULTDISK_READ, file->name);
    if (code) return unlock(file, told(code, SQLITE_IOERR_READ));
    size_t there = file->node->now.size > (size_t)offset ? file->node->now.size - (size_t)offset : 0;
    if (there > (size_t)size) there = (size_t)size;
    if (there) memcpy(to, file->node->now.at + offset, there);
    memset((char *)to + there, 0, (size_t)size - there);
    return unlock(file, there < (size_t)size ? SQLITE_IOERR_SHORT_READ : SQLITE_OK);
}

static int fd_write(sqlite3_file *base, const void *from, int size, sqlite3_int64 offset) {
    fd_file *file = lock(base);
    int was_off = file->disk->is_off, code = fd_call(file->disk, FAULTDISK_WRITE, file->name);
    // A disk that is full, or breaks, takes a part first; how much of it is torn at a power cut the picture decides.
    int taken = code == SQLITE_OK || code == FAULTDISK_POWER_CUT ? size : size / 2;
    if (!was_off && taken) fd_change_add(file->node, from, (size_t)taken, (size_t)offset, 0);
    return unlock(file, told(code, SQLITE_IOERR_WRITE));
}

static int fd_truncate(sqlite3_file *base, sqlite3_int64 size) {
    fd_file *file = lock(base);
    int code = fd_call(file->disk, FAULTDISK_TRUNCATE, file->name);
    if (code == SQLITE_OK || code == FAULTDISK_POWER_CUT) fd_change_add(file->node, NULL, (size_t)size, 0, 1);
    return unlock(file, told(code, SQLITE_IOERR_TRUNCATE));
}

static int fd_file_sync(sqlite3_file *base, int flags) {
    fd_file *file = lock(base);
    int code = fd_call(file->disk, FAULTDISK_SYNC, file->name);
    if (code == SQLITE_OK && !(file->disk->traits & FAULTDISK_SYNC_LIES)) {
        fd_sync(file->node);
        // As SQLite's own file system does for a new journal or WAL.
        if (file->syncs_directory) fd_sync_directory(file->disk);
        file->syncs_directory = 0;
    }
    (void)flags;
    return unlock(file, told(code, SQLITE_IOERR_FSYNC));
}

static int fd_size(sqlite3_file *base, sqlite3_int64 *size) {
    fd_file *file = lock(base);
    *size = (sqlite3_int64)file->node->now.size;
    return unlock(file, file->disk->is_off ? SQLITE_IOERR_FSTAT : SQLITE_OK);
}

// MARK: Locks

static void release(fd_file *file, int level) {
    fd_node *node = file->node;
    if (node->exclusive == file) node->exclusive = NULL;
    if (node->pending == file) node->pending = NULL;
    if (node->reserved == file) node->reserved = NULL;
    if (level == SQLITE_LOCK_NONE && file->level >= SQLITE_LOCK_SHARED) node->shared--;
    file->level = level;
}

static int fd_lock(sqlite3_file *base, int level) {
    fd_file *file = lock(base);
    fd_node *node = file->node;
    if (file->level >= level) return unlock(file, SQLITE_OK);
    int code = fd_call(file->disk, FAULTDISK_LOCK, file->name);
    if (code) return unlock(file, told(code, SQLITE_IOERR_LOCK));
    int others_write = (node->pending && node->pending != file) || (node->exclusive && node->exclusive != file);
    if (others_write) return unlock(file, SQLITE_BUSY);
    if (level == SQLITE_LOCK_SHARED) {
        node->shared++;
        file->level = SQLITE_LOCK_SHARED;
        return unlock(file, SQLITE_OK);
    }
    if (node->reserved && node->reserved != file) return unlock(file, SQLITE_BUSY);
    if (level == SQLITE_LOCK_RESERVED) {
        node->reserved = file;
        file->level = SQLITE_LOCK_RESERVED;
        return unlock(file, SQLITE_OK);
    }
    node->pending = file;
    file->level = SQLITE_LOCK_PENDING;
    if (node->shared > 1) return unlock(file, SQLITE_BUSY);
    node->exclusive = file;
    file->level = SQLITE_LOCK_EXCLUSIVE;
    return unlock(file, SQLITE_OK);
}

static int fd_unlock_file(sqlite3_file *base, int level) {
    fd_file *file = lock(base);
    if (file->level > level) release(file, level);
    return unlock(file, SQLITE_OK);
}

static int fd_check_reserved(sqlite3_file *base, int *is_reserved) {
    fd_file *file = lock(base);
    *is_reserved = file->node->reserved || file->node->pending || file->node->exclusive;
    return unlock(file, file->disk->is_off ? SQLITE_IOERR_CHECKRESERVEDLOCK : SQLITE_OK);
}

// MARK: The WAL's shared memory

static int fd_shm_map(sqlite3_file *base, int index, int size, int extends, void volatile **at) {
    fd_file *file = lock(base);
    fd_node *node = file->node;
    *at = NULL;
    if (file->disk->is_off) return unlock(file, SQLITE_IOERR_SHMMAP);
    if (!file->has_mapped) {
        file->has_mapped = 1;
        node->mapped++;
    }
    if (index >= node->regions && extends) {
        node->region = realloc(node->region, (size_t)(index + 1) * sizeof *node->region);
        if (!node->region) abort();
        while (node->regions <= index) {
            node->region[node->regions] = calloc(1, (size_t)size);
            if (!node->region[node->regions++]) abort();
        }
    }
    if (index < node->regions) *at = node->region[index];
    return unlock(file, SQLITE_OK);
}

static int shm_take(fd_file *file, int offset, int count, int is_exclusive) {
    fd_node *node = file->node;
    for (int i = offset; i < offset + count; i++) {
        if (node->shm_exclusive[i] && node->shm_exclusive[i] != file) return SQLITE_BUSY;
        int own = file->shm_shared >> i & 1;
        if (is_exclusive && node->shm_shared[i] > own) return SQLITE_BUSY;
    }
    for (int i = offset; i < offset + count; i++) {
        if (is_exclusive) {
            node->shm_exclusive[i] = file;
            file->shm_exclusive |= 1u << i;
        } else if (!(file->shm_shared >> i & 1)) {
            node->shm_shared[i]++;
            file->shm_shared |= 1u << i;
        }
    }
    return SQLITE_OK;
}

static void shm_leave(fd_file *file, int offset, int count) {
    for (int i = offset; i < offset + count; i++) {
        if (file->shm_exclusive >> i & 1) file->node->shm_exclusive[i] = NULL;
        if (file->shm_shared >> i & 1) file->node->shm_shared[i]--;
        file->shm_exclusive &= ~(1u << i);
        file->shm_shared &= ~(1u << i);
    }
}

static int fd_shm_lock(sqlite3_file *base, int offset, int count, int flags) {
    fd_file *file = lock(base);
    if (flags & SQLITE_SHM_UNLOCK) {
        shm_leave(file, offset, count);
        return unlock(file, SQLITE_OK);
    }
    int code = fd_call(file->disk, FAULTDISK_LOCK, file->name);
    if (code) return unlock(file, told(code, SQLITE_IOERR_SHMLOCK));
    return unlock(file, shm_take(file, offset, count, (flags & SQLITE_SHM_EXCLUSIVE) != 0));
}

static void fd_shm_barrier(sqlite3_file *base) {
    (void)lock(base);
    unlock((fd_file *)base, SQLITE_OK);
}

static void shm_unmap(fd_file *file) {
    fd_node *node = file->node;
    shm_leave(file, 0, FD_SHM_LOCKS);
    if (!file->has_mapped) return;
    file->has_mapped = 0;
    if (--node->mapped > 0) return;
    for (int i = 0; i < node->regions; i++) free(node->region[i]);
    free(node->region);
    node->region = NULL;
    node->regions = 0;
}

static int fd_shm_unmap(sqlite3_file *base, int deletes) {
    fd_file *file = lock(base);
    shm_unmap(file);
    (void)deletes;
    return unlock(file, SQLITE_OK);
}

// MARK: The rest

static int fd_close(sqlite3_file *base) {
    fd_file *file = lock(base);
    faultdisk *disk = file->disk;
    release(file, SQLITE_LOCK_NONE);
    shm_unmap(file);
    file->node->opened--;
    disk->opened--;
    fd_unlock(disk);
    return SQLITE_OK;
}

static int fd_control(sqlite3_file *base, int request, void *value) {
    (void)base, (void)request, (void)value;
    return SQLITE_NOTFOUND;
}

static int fd_sector_size(sqlite3_file *base) {
    (void)base;
    return 4096;
}

// The same promise as SQLite's own file system on Linux and Apple's systems.
static int fd_characteristics(sqlite3_file *base) {
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

const sqlite3_io_methods fd_methods = {
    .iVersion = 2,
    .xClose = fd_close,
    .xRead = fd_read,
    .xWrite = fd_write,
    .xTruncate = fd_truncate,
    .xSync = fd_file_sync,
    .xFileSize = fd_size,
    .xLock = fd_lock,
    .xUnlock = fd_unlock_file,
    .xCheckReservedLock = fd_check_reserved,
    .xFileControl = fd_control,
    .xSectorSize = fd_sector_size,
    .xDeviceCharacteristics = fd_characteristics,
    .xShmMap = fd_shm_map,
    .xShmLock = fd_shm_lock,
    .xShmBarrier = fd_shm_barrier,
    .xShmUnmap = fd_shm_unmap,
};
