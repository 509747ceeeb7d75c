#include "connection_switch.h"

#include <sqlite3.h>

int tidemark_switch(void *connection, enum tidemark_option option, int enabled, int *was) {
    int operation = option == TIDEMARK_TRIGGERS ? SQLITE_DBCONFIG_ENABLE_TRIGGER : SQLITE_DBCONFIG_ENABLE_FKEY;
    int code = sqlite3_db_config((sqlite3 *)connection, operation, -1, was);
    if (code != SQLITE_OK || enabled < 0) return code;
    return sqlite3_db_config((sqlite3 *)connection, operation, enabled, (int *)0);
}
