#ifndef TIDEMARK_CZLIB_SHIM_H
#define TIDEMARK_CZLIB_SHIM_H

#include <zlib.h>

#endif
