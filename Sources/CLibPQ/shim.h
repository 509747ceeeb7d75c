#ifndef TIDEMARK_CLIBPQ_SHIM_H
#define TIDEMARK_CLIBPQ_SHIM_H

#include <libpq-fe.h>

/* Character constants, which Swift does not import by themselves. */
enum {
    TIDEMARK_DIAG_SEVERITY = PG_DIAG_SEVERITY_NONLOCALIZED,
    TIDEMARK_DIAG_SQLSTATE = PG_DIAG_SQLSTATE,
    TIDEMARK_DIAG_MESSAGE = PG_DIAG_MESSAGE_PRIMARY
};

#endif
