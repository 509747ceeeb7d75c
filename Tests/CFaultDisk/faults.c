#include "disk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_names[] = {"open", "read", "write", "truncate", "sync", "delete", "lock"};

static int kind_index(unsigned kind) {
    int index = 0;
    while (kind >> (index + 1)) index++;
    return index;
}

void fd_off(faultdisk *disk) { disk->is_off = 1; }

// Counts a call and says how it ends: SQLITE_OK, or the code that was ordered, or an error where the power is off. At
// the very call that the power goes off at, FAULTDISK_POWER_CUT: what it was to do may be half done.
int fd_call(faultdisk *disk, unsigned kind, const char *name) {
    if (disk->is_off) return SQLITE_IOERR;
    int index = kind_index(kind);
    disk->counts[index]++;
    if (!(disk->order.kinds & kind) || --disk->order.left > 0) return SQLITE_OK;
    int code = disk->order.code;
    if (disk->order.again) disk->order.left = 1;
    else disk->order.kinds = 0;
    disk->failures++;
    snprintf(disk->failed_call, sizeof disk->failed_call, "%s %s", kind_names[index], name);
    if (code == FAULTDISK_POWER_CUT) fd_off(disk);
    return code;
}

void faultdisk_fail(faultdisk *disk, unsigned kinds, uint64_t n, int code, int again) {
    pthread_mutex_lock(&disk->mutex);
    disk->order.kinds = n ? kinds : 0;
    disk->order.left = n;
    disk->order.code = code;
    disk->order.again = again;
    pthread_mutex_unlock(&disk->mutex);
}

void faultdisk_end_faults(faultdisk *disk) { faultdisk_fail(disk, 0, 0, 0, 0); }

void faultdisk_cut(faultdisk *disk) {
    pthread_mutex_lock(&disk->mutex);
    fd_off(disk);
    pthread_mutex_unlock(&disk->mutex);
}

int faultdisk_is_off(faultdisk *disk) {
    pthread_mutex_lock(&disk->mutex);
    int is_off = disk->is_off;
    pthread_mutex_unlock(&disk->mutex);
    return is_off;
}

uint64_t faultdisk_failures(faultdisk *disk) {
    pthread_mutex_lock(&disk->mutex);
    uint64_t failures = disk->failures;
    pthread_mutex_unlock(&disk->mutex);
    return failures;
}

uint64_t faultdisk_count(faultdisk *disk, unsigned kinds) {
    uint64_t sum = 0;
    pthread_mutex_lock(&disk->mutex);
    for (int i = 0; i < 7; i++) sum += kinds >> i & 1 ? disk->counts[i] : 0;
    pthread_mutex_unlock(&disk->mutex);
    return sum;
}

const char *faultdisk_failed_call(faultdisk *disk) { return disk->failed_call; }

// MARK: Pictures of a disk whose power went off

enum { SECTOR = 512 };

static uint64_t roll(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

// How much of what was not synced is there. Each kind of loss finds mistakes that the others hide.
typedef enum { KEEP_NOTHING, KEEP_ALL, KEEP_BEGINNING, KEEP_SOME, KEEP_SECTORS } fd_keep;

// Writes a part of a change; what lies between the end of the file and it is rubbish or zero.
static void keep(fd_bytes *image, const fd_change *change, size_t from, size_t to, int has_rubbish, uint64_t *state) {
    size_t end = image->size;
    fd_put(image, change->bytes + from, to - from, change->offset + from);
    for (size_t at = end; has_rubbish && at < change->offset + from; at++) image->at[at] = (unsigned char)roll(state);
}

static void keep_sectors(fd_bytes *image, const fd_change *change, int chance, int has_rubbish, uint64_t *state) {
    for (size_t from = 0; from < change->size;) {
        size_t to = from + SECTOR - (change->offset + from) % SECTOR;
        if (to > change->size) to = change->size;
        if ((int)(roll(state) % 100) < chance) keep(image, change, from, to, has_rubbish, state);
        from = to;
    }
}

static void image_node(const fd_node *node, fd_bytes *image, int keeps_all, uint64_t *state) {
    fd_put(image, node->durable.at ? (const void *)node->durable.at : "", node->durable.size, 0);
    int count = 0;
    for (fd_change *change = node->first; change; change = change->next) count++;
    fd_keep kept = keeps_all ? KEEP_ALL : (fd_keep)(roll(state) % 5);
    int beginning = (int)(roll(state) % (uint64_t)(count + 1));
    int chance = 5 + (int)(roll(state) % 91);
    int has_rubbish = roll(state) % 2 == 0;
    for (fd_change *change = node->first; change; change = change->next) {
        switch (kept) {
        case KEEP_NOTHING: continue;
        case KEEP_ALL: break;
        case KEEP_BEGINNING:
            // The last one of them may be torn.
            if (beginning == 0) continue;
            if (--beginning > 0) break;
            if (!change->is_truncate) keep_sectors(image, change, chance, has_rubbish, state);
            continue;
        case KEEP_SOME:
            if ((int)(roll(state) % 100) >= chance) continue;
            break;
        case KEEP_SECTORS:
            if (change->is_truncate && (int)(roll(state) % 100) >= chance) continue;
            if (change->is_truncate) break;
            keep_sectors(image, change, chance, has_rubbish, state);
            continue;
        }
        if (change->is_truncate) fd_resize(image, change->size);
        else keep(image, change, 0, change->size, has_rubbish, state);
    }
}

static faultdisk *picture(faultdisk *disk, uint64_t state, unsigned traits, int turns_off) {
    faultdisk *image = faultdisk_new(traits);
    int keeps_writes = (traits & FAULTDISK_KEEPS_WRITES) != 0;
    pthread_mutex_lock(&disk->mutex);
    if (turns_off) fd_off(disk);
    for (fd_name *name = disk->names; name; name = name->next) {
        int step = keeps_writes ? name->steps : (int)(roll(&state) % (uint64_t)(name->steps + 1));
        fd_node *node = step ? name->step[step - 1] : name->durable;
        if (!node) continue;
        fd_node *copy = fd_node_new(image);
        image_node(node, &copy->now, keeps_writes, &state);
        fd_put(&copy->durable, copy->now.at ? (const void *)copy->now.at : "", copy->now.size, 0);
        fd_lead(image, name->text, copy);
    }
    pthread_mutex_unlock(&disk->mutex);
    pthread_mutex_lock(&image->mutex);
    fd_sync_directory(image);
    pthread_mutex_unlock(&image->mutex);
    return image;
}

faultdisk *faultdisk_image(faultdisk *disk, uint64_t seed, unsigned traits) { return picture(disk, seed, traits, 1); }

faultdisk *faultdisk_copy(faultdisk *disk, unsigned traits) {
    return picture(disk, 0, traits | FAULTDISK_KEEPS_WRITES, 0);
}
