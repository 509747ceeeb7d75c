#ifndef TIDEMARK_TRIGGER_SWITCH_H
#define TIDEMARK_TRIGGER_SWITCH_H

// Switches a connection's triggers on (1) or off (0), or asks how they are (-1): `was` says how they were before.
// Returns SQLite's result code. In C because sqlite3_db_config takes variable arguments, which Swift does not import.
int tidemark_set_triggers(void *connection, int enabled, int *was);

#endif
