#ifndef TIDEMARK_CBROTLI_SHIM_H
#define TIDEMARK_CBROTLI_SHIM_H

#include <brotli/encode.h>

#endif
