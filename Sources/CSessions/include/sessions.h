#ifndef TIDEMARK_SESSIONS_H
#define TIDEMARK_SESSIONS_H

// SQLite's session extension, which a library may have been built without: its functions are then absent when the
// program runs, and these return SQLITE_ERROR. In C because Swift cannot ask whether a function is there.

// Whether the SQLite library has the extension.
int tidemark_sessions_exist(void);

// Begins to record a connection's changes of some tables. Returns SQLite's result code.
int tidemark_session_begin(void *connection, void **session);
int tidemark_session_attach(void *session, const char *table);

// What the rows have become since, as a patchset of `size` bytes that belongs to the caller (tidemark_session_free).
int tidemark_session_patchset(void *session, int *size, void **bytes);
void tidemark_session_free(void *bytes);
void tidemark_session_end(void *session);

// Makes the changes of a patchset. A row that is there already is replaced, one that is not there is passed over, and
// where a constraint is broken nothing is changed.
int tidemark_patchset_apply(void *connection, int size, const void *bytes);

#endif
