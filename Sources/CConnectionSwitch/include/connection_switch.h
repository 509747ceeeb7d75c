#ifndef TIDEMARK_CONNECTION_SWITCH_H
#define TIDEMARK_CONNECTION_SWITCH_H

enum tidemark_option { TIDEMARK_TRIGGERS, TIDEMARK_FOREIGN_KEYS };

// Switches a connection's option on (1) or off (0), or asks how it is (-1): `was` says how it was before.
// Returns SQLite's result code. In C because sqlite3_db_config takes variable arguments, which Swift does not import.
int tidemark_switch(void *connection, enum tidemark_option option, int enabled, int *was);

#endif
