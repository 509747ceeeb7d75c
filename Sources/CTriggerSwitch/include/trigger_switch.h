#ifndef TIDEMARK_TRIGGER_SWITCH_H
#define TIDEMARK_TRIGGER_SWITCH_H

// Switches a connection's triggers on or off and returns SQLite's result code. In C because sqlite3_db_config takes
// variable arguments, which Swift does not import.
int tidemark_set_triggers(void *connection, int enabled);

#endif
