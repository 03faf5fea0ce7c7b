/* SPDX-License-Identifier: GPL-2.0-only */
/* Cases in which pages become a huge page, or a file's huge page is mapped; for rss.c alone. */

/* The kernel's thread may hold a page of it: then again. */
static void collapse(char *p)
{
	int tries, e;

	for (tries = 0; tries < 200; tries++) {
		e = madvise(p, HUGE, MADV_COLLAPSE);
		if (!e || errno != EAGAIN)
			break;
		usleep(10000);
	}
	if (e)
		die("MADV_COLLAPSE");
}

static void case_collapse(void)
{
	char *p = anon(512);

	touch(p, 130);
	begin();
	madvise(p, HUGE, MADV_HUGEPAGE);	/* or the kernel's thread is first */
	collapse(p);
	expect = 512 - 130;
	end();
}

static void khugepaged_hurry(void)
{
	set_text("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
	set_text("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "10");
	set_text("/sys/kernel/mm/transparent_hugepage/khugepaged/alloc_sleep_millisecs", "10");
	set_text("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", "100000");
}

/* The same by the kernel's thread. */
static void case_khugepaged(void)
{
	char *p = anon(512), path[64];
	int i;

	touch(p, 40);
	khugepaged_hurry();
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", getpid());
	begin();
	madvise(p, HUGE, MADV_HUGEPAGE);
	for (i = 0; i < 600; i++) {
		size_t len = slurp(path);

		if (field(smaps, smaps + len, "\nAnonHugePages:"))
			break;
		usleep(50000);
	}
	if (i == 600)
		skip = "khugepaged does nothing";
	expect = 512 - 40;
	end();
}

/* What was mapped of the file goes, and all of its huge page comes. */
static void case_collapse_file(void)
{
	char *p = area(HUGE, MAP_SHARED, shm_file(512));
	long had = resident(getpid(), false);

	peek(p, 130);
	had = resident(getpid(), false) - had;
	begin();
	madvise(p, HUGE, MADV_HUGEPAGE);
	collapse(p);
	expect = 512 - had;
	end();
}

/* An area of a file that has a huge page. */
static char *huge_file(void)
{
	char *p = area(HUGE, MAP_SHARED, shm_file(512));

	madvise(p, HUGE, MADV_HUGEPAGE);
	peek(p, 1);		/* 6.1 does it where there is a page table only */
	collapse(p);
	return p;
}

/* Map 130 of its pages one by one, or some more: how many. */
static long map_singly(char *p)
{
	long had;

	madvise(p, HUGE, MADV_NOHUGEPAGE);	/* or the kernel's thread is first */
	/* No part of the area is large enough for it, until they are one again. */
	if (mprotect(p, PAGE, PROT_READ))
		die("mprotect");
	had = resident(getpid(), false);
	peek(p + PAGE, 130);
	had = resident(getpid(), false) - had;
	if (mprotect(p, PAGE, PROT_READ | PROT_WRITE))
		die("mprotect");
	if (had < 130)
		die("the pages are not mapped");
	return had;
}

/* The file has a huge page already: what is mapped of it one by one goes. */
static void case_collapse_mapped(void)
{
	char *p = huge_file();
	long had = map_singly(p);

	begin();
	madvise(p, HUGE, MADV_HUGEPAGE);
	collapse(p);
	expect = 512 - had;
	end();
}

static pthread_barrier_t barrier;

static void *collapser(void *p)
{
	pthread_barrier_wait(&barrier);
	madvise(p, HUGE, MADV_COLLAPSE);
	return NULL;
}

/* Two threads do that at the same time, one of them takes the pages away. */
static void case_collapse_both(void)
{
	char *p = huge_file();
	pthread_t other;
	int i;

	pthread_barrier_init(&barrier, NULL, 2);
	begin();
	for (i = 0; i < 100; i++) {
		madvise(p, HUGE, MADV_DONTNEED);
		expect += 512 - map_singly(p);
		madvise(p, HUGE, MADV_HUGEPAGE);
		if (pthread_create(&other, NULL, collapser, p))
			die("pthread_create");
		collapser(p);
		pthread_join(other, NULL);
		collapse(p);		/* neither may have done it */
	}
	end();
}

/* The kernel's thread only takes away what was mapped; a fault brings the huge page. */
static void case_khugepaged_file(void)
{
	char *p = area(HUGE, MAP_SHARED, shm_file(512));
	long had = resident(getpid(), false), now;
	int i;

	peek(p, 40);
	now = resident(getpid(), false);
	had = now - had;
	khugepaged_hurry();
	/* It leaves what waits in some CPU's batch for the LRU lists: this empties them. */
	set_text("/proc/sys/vm/drop_caches", "1");
	begin();
	madvise(p, HUGE, MADV_HUGEPAGE);
	madvise(p, HUGE, MADV_HUGEPAGE);	/* 6.1 judges the area as it was before the call */
	for (i = 0; i < 600 && now - resident(getpid(), false) < had; i++)
		usleep(50000);
	if (i == 600)
		skip = "khugepaged does nothing";
	peek(p, 1);
	expect = -had;
	end();
}
