#include "trigger_switch.h"

#include <sqlite3.h>

int tidemark_set_triggers(void *connection, int enabled) {
    return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled, (int *)0);
}
