#include "disk.h"
#include <string.h>

// The file system as SQLite sees it: paths on a disk of ours are answered here, all others by the one before.

static sqlite3_vfs *before;

static int fd_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *base, int flags, int *taken) {
    const char *name;
    faultdisk *disk = fd_disk_of(path, &name);
    (void)vfs;
    if (!disk) return before->xOpen(before, path, base, flags, taken);
    base->pMethods = NULL;
    int code = fd_call(disk, FAULTDISK_OPEN, name);
    fd_name *found = fd_find(disk, name);
    fd_node *node = found ? found->now : NULL;
    if (!code && (node ? flags & SQLITE_OPEN_EXCLUSIVE : !(flags & SQLITE_OPEN_CREATE))) code = SQLITE_CANTOPEN;
    if (code) {
        fd_unlock(disk);
        return code == FAULTDISK_POWER_CUT ? SQLITE_CANTOPEN : code;
    }
    fd_file *file = (fd_file *)base;
    int is_journal = flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL);
    *file = (fd_file){.disk = disk, .name = name};
    file->syncs_directory = is_journal && flags & SQLITE_OPEN_CREATE;
    if (!node) {
        node = fd_node_new(disk);
        fd_lead(disk, name, node);
    }
    file->node = node;
    node->opened++;
    disk->opened++;
    base->pMethods = &fd_methods;
    if (taken) *taken = flags;
    fd_unlock(disk);
    return SQLITE_OK;
}

static int fd_delete(sqlite3_vfs *vfs, const char *path, int syncs_directory) {
    const char *name;
    faultdisk *disk = fd_disk_of(path, &name);
    (void)vfs;
    if (!disk) return before->xDelete(before, path, syncs_directory);
    int code = fd_call(disk, FAULTDISK_DELETE, name);
    if (code == SQLITE_OK || code == FAULTDISK_POWER_CUT) {
        fd_name *found = fd_find(disk, name);
        if (found && found->now) fd_lead(disk, name, NULL);
        else if (!code) code = SQLITE_IOERR_DELETE_NOENT;
        if (!code && syncs_directory && !(disk->traits & FAULTDISK_SYNC_LIES)) fd_sync_directory(disk);
    }
    fd_unlock(disk);
    return code == FAULTDISK_POWER_CUT ? SQLITE_IOERR_DELETE : code;
}

static int fd_access(sqlite3_vfs *vfs, const char *path, int flags, int *result) {
    const char *name;
    faultdisk *disk = fd_disk_of(path, &name);
    (void)vfs;
    if (!disk) return before->xAccess(before, path, flags, result);
    fd_name *found = fd_find(disk, name);
    // An empty file counts as none, as it does for SQLite's own file system.
    *result = found && found->now && (flags != SQLITE_ACCESS_EXISTS || found->now->now.size > 0);
    int code = disk->is_off ? SQLITE_IOERR_ACCESS : SQLITE_OK;
    fd_unlock(disk);
    return code;
}

static int fd_full_path(sqlite3_vfs *vfs, const char *path, int size, char *to) {
    const char *name;
    faultdisk *disk = fd_disk_of(path, &name);
    (void)vfs;
    if (!disk) return before->xFullPathname(before, path, size, to);
    fd_unlock(disk);
    if (strlen(path) >= (size_t)size) return SQLITE_CANTOPEN;
    strcpy(to, path);
    return SQLITE_OK;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int registered = SQLITE_ERROR;
static sqlite3_vfs system;

static void register_once(void) {
    if (sqlite3_initialize() || !(before = sqlite3_vfs_find(NULL))) return;
    // Clock, dice and loading stay as they are.
    system = *before;
    if (system.szOsFile < (int)sizeof(fd_file)) system.szOsFile = sizeof(fd_file);
    system.zName = "faultdisk";
    system.pNext = NULL;
    system.xOpen = fd_open;
    system.xDelete = fd_delete;
    system.xAccess = fd_access;
    system.xFullPathname = fd_full_path;
    registered = sqlite3_vfs_register(&system, 1);
}

int faultdisk_register(void) {
    pthread_once(&once, register_once);
    return registered;
}
