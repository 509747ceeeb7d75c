#include "sessions.h"

#include <sqlite3.h>

// Apple's library does not offer the extension to apps.
#if defined(__APPLE__) && !defined(SQLITE_ENABLE_SESSION)

int tidemark_sessions_exist(void) { return 0; }
int tidemark_session_begin(void *connection, void **session) { return SQLITE_ERROR; }
int tidemark_session_attach(void *session, const char *table) { return SQLITE_ERROR; }
int tidemark_session_patchset(void *session, int *size, void **bytes) { return SQLITE_ERROR; }
void tidemark_session_free(void *bytes) {}
void tidemark_session_end(void *session) {}
int tidemark_patchset_apply(void *connection, int size, const void *bytes) { return SQLITE_ERROR; }

#else

// The system's header declares them only where it was asked to.
#if !defined(SQLITE_ENABLE_SESSION)
typedef struct sqlite3_session sqlite3_session;
typedef struct sqlite3_changeset_iter sqlite3_changeset_iter;
#define SQLITE_CHANGESET_DATA 1
#define SQLITE_CHANGESET_NOTFOUND 2
#define SQLITE_CHANGESET_CONFLICT 3
#define SQLITE_CHANGESET_FOREIGN_KEY 5
#define SQLITE_CHANGESET_OMIT 0
#define SQLITE_CHANGESET_REPLACE 1
#define SQLITE_CHANGESET_ABORT 2
#endif

#pragma weak sqlite3session_create
#pragma weak sqlite3session_attach
#pragma weak sqlite3session_patchset
#pragma weak sqlite3session_delete
#pragma weak sqlite3changeset_apply
extern int sqlite3session_create(sqlite3 *, const char *, sqlite3_session **);
extern int sqlite3session_attach(sqlite3_session *, const char *);
extern int sqlite3session_patchset(sqlite3_session *, int *, void **);
extern void sqlite3session_delete(sqlite3_session *);
extern int sqlite3changeset_apply(
    sqlite3 *, int, void *, int (*)(void *, const char *), int (*)(void *, int, sqlite3_changeset_iter *), void *);

int tidemark_sessions_exist(void) {
    return sqlite3session_create && sqlite3session_attach && sqlite3session_patchset && sqlite3session_delete
        && sqlite3changeset_apply;
}

int tidemark_session_begin(void *connection, void **session) {
    if (!tidemark_sessions_exist()) return SQLITE_ERROR;
    return sqlite3session_create((sqlite3 *)connection, "main", (sqlite3_session **)session);
}

int tidemark_session_attach(void *session, const char *table) {
    return sqlite3session_attach((sqlite3_session *)session, table);
}

int tidemark_session_patchset(void *session, int *size, void **bytes) {
    return sqlite3session_patchset((sqlite3_session *)session, size, bytes);
}

void tidemark_session_free(void *bytes) { sqlite3_free(bytes); }

void tidemark_session_end(void *session) { sqlite3session_delete((sqlite3_session *)session); }

static int decide(void *context, int conflict, sqlite3_changeset_iter *change) {
    (void)context;
    (void)change;
    switch (conflict) {
    case SQLITE_CHANGESET_DATA:
    case SQLITE_CHANGESET_CONFLICT: return SQLITE_CHANGESET_REPLACE;
    case SQLITE_CHANGESET_NOTFOUND:
    // References are checked when all is there; what dangles then dangles where the changes come from, too.
    case SQLITE_CHANGESET_FOREIGN_KEY: return SQLITE_CHANGESET_OMIT;
    default: return SQLITE_CHANGESET_ABORT;
    }
}

int tidemark_patchset_apply(void *connection, int size, const void *bytes) {
    if (!tidemark_sessions_exist()) return SQLITE_ERROR;
    return sqlite3changeset_apply((sqlite3 *)connection, size, (void *)bytes, 0, decide, 0);
}

#endif
