/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LOCK_CLASS_H
#define MMSCOPE_LOCK_CLASS_H

/*
 * What lock is at an address. Nothing is dereferenced: memory is only read through
 * bpf_probe_read_kernel(), which an address that is none makes fail.
 */

/* ---- set by the loader; 0: not known ---- */

const volatile __u64 vmemmap_at;	/* addresses of variables of the kernel */
const volatile __u64 page_offset_at;
/* Where the struct page of a page table has its lock, and the tables left with it. */
const volatile __u32 table_lock, table_left;
const volatile __u32 type_of_table, type_of_slab;	/* enum pagetype, since 6.12 */
const volatile __u64 memcg_locks[MEMCG_LOCKS];
const volatile __u64 memcg_subsys;
const volatile __u32 memcg_members[MEMCG_MEMBERS];	/* from where one points at that */
const volatile __u32 lock_by = LABEL_MAX;	/* rows are of this open label, else of locks */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct raw_spinlock {
	int raw_lock;
};

struct spinlock {
	int rlock;
};

struct owner_word {
	s64 counter;
};

/* Real-time kernels have other ones, without an owner that is told. */
struct rw_semaphore {
	struct owner_word count;
	struct owner_word owner;
	struct raw_spinlock wait_lock;
};

struct mutex {
	struct owner_word owner;
};

struct xarray {
	struct spinlock xa_lock;
};

struct address_space___lock {
	struct inode *host;
	struct xarray i_pages;
	struct rw_semaphore invalidate_lock;
	struct rw_semaphore i_mmap_rwsem;
};

struct inode___lock {
	struct spinlock i_lock;
	struct rw_semaphore i_rwsem;
	struct address_space___lock i_data;
};

struct anon_vma___lock {
	struct anon_vma *root;
	struct rw_semaphore rwsem;
};

struct mm_struct___lock {
	struct spinlock page_table_lock;
	struct rw_semaphore mmap_lock;
};

struct pglist_data;

struct zone {
	struct pglist_data *zone_pgdat;
	struct spinlock lock;
};

struct lruvec {
	struct spinlock lru_lock;
	struct pglist_data *pgdat;	/* with memory cgroups only */
};

struct pglist_data {
	struct zone node_zones[1];
	struct lruvec __lruvec;		/* the only one of a node without memory cgroups */
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct page___lock {
	unsigned long compound_head;
};

/* Since 7.0: what points at the head of a compound page, or a mask that leads there. */
struct page___info {
	unsigned long compound_info;
};

struct kmem_cache {
	unsigned int size;
	const char *name;
};

struct slab {
	struct kmem_cache *slab_cache;
	unsigned int __page_type;
};

/* Before 6.10 a flag of the page said that it is one. */
struct slab___old {
	unsigned long __page_flags;
};

struct wait_queue_entry {
	void *private;
	void *func;
};

/* On the stack of who waits for a folio. */
struct wait_page_queue {
	struct folio *folio;
	int bit_nr;
	struct wait_queue_entry wait;
};

/* 6.4 to 6.14. */
struct vma_lock;

struct vm_area_struct___lock {
	struct vma_lock *vm_lock;
};

#pragma clang attribute pop

enum pageflags___lock {
	PG_uptodate = 3,
	PG_slab = 9,
};

struct lock_id {
	u8 class, mode, space;
	u8 holder;	/* enum holder_from */
};

/* Where a lock that is waited for tells who holds it. */
enum holder_from {
	HOLDER_UNTOLD,
	HOLDER_WORD,		/* its word of the owner */
	HOLDER_RWSEM,		/* ... and the count, in which a reader has counted itself */
	HOLDER_READERS,		/* who waits, waits for readers alone */
	HOLDER_SELF,		/* nobody waits here: the current task gives it back */
};

static __always_inline u64 word_at(u64 address)
{
	u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), (void *)address);
	return v;
}

static __always_inline u32 half_at(u64 address)
{
	u32 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), (void *)address);
	return v;
}

#define OFFSET(type, member)	bpf_core_field_offset(struct type, member)

/* Is this the mapping that is part of its inode? */
static __always_inline bool is_mapping(u64 mapping)
{
	u64 host = word_at(mapping + OFFSET(address_space___lock, host));

	return host && host + OFFSET(inode___lock, i_data) == mapping;
}

static __always_inline bool is_inode(u64 inode)
{
	return word_at(inode + OFFSET(inode___lock, i_data) +
		       OFFSET(address_space___lock, host)) == inode;
}

static __always_inline bool is_node(u64 pgdat)
{
	return pgdat && word_at(pgdat + OFFSET(zone, zone_pgdat)) == pgdat;
}

/* ---- pages ---- */

__u64 vmemmap_base, page_offset_base;	/* what is at these addresses, once read */

#define VMEMMAP_SPAN	(1ULL << 46)	/* with five levels of tables; nothing is behind it */
#define DIRECT_SPAN	(1ULL << 46)

static __always_inline bool vmemmap_known(void)
{
	if (!vmemmap_base && vmemmap_at)
		vmemmap_base = word_at(vmemmap_at);
	if (!page_offset_base && page_offset_at)
		page_offset_base = word_at(page_offset_at);
	return vmemmap_base && page_offset_base;
}

#define PAGE_STRUCT	64	/* its size, and alignment (CONFIG_HAVE_ALIGNED_STRUCT_PAGE) */

static __always_inline u32 page_type(u64 page)
{
	return half_at(page + OFFSET(slab, __page_type)) >> 24;
}

#define VMEMMAP_UNTYPED	(1ULL << 40)	/* of 64 TiB: the kernel itself is not far behind it */

/* Is it a page table's? Before 6.12 any page may be. */
static __always_inline bool is_table(u64 page)
{
	if (page & (PAGE_STRUCT - 1))
		return false;
	return type_of_table ? page_type(page) == type_of_table :
	       vmemmap_known() && page - vmemmap_base < VMEMMAP_UNTYPED;
}

/* Split locks of page tables lie in the struct page of the table; 0: it is none. */
static __always_inline u64 table_of(u64 lock)
{
	return is_table(lock - table_lock) ? lock - table_lock : 0;
}

/*
 * With huge pages a table of PMDs holds the tables that were left with it for when
 * they are split: NULL or the first one (pagetable_pmd_ctor(), 6.1 to 7.3). In the same
 * word other tables have what list_del() left there when the page was taken from a free
 * list, or once they were left themselves, a list_head, which is within a struct page:
 * neither is one's address. Kernels without huge pages do not set it.
 */
static __always_inline bool is_pmd_table(u64 page)
{
	u64 left = word_at(page + table_left);

	return !left || is_table(left);
}

static __always_inline u64 page_head(u64 page)
{
	u64 info;

	if (bpf_core_field_exists(((struct page___info *)0)->compound_info))
		info = word_at(page + OFFSET(page___info, compound_info));
	else
		info = word_at(page + OFFSET(page___lock, compound_head));
	if (!(info & 1))
		return page;
	if (info - 1 - vmemmap_base < VMEMMAP_SPAN && info - 1 <= page)
		return info - 1;
	return page & (info - 1);
}

static __always_inline bool is_slab(u64 page)
{
	if (type_of_slab)
		return page_type(page) == type_of_slab;
	return bpf_core_enum_value_exists(enum pageflags___lock, PG_slab) &&
	       word_at(page) & 1ULL << bpf_core_enum_value(enum pageflags___lock, PG_slab);
}

/* The slab cache that an object is of, and how far into the object an address is. */
static __always_inline u64 slab_of(u64 address, u32 *offset)
{
	u64 page, cache;
	u32 size;

	if (!vmemmap_known() || address - page_offset_base >= DIRECT_SPAN)
		return 0;
	page = page_head(vmemmap_base + ((address - page_offset_base) >> page_shift) * PAGE_STRUCT);
	if (!is_slab(page))
		return 0;
	cache = word_at(page + OFFSET(slab, slab_cache));
	size = half_at(cache + OFFSET(kmem_cache, size));
	if (!size)
		return 0;
	*offset = (address - page_offset_base -
		   ((page - vmemmap_base) / PAGE_STRUCT << page_shift)) % size;
	return cache;
}

/* Is it in an object, or does one start there, of the slab cache of this name? */
static __noinline bool is_in_object(u64 address, bool start, u64 name0, u64 name1)
{
	u64 name[2] = { 0 }, cache;
	u32 at = 0;

	cache = slab_of(address, &at);
	if (!cache || (start && at))
		return false;
	bpf_probe_read_kernel_str(name, sizeof(name),
				  (void *)word_at(cache + OFFSET(kmem_cache, name)));
	return name[0] == name0 && name[1] == name1;
}

static __always_inline bool is_vma_lock(u64 lock)
{
	return bpf_core_field_exists(((struct vm_area_struct___lock *)0)->vm_lock) &&
	       is_in_object(lock, false, 0x6b636f6c5f616d76ULL, 0);		/* "vma_lock" */
}

static __always_inline u64 mm_owner(u64 mm)
{
	if (!bpf_core_field_exists(((struct mm_struct *)0)->owner))
		return 0;
	return word_at(mm + bpf_core_field_offset(struct mm_struct, owner));
}

static __always_inline bool is_mm(u64 mm)
{
	u64 owner;

	if (!bpf_core_field_exists(((struct mm_struct *)0)->owner))
		return is_in_object(mm, true, 0x63757274735f6d6dULL, 't');	/* "mm_struct" */
	owner = mm_owner(mm);
	return owner && word_at(owner + bpf_core_field_offset(struct task_struct, mm)) == mm;
}

static __always_inline bool is_lruvec(u64 lru)
{
	if (!bpf_core_field_exists(((struct lruvec *)0)->pgdat))
		return is_node(lru - OFFSET(pglist_data, __lruvec));
	return is_node(word_at(lru + OFFSET(lruvec, pgdat)));
}

/* ---- classes ---- */

/* As a number; needs read_memory. */
static __always_inline u64 current_mm(void)
{
	return word_at((u64)bpf_get_current_task() +
		       bpf_core_field_offset(struct task_struct, mm));
}

static __noinline u32 class_of_rwsem(u64 sem)
{
	if (is_mapping(sem - OFFSET(address_space___lock, i_mmap_rwsem)))
		return CLASS_I_MMAP_RWSEM;
	if (is_mapping(sem - OFFSET(address_space___lock, invalidate_lock)))
		return CLASS_INVALIDATE_LOCK;
	if (is_inode(sem - OFFSET(inode___lock, i_rwsem)))
		return CLASS_INODE;
	if (word_at(sem - OFFSET(anon_vma___lock, rwsem) + OFFSET(anon_vma___lock, root)) ==
	    sem - OFFSET(anon_vma___lock, rwsem))
		return CLASS_ANON_VMA;
	if (is_mm(sem - OFFSET(mm_struct___lock, mmap_lock)))
		return CLASS_MMAP_LOCK;
	return is_vma_lock(sem) ? CLASS_VMA_LOCK : CLASS_OTHER;
}

static __noinline bool is_memcg_lock(u64 lock)
{
	u32 i;

	for (i = 0; i < MEMCG_LOCKS; i++)
		if (memcg_locks[i] && memcg_locks[i] == lock)
			return true;
	for (i = 0; i < MEMCG_MEMBERS; i++)
		if (memcg_members[i] && word_at(lock - memcg_members[i]) == memcg_subsys)
			return true;
	return false;
}

static __noinline u32 class_of_spinlock(u64 lock)
{
	u64 lru = lock - OFFSET(lruvec, lru_lock), zone = lock - OFFSET(zone, lock);
	u64 table = table_of(lock);

	if (table)
		return is_pmd_table(table) ? CLASS_PAGE_TABLE_PMD : CLASS_PAGE_TABLE;
	if (is_mapping(lock - OFFSET(address_space___lock, i_pages.xa_lock)))
		return CLASS_I_PAGES;
	if (is_lruvec(lru))
		return CLASS_LRU;
	if (is_node(word_at(zone + OFFSET(zone, zone_pgdat))))
		return CLASS_ZONE;
	if (is_inode(lock - OFFSET(inode___lock, i_lock)))
		return CLASS_INODE;
	return is_memcg_lock(lock) ? CLASS_MEMCG : CLASS_OTHER;
}

/* The class, and whose address space it is of where that says something. */
static __always_inline struct lock_id lock_identify(u64 lock, u32 mode)
{
	struct lock_id id = { .class = CLASS_OTHER, .mode = mode, .space = SPACE_NONE };
	u64 mm = (u64)bpf_get_current_task_btf()->mm, sem = lock;

	/* Who waits for a rwsem may first have to wait for the lock of its queue. */
	if (mode == MODE_SPIN)
		sem -= OFFSET(rw_semaphore, wait_lock);
	if (sem - OFFSET(mm_struct___lock, mmap_lock) == mm) {
		id.class = CLASS_MMAP_LOCK;
		id.space = SPACE_OWN;
		return id;
	}
	if (mode == MODE_SPIN && lock - OFFSET(mm_struct___lock, page_table_lock) == mm) {
		id.class = CLASS_PAGE_TABLE;
		return id;
	}
	if (!read_memory)
		return id;
	if (mode == MODE_MUTEX) {
		if (is_memcg_lock(lock))
			id.class = CLASS_MEMCG;
	} else if (mode == MODE_SPIN) {
		id.class = class_of_spinlock(lock);
		if (id.class == CLASS_OTHER)
			id.class = class_of_rwsem(sem);
	} else if (mode == MODE_READ || mode == MODE_WRITE) {
		id.class = class_of_rwsem(sem);
	}
	if (id.class == CLASS_MMAP_LOCK)
		id.space = SPACE_OTHER;
	else if (id.class == CLASS_VMA_LOCK)
		id.space = SPACE_OWN;	/* nobody else's is waited for by its own lock */
	return id;
}

/* ---- folios ---- */

#define SLEEP_LOCK	1	/* stands for a folio that is not known */
#define SLEEP_WORDS	64	/* of the stack above a probe: its frame and the one that waits */

const volatile __u64 folio_wake_at;	/* of a function; 0: not known */

/* Its contents are not there yet (PG_uptodate): who waits for it waits for the device. */
static __always_inline bool folio_is_read(u64 folio)
{
	return read_memory && bpf_core_enum_value_exists(enum pageflags___lock, PG_uptodate) &&
	       !(word_at(folio) & 1ULL << bpf_core_enum_value(enum pageflags___lock, PG_uptodate));
}

/* The address of the struct wait_page_queue of a task that is about to sleep; 0: not found. */
static __noinline u64 folio_queued(u64 sp)
{
	u64 func = sp + OFFSET(wait_page_queue, wait.func);
	u64 private = sp + OFFSET(wait_page_queue, wait.private);
	u32 i;

	if (!sp || !folio_wake_at)
		return 0;
	for (i = 0; i < SLEEP_WORDS * 8; i += 8)
		if (word_at(func + i) == folio_wake_at &&
		    word_at(private + i) == (u64)bpf_get_current_task())
			return sp + i;
	return 0;
}

#endif
