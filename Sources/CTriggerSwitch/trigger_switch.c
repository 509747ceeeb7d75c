#include "trigger_switch.h"

#include <sqlite3.h>

int tidemark_set_triggers(void *connection, int enabled, int *was) {
    int code = sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, -1, was);
    if (code != SQLITE_OK || enabled < 0) return code;
    return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled, (int *)0);
}
