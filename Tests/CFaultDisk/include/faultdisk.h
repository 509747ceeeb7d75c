#ifndef FAULTDISK_H
#define FAULTDISK_H

#include <stddef.h>
#include <stdint.h>

// Disks in memory on which SQLite keeps files, and which fail on purpose: power cuts, torn writes, calls that go wrong.
//
// For each file a disk knows what is durable (as of the last sync) and what was written since, so that it can say what
// a real one might hold after the power went off. A file is on a disk where its path begins with the disk's directory;
// SQLite finds it there because this file system is the process's default one, and hands every other path on to the
// one that was the default before.

typedef struct faultdisk faultdisk;

// What SQLite calls a disk for; a set of them says which calls are counted, or fail.
enum {
    FAULTDISK_OPEN = 1,
    FAULTDISK_READ = 2,
    FAULTDISK_WRITE = 4,
    FAULTDISK_TRUNCATE = 8,
    FAULTDISK_SYNC = 16,
    FAULTDISK_DELETE = 32,
    FAULTDISK_LOCK = 64,
    FAULTDISK_ALL = 127,
};

// In place of a code of SQLite's: the power goes off at that call.
enum { FAULTDISK_POWER_CUT = -1 };

// How a disk, or the picture of one, differs from a good one.
enum {
    // Syncs do nothing and say that all is well.
    FAULTDISK_SYNC_LIES = 1,
    // Only a process ended: what was written is there, synced or not.
    FAULTDISK_KEEPS_WRITES = 2,
    // What a directory says is on the disk at once, as where a file system keeps its own journal in order.
    FAULTDISK_KEEPS_NAMES = 4,
};

// Makes the file system the default one. Any number of times, from any thread; SQLite's code where that fails.
int faultdisk_register(void);

faultdisk *faultdisk_new(unsigned traits);

// No more is asked of the disk; its files go once SQLite has closed them too.
void faultdisk_free(faultdisk *disk);

// Ends in a slash.
const char *faultdisk_directory(faultdisk *disk);

// The n-th call of these kinds from now fails with the code, and all that follow where `again` is set. A write that
// fails is half done. There is one such order at a time; the newest counts.
void faultdisk_fail(faultdisk *disk, unsigned kinds, uint64_t n, int code, int again);

// Calls go well again. A disk without power stays off.
void faultdisk_end_faults(faultdisk *disk);

// The power goes off now: every call fails until somebody looks at a picture of the disk.
void faultdisk_cut(faultdisk *disk);

int faultdisk_is_off(faultdisk *disk);

// How many calls have failed on order, not counting those after a power cut.
uint64_t faultdisk_failures(faultdisk *disk);

// Calls of these kinds so far.
uint64_t faultdisk_count(faultdisk *disk, unsigned kinds);

// The call that failed last: its kind and file. Valid until the next one fails.
const char *faultdisk_failed_call(faultdisk *disk);

// What the disk may hold when the power is back, as a new disk; the old one is off from then on. What was not synced is
// there or not as the seed says: whole writes or single sectors of 512 bytes, with what lay there before or rubbish in
// between; and names that were made or deleted without a sync of their directory.
faultdisk *faultdisk_image(faultdisk *disk, uint64_t seed, unsigned traits);

// A disk with the same files, while nothing is being written; the old one goes on.
faultdisk *faultdisk_copy(faultdisk *disk, unsigned traits);

#endif
