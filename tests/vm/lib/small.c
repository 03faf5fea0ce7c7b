// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program for 32-bit x86 without any library, which may not be installed: touches
 * 100 pages, then ends with status 0.
 */
static char pages[100 * 4096];

void _start(void)
{
	volatile char *p;

	for (p = pages; p < pages + sizeof(pages); p += 4096)
		*p = 1;
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
