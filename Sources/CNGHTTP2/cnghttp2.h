#ifndef SLUICE_CNGHTTP2_H
#define SLUICE_CNGHTTP2_H
#include <nghttp2/nghttp2.h>
#endif
