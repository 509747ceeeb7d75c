#ifndef TIDEMARK_CBROTLIDECODER_SHIM_H
#define TIDEMARK_CBROTLIDECODER_SHIM_H

#include <brotli/decode.h>

#endif
