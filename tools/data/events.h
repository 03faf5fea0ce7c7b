/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_EVENTS_H
#define MMSCOPE_EVENTS_H

/*
 * Logical events and the symbols that stand for them, the only place that
 * knows them. Includable from BPF: no libc. The order of symbols is the order
 * of preference; `ALL` events attach to every symbol that exists, `FIRST`
 * events to the first one.
 *
 * X(id, name, point, how, need, exists, symbols, help)
 *   point  ENTRY or EXIT of the function, TP: a BTF tracepoint, ITER: a walk over
 *          all tasks, or NONE: not a probe but what one can do
 *   how    FIRST or ALL of the symbols
 *   need   ESSENTIAL: without it nothing is observed; USEFUL: its metrics are
 *          unavailable without it; QUIET: what it tells is inferred instead; PART:
 *          its metrics lack what only it sees, and are lower bounds without it;
 *          ASKED: loaded only for an option, its metrics are unavailable without
 *   exists "struct.member" or "function()" that a kernel has if it has such
 *          events at all; one without it has nothing to see there; "": every kernel
 */
#define EVENTS(X)								\
	X(FAULT_ENTRY,	"fault entry",	ENTRY,	FIRST,	ESSENTIAL, "",			\
	  "handle_mm_fault", "a fault's attempt starts")				\
	X(FAULT_EXIT,	"fault exit",	EXIT,	FIRST,	ESSENTIAL, "",			\
	  "handle_mm_fault", "a fault's attempt ends")					\
	X(PTE_INSTALL,	"PTE install",	ENTRY,	FIRST,	USEFUL, "",			\
	  "set_pte_range,do_set_pte", "PTEs of page-cache pages installed (6.6 renamed it)") \
	X(RUN_INSTALL,	"run install",	ENTRY,	FIRST,	USEFUL, "vmf_map_pages()",	\
	  "vmf_set_run", "PTEs of resident pages installed (kernels with the series arraymap)") \
	X(ANON_INSTALL,	"anon install",	ENTRY,	FIRST,	USEFUL, "",			\
	  "folio_add_new_anon_rmap,page_add_new_anon_rmap", "a new anonymous folio mapped") \
	X(COW_FAULT,	"write-protect fault", ENTRY, FIRST, USEFUL, "",		\
	  "do_wp_page,wp_page_copy", "a write to a read-only PTE")			\
	X(COW_HUGE,	"huge write-protect fault", ENTRY, FIRST, PART, "",		\
	  "do_huge_pmd_wp_page", "a write to a read-only PMD")				\
	X(MKWRITE,	"page_mkwrite",	ENTRY,	FIRST,	USEFUL, "",			\
	  "do_page_mkwrite", "the file system is told of a first write")		\
	X(SWAP_IN,	"swap entry",	ENTRY,	FIRST,	USEFUL, "",			\
	  "do_swap_page", "a PTE that is neither empty nor present")			\
	X(SWAP_INSTALL,	"swap install",	ENTRY,	FIRST,	PART, "",			\
	  "folio_add_anon_rmap_ptes,page_add_anon_rmap",				\
	  "pages mapped again that were anonymous before (6.8 renamed it)")		\
	X(UFFD_WAIT,	"userfaultfd wait", ENTRY, FIRST, USEFUL, "",			\
	  "handle_userfault", "a fault waits for a handler in user space")		\
	X(NUMA_HINT,	"NUMA hint",	ENTRY,	FIRST,	USEFUL, "",			\
	  "task_numa_fault", "access given back that NUMA balancing had taken")		\
	X(HUGETLB_PTE,	"hugetlb entry", EXIT,	FIRST,	PART, "",			\
	  "huge_pte_alloc", "where a hugetlb page is mapped, under its mutex")		\
	X(PFN_INSTALL,	"PFN install",	EXIT,	FIRST,	PART, "",			\
	  "insert_pfn", "a driver's fault handler maps a page frame")			\
	X(REMAP,	"PFN range",	ENTRY,	FIRST,	PART, "",			\
	  "remap_pfn_range", "a driver maps page frames at mmap time")			\
	X(REMAP_ACTION,	"PFN range of mmap_prepare", ENTRY, FIRST, PART, "mmap_action.type", \
	  "remap_pfn_range_complete", "the same, for ->mmap_prepare")			\
	X(REMAP_END,	"PFN range end", EXIT,	ALL,	PART, "",			\
	  "remap_pfn_range,remap_pfn_range_complete", "... and whether it did")		\
	X(PMD_FILE,	"file PMD map",	EXIT,	FIRST,	USEFUL, "",			\
	  "do_set_pmd", "a huge page-cache folio mapped by a PMD")			\
	X(PMD_ANON,	"anon PMD map",	EXIT,	FIRST,	USEFUL, "",			\
	  "do_huge_pmd_anonymous_page", "an anonymous huge page mapped by a PMD")	\
	X(PTE_LOCK,	"page-table lock", EXIT, FIRST,	QUIET, "",			\
	  "pte_offset_map_lock,__pte_offset_map_lock",					\
	  "a page-table lock taken; inlined before 6.5: inferred")			\
	X(MAP_PAGES,	"fault-around",	ENTRY,	ALL,	USEFUL, "",			\
	  "filemap_map_pages,bpf_map_mmap_pages,array_map_mmap_pages",			\
	  "a window is mapped around a fault")						\
	X(MAP_PAGES_END, "fault-around end", EXIT, ALL,	USEFUL, "",			\
	  "filemap_map_pages,bpf_map_mmap_pages,array_map_mmap_pages",			\
	  "the window is done")								\
	X(VMA_FIND,	"mmap_lock path", ENTRY, FIRST, USEFUL, "vm_area_struct.vm_lock_seq", \
	  "lock_mm_and_find_vma", "a fault takes mmap_lock; before 6.4 all do")	\
	X(VMA_FIND_END,	"mmap_lock path end", EXIT, FIRST, USEFUL, "vm_area_struct.vm_lock_seq", \
	  "lock_mm_and_find_vma", "... and whether there is a VMA")		\
	X(POPULATE,	"populate",	ENTRY,	ALL,	USEFUL, "",			\
	  "populate_vma_page_range,faultin_page_range,faultin_vma_page_range",		\
	  "MAP_POPULATE, mlock, MADV_POPULATE start")					\
	X(POPULATE_END,	"populate end",	EXIT,	ALL,	USEFUL, "",			\
	  "populate_vma_page_range,faultin_page_range,faultin_vma_page_range",		\
	  "... end")									\
	X(BPF_MMAP,	"BPF map mmap",	ENTRY,	FIRST,	USEFUL, "",			\
	  "bpf_map_mmap", "mmap of a BPF map: tells its type")				\
	X(BPF_MMAP_END,	"BPF map mmap end", EXIT, FIRST, USEFUL, "",			\
	  "bpf_map_mmap", "... ends")							\
	X(ARRAY_MMAP,	"BPF array mmap", ENTRY, FIRST, USEFUL, "",			\
	  "array_map_mmap", "the map is an array, told without reading raw memory")	\
	X(EAGER_PAGE,	"eager page",	ENTRY,	FIRST,	USEFUL, "",			\
	  "vm_insert_page", "one page inserted outside of a fault")			\
	X(EAGER_PAGE_END, "eager page end", EXIT, FIRST, USEFUL, "",			\
	  "vm_insert_page", "... and whether it was")					\
	X(EAGER_PAGES,	"eager pages",	ENTRY,	FIRST,	USEFUL, "",			\
	  "vm_insert_pages", "many pages inserted in one call")				\
	X(EAGER_PAGES_END, "eager pages end", EXIT, FIRST, USEFUL, "",			\
	  "vm_insert_pages", "... and how many")					\
	X(INSERT_RMAP,	"insert rmap",	ENTRY,	FIRST,	QUIET, "",			\
	  "folio_add_file_rmap_ptes,page_add_file_rmap",				\
	  "how many pages, one by one: only where memory may not be read")	\
	X(FORK,		"fork",		TP,	FIRST,	ESSENTIAL, "",			\
	  "task_newtask", "a child of the target becomes a target")		\
	X(YIELD_ZAP,	"zap of windows", ENTRY, FIRST,	ASKED, "",			\
	  "unmap_page_range,__zap_vma_range", "pages are unmapped: for --yield only")	\
	X(ZAP,		"zap",		ENTRY,	FIRST,	USEFUL, "",			\
	  "unmap_page_range,__zap_vma_range", "page tables are emptied (7.1 renamed it)")	\
	X(ZAP_END,	"zap end",	EXIT,	FIRST,	USEFUL, "",			\
	  "unmap_page_range,__zap_vma_range", "... end")				\
	X(ZAP_PMD,	"huge page zap", EXIT,	FIRST,	USEFUL, "",			\
	  "zap_huge_pmd", "a huge page's entry is removed")				\
	X(RMAP_PMD,	"huge page rmap", ENTRY, FIRST,	QUIET, "",			\
	  "folio_remove_rmap_pmd", "... and was of a page (since 6.8)")		\
	X(ZAP_HOLD,	"zap hold",	NONE,	FIRST,	USEFUL, "",			\
	  "", "the address of a page-table lock, and the table read under it")	\
	X(MUNMAP,	"munmap",	ENTRY,	FIRST,	USEFUL, "",			\
	  "__vm_munmap", "munmap(2) starts")						\
	X(MUNMAP_END,	"munmap end",	EXIT,	FIRST,	USEFUL, "",			\
	  "__vm_munmap", "... ends")							\
	X(EXIT_MMAP,	"address space end", ENTRY, FIRST, USEFUL, "",			\
	  "exit_mmap", "the last user of an address space is gone")			\
	X(EXIT_MMAP_END, "address space gone", EXIT, FIRST, USEFUL, "",		\
	  "exit_mmap", "... and it is torn down")					\
	X(EXEC,		"exec",		TP,	FIRST,	USEFUL, "",			\
	  "sched_process_exec", "a new address space")					\
	X(RSS_WALK,	"resident sets", ITER,	FIRST,	USEFUL, "",			\
	  "task", "the counters of all targets are read")				\
	X(UFFD_INSTALL,	"UFFDIO_COPY",	ENTRY,	FIRST,	USEFUL, "",			\
	  "mfill_atomic_install_pte", "userfaultfd maps a page")			\
	X(UFFD_INSTALL_END, "UFFDIO_COPY end", EXIT, FIRST, USEFUL, "",		\
	  "mfill_atomic_install_pte", "... and whether it did")			\
	X(UNUSE,	"swapoff",	ENTRY,	FIRST,	USEFUL, "",			\
	  "unuse_pte_range", "swapoff brings pages back")				\
	X(UNUSE_END,	"swapoff end",	EXIT,	FIRST,	USEFUL, "",			\
	  "unuse_pte_range", "... and how many")					\
	X(COLLAPSE_SCAN, "collapse scan", TP,	FIRST,	USEFUL, "",			\
	  "mm_collapse_huge_page_isolate", "how many holes a huge page will fill")	\
	X(COLLAPSE,	"collapse",	TP,	FIRST,	USEFUL, "",			\
	  "mm_collapse_huge_page", "pages become a huge page: khugepaged, MADV_COLLAPSE") \
	X(HUGE_FILE,	"huge page of a file", ENTRY, FIRST, USEFUL, "",		\
	  "set_huge_pmd", "it is mapped whole, outside of a fault")			\
	X(HUGE_FILE_END, "huge page of a file end", EXIT, FIRST, USEFUL, "",		\
	  "set_huge_pmd", "... and whether it was")					\
	X(COLLAPSE_PTES, "collapse of PTEs", ENTRY, FIRST, USEFUL, "",			\
	  "try_collapse_pte_mapped_thp,collapse_pte_mapped_thp",			\
	  "what is mapped one by one of a file's huge page goes")			\
	X(COLLAPSE_PTES_END, "collapse of PTEs end", EXIT, FIRST, USEFUL, "",		\
	  "try_collapse_pte_mapped_thp,collapse_pte_mapped_thp", "... ends")		\
	X(COLLAPSE_RMAP, "collapse of a PTE", ENTRY, FIRST, USEFUL, "",			\
	  "folio_remove_rmap_ptes,page_remove_rmap", "... and how much of it")		\
	X(MIGRATE,	"migration",	ENTRY,	FIRST,	USEFUL, "",			\
	  "remove_migration_pte", "a migrated folio is mapped again")			\
	X(MIGRATE_PTE,	"migrated PTE",	TP,	FIRST,	USEFUL, "",			\
	  "remove_migration_pte", "... one page of it")				\
	X(MIGRATE_PMD,	"migrated PMD",	TP,	FIRST,	USEFUL, "",			\
	  "remove_migration_pmd", "... a huge page of it")				\
	X(UNMAP,	"reclaim",	ENTRY,	FIRST,	USEFUL, "",			\
	  "try_to_unmap_one", "a folio is taken away from who maps it")		\
	X(UNMAP_END,	"reclaim end",	EXIT,	FIRST,	USEFUL, "",			\
	  "try_to_unmap_one", "... and how much of it was mapped")			\
	X(MOVE_TABLES,	"mremap",	EXIT,	FIRST,	USEFUL, "",			\
	  "move_page_tables", "page tables move, by mremap or exec")			\
	X(LOCK_EVENT,	"contention",	TP,	FIRST,	ESSENTIAL, "",			\
	  "contention_begin", "a mutex is waited for, or a rwsem of each CPU")	\
	X(LOCK_EVENT_END, "contention end", TP,	FIRST,	ESSENTIAL, "",			\
	  "contention_end", "... and had")						\
	X(LOCK_RELEASE,	"contended release", TP, FIRST,	ASKED, "",			\
	  "contended_release", "what others wait for is given back (since 7.1)")	\
	X(READ_WAIT,	"rwsem read",	ENTRY,	FIRST,	PART, "",			\
	  "rwsem_down_read_slowpath", "a rwsem is not had at once by a reader")	\
	X(READ_WAIT_END, "rwsem read end", EXIT, FIRST,	PART, "",			\
	  "rwsem_down_read_slowpath", "... and had")					\
	X(WRITE_WAIT,	"rwsem write",	ENTRY,	FIRST,	PART, "",			\
	  "rwsem_down_write_slowpath", "a rwsem is not had at once by a writer")	\
	X(WRITE_WAIT_END, "rwsem write end", EXIT, FIRST, PART, "",			\
	  "rwsem_down_write_slowpath", "... and had")					\
	X(FOLIO_WAIT,	"folio lock",	ENTRY,	ALL,	PART, "",			\
	  "__folio_lock,__folio_lock_killable", "a folio is locked by somebody else")	\
	X(FOLIO_WAIT_END, "folio lock end", EXIT, ALL,	PART, "",			\
	  "__folio_lock,__folio_lock_killable", "... and had")			\
	X(FOLIO_RETRY,	"folio lock of a fault", ENTRY, FIRST, PART, "",		\
	  "__folio_lock_or_retry", "the same, in a fault, which may give up its lock")	\
	X(FOLIO_RETRY_END, "folio lock of a fault end", EXIT, FIRST, PART, "",	\
	  "__folio_lock_or_retry", "... end")						\
	X(FOLIO_BIT,	"folio wait",	ENTRY,	ALL,	PART, "",			\
	  "folio_wait_bit,folio_wait_bit_killable", "until a folio is unlocked")	\
	X(FOLIO_BIT_END, "folio wait end", EXIT, ALL,	PART, "",			\
	  "folio_wait_bit,folio_wait_bit_killable", "... it is")			\
	X(FOLIO_SLEEP,	"folio sleep",	ENTRY,	FIRST,	PART, "",			\
	  "io_schedule", "the same where the function that waits is inlined")	\
	X(FOLIO_SLEEP_END, "folio sleep end", EXIT, FIRST, PART, "",			\
	  "io_schedule", "... end")							\
	X(VMA_WAIT,	"VMA writer",	ENTRY,	FIRST,	PART, "vm_area_struct.vm_refcnt", \
	  "__vma_start_exclude_readers", "a writer waits for the readers of a VMA")	\
	X(VMA_WAIT_END,	"VMA writer end", EXIT,	FIRST,	PART, "vm_area_struct.vm_refcnt", \
	  "__vma_start_exclude_readers", "... they are gone")				\
	X(IN_MUNMAP,	"path of munmap", ENTRY, FIRST, ASKED, "",			\
	  "__vm_munmap", "munmap(2) starts, and takes mmap_lock")			\
	X(IN_MUNMAP_END, "path of munmap end", EXIT, FIRST, ASKED, "",		\
	  "__vm_munmap", "... end")							\
	X(IN_POPULATE,	"path of populate", ENTRY, ALL,	ASKED, "",			\
	  "__mm_populate,faultin_page_range,faultin_vma_page_range",				\
	  "MAP_POPULATE, mlock, MADV_POPULATE start")	\
	X(IN_POPULATE_END, "path of populate end", EXIT, ALL, ASKED, "",		\
	  "__mm_populate,faultin_page_range,faultin_vma_page_range", "... end")	\
	X(IN_FAULT,	"path of faults", NONE,	FIRST,	ASKED, "",			\
	  "", "what a user's page fault returns to: x86-64, not by FRED, not under lockdown") \
	X(SPIN_WAIT,	"spinlock",	ENTRY,	ALL,	PART, "",			\
	  "native_queued_spin_lock_slowpath,__pv_queued_spin_lock_slowpath,"		\
	  "queued_spin_lock_slowpath",							\
	  "a spinlock is not had at once")						\
	X(SPIN_WAIT_END, "spinlock end", EXIT,	ALL,	PART, "",			\
	  "native_queued_spin_lock_slowpath,__pv_queued_spin_lock_slowpath,"		\
	  "queued_spin_lock_slowpath",							\
	  "... and had")								\
	X(MAP_PAGES_READ, "raw memory",	NONE,	FIRST,	USEFUL, "",			\
	  "", "reading page tables: not under lockdown")

/* These are for --reconcile only: nothing of them is loaded without it. */
#define EVENT_RECONCILES(id)	((id) >= EVENT_ZAP && (id) <= EVENT_MOVE_TABLES)

/* A path that waits are asked for within: one is loaded, or none. */
#define EVENT_IN_PATH(id)	((id) >= EVENT_IN_MUNMAP && (id) <= EVENT_IN_FAULT)

/* Entry and exit are matched by their argument, which only a trampoline sees at the exit. */
#define EVENT_MATCHES(id)	((id) >= EVENT_READ_WAIT && (id) <= EVENT_SPIN_WAIT_END)

#define EVENT_ENUM(id, ...)	EVENT_##id,
enum event_id { EVENTS(EVENT_ENUM) EVENT_MAX };

/* Several events: EVENT_BIT() (metrics.h) of each. */
typedef unsigned __int128 event_set;

/* Within which path a wait is. */
#define WITHIN			(EVENT_BIT(EVENT_IN_MUNMAP) | EVENT_BIT(EVENT_IN_MUNMAP_END) |	\
				 EVENT_BIT(EVENT_IN_POPULATE) | EVENT_BIT(EVENT_IN_POPULATE_END) | \
				 EVENT_BIT(EVENT_IN_FAULT))

/* Their runs name not one event but all until their end: populating, mapping. */
#define EVENTS_OF_SCOPE	(EVENT_BIT(EVENT_POPULATE) | EVENT_BIT(EVENT_POPULATE_END) |	\
			 EVENT_BIT(EVENT_BPF_MMAP) | EVENT_BIT(EVENT_BPF_MMAP_END) |	\
			 EVENT_BIT(EVENT_ARRAY_MMAP) | WITHIN)

#endif
