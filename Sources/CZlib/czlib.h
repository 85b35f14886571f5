#ifndef SLUICE_CZLIB_H
#define SLUICE_CZLIB_H
#include <zlib.h>
#endif
