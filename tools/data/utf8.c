// SPDX-License-Identifier: GPL-2.0-only
#include "data/utf8.h"

int utf8_length(const char *text)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text;
	unsigned int v;
	int n, i;

	if (*p < 0x80)
		return 1;
	if (*p < 0xc2 || *p > 0xf4)
		return 0;
	n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	v = *p & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	return n;
}

int utf8_is_control(const char *text, int n)
{
	const unsigned char *p = (const unsigned char *)text;

	if (n == 1)
		return *p < 0x20 || *p == 0x7f;
	return n == 2 && *p == 0xc2 && p[1] < 0xa0;
}
