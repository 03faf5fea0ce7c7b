/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_LABELS_H
#define MMSCOPE_LABELS_H

/*
 * The values of every label, the only place that knows them. Includable from
 * BPF: no libc. The second column is the name in reports, files and options.
 */
#define BACKINGS(X)				\
	X(ANON,		"anon")			\
	X(FILE,		"file")			\
	X(SHMEM,	"shmem")		\
	X(SYSV_SHM,	"sysv_shm")		\
	X(HUGETLB,	"hugetlb")		\
	X(BPF_ARRAY,	"bpf_array")		\
	X(BPF_RINGBUF,	"bpf_ringbuf")		\
	X(BPF_ARENA,	"bpf_arena")		\
	X(GUEST_MEMFD,	"guest_memfd")		\
	X(DEVICE,	"device")		\
	X(OTHER,	"other")

/*
 * How the PTEs came. From `reuse` on, of completed faults that installed nothing:
 * write permission given to the page that was there, access given back for a NUMA
 * hint, a wait for userfaultfd in which somebody else installed it, or none of these.
 */
#define METHODS(X)				\
	X(FAULT_AROUND,	"fault_around")		\
	X(PER_PAGE,	"per_page")		\
	X(LARGE_FOLIO,	"large_folio")		\
	X(PMD,		"pmd")			\
	X(COW,		"cow")			\
	X(EAGER,	"eager")		\
	X(ZERO_PAGE,	"zero_page")		\
	X(SWAP_IN,	"swap_in")		\
	X(REUSE,	"reuse")		\
	X(NUMA_HINT,	"numa_hint")		\
	X(UFFD,		"uffd")			\
	X(NONE,		"none")

/* The first one that installs nothing. */
#define METHOD_EMPTY	METHOD_REUSE

#define TRIGGERS(X)				\
	X(ACCESS,	"access")		\
	X(GUP,		"gup")			\
	X(POPULATE,	"populate")		\
	X(MMAP,		"mmap")

#define KINDS(X)				\
	X(MINOR,	"minor")		\
	X(MAJOR,	"major")

/* Why a fault took mmap_lock; `retried`: it had waited, and given up its lock for that. */
#define REASONS(X)				\
	X(NO_MAP_PAGES,		"no_map_pages")		\
	X(ANON_VMA,		"anon_vma")		\
	X(UFFD,			"uffd")			\
	X(VMA_WRITE_LOCKED,	"vma_write_locked")	\
	X(NO_VMA,		"no_vma")		\
	X(RETRIED,		"retried")		\
	X(OTHER,		"other")

#define OUTCOMES(X)				\
	X(COMPLETED,	"completed")		\
	X(RETRIED,	"retried")		\
	X(REFUSED,	"refused")		\
	X(FAILED,	"failed")

/* What is waited for: include/linux/ and mm/ names of the lock, without its object. */
#define CLASSES(X)				\
	X(MMAP_LOCK,		"mmap_lock")		\
	X(VMA_LOCK,		"vma_lock")		\
	X(PAGE_TABLE,		"page_table")		\
	X(PAGE_TABLE_PMD,	"page_table_pmd")	\
	X(I_PAGES,		"i_pages")		\
	X(FOLIO,		"folio")		\
	X(I_MMAP_RWSEM,		"i_mmap_rwsem")		\
	X(INVALIDATE_LOCK,	"invalidate_lock")	\
	X(INODE,		"inode")		\
	X(ANON_VMA,		"anon_vma")		\
	X(LRU,			"lru")			\
	X(ZONE,			"zone")			\
	X(MEMCG,		"memcg")		\
	X(OTHER,		"other")

/* How it is waited for; `wait` is for a bit of a folio. */
#define MODES(X)				\
	X(READ,		"read")			\
	X(WRITE,	"write")		\
	X(SPIN,		"spin")			\
	X(MUTEX,	"mutex")		\
	X(RT,		"rt")			\
	X(WAIT,		"wait")

/* Whose address space the lock is of: the waiting task's, another's, or none's. */
#define SPACES(X)				\
	X(OWN,		"own")			\
	X(OTHER,	"other")		\
	X(NONE,		"none")

/* What a fault waited for: as the classes; `io` is a folio that is being read. */
#define PARTS(X)				\
	X(MMAP_LOCK,	"mmap_lock")		\
	X(VMA_LOCK,	"vma_lock")		\
	X(PAGE_TABLE,	"page_table")		\
	X(I_PAGES,	"i_pages")		\
	X(FOLIO,	"folio")		\
	X(IO,		"io")			\
	X(OTHER,	"other")

#define PART_ENUM(id, name)	PART_##id,
#define CLASS_ENUM(id, name)	CLASS_##id,
#define MODE_ENUM(id, name)	MODE_##id,
#define SPACE_ENUM(id, name)	SPACE_##id,
#define BACKING_ENUM(id, name)	BACKING_##id,
#define METHOD_ENUM(id, name)	METHOD_##id,
#define TRIGGER_ENUM(id, name)	TRIGGER_##id,
#define KIND_ENUM(id, name)	KIND_##id,
#define REASON_ENUM(id, name)	REASON_##id,
#define OUTCOME_ENUM(id, name)	OUTCOME_##id,

enum backing { BACKINGS(BACKING_ENUM) BACKING_MAX };
enum method { METHODS(METHOD_ENUM) METHOD_MAX };
enum trigger { TRIGGERS(TRIGGER_ENUM) TRIGGER_MAX };
enum kind { KINDS(KIND_ENUM) KIND_MAX };
enum reason { REASONS(REASON_ENUM) REASON_MAX };
enum outcome { OUTCOMES(OUTCOME_ENUM) OUTCOME_MAX };
enum lock_class { CLASSES(CLASS_ENUM) CLASS_MAX };
enum lock_mode { MODES(MODE_ENUM) MODE_MAX };
enum fault_part { PARTS(PART_ENUM) PART_MAX };
enum lock_space { SPACES(SPACE_ENUM) SPACE_MAX };

/*
 * Label ids. The first ones have the fixed values above; those from LABEL_OPEN on
 * are open: their values are texts found at run time.
 */
enum label {
	LABEL_BACKING,
	LABEL_METHOD,
	LABEL_TRIGGER,
	LABEL_KIND,
	LABEL_REASON,
	LABEL_OUTCOME,
	LABEL_CLASS,
	LABEL_MODE,
	LABEL_SPACE,
	LABEL_PART,
	LABEL_OPEN,
	LABEL_VM_OPS = LABEL_OPEN,
	LABEL_PID,
	LABEL_COMM,
	LABEL_FILE,
	LABEL_MAP,
	LABEL_ORDER,
	LABEL_LOCK,
	LABEL_OWNER,
	LABEL_STACK,
	LABEL_HOLDER,
	LABEL_MAX,
};

#define OPEN_VALUES_MAX	1024	/* of one open label that are told apart */

/*
 * A shape is the ordered label set of a metric. Its slots are the label
 * product, row-major, restricted to the combinations that can occur
 * (labels.c: shape_can_occur()); BPF finds the dense slot of a combination in
 * the read-only array slot_of[], at the shape's base plus the raw index.
 */
enum shape {
	SHAPE_COMPLETED,	/* backing, method, trigger, kind */
	SHAPE_FAULT,		/* backing, method, trigger */
	SHAPE_INSTALL,		/* backing, method, trigger; only methods that install PTEs */
	SHAPE_ATTEMPT,		/* backing, trigger */
	SHAPE_REFUSED,		/* backing, reason */
	SHAPE_REASON,		/* reason */
	SHAPE_OUTCOME,		/* backing, outcome */
	SHAPE_BACKING,		/* backing */
	SHAPE_LOCK,		/* class, mode, space */
	SHAPE_CLASS,		/* class */
	SHAPE_MODE,		/* mode */
	SHAPE_PART,		/* part */
	SHAPE_NONE,		/* one value */
	SHAPE_MAX,
};

#define FAULT_PRODUCT	(BACKING_MAX * METHOD_MAX * TRIGGER_MAX)

/* Base of each shape in slot_of[]. */
enum slot_base {
	SLOT_BASE_COMPLETED	= 0,
	SLOT_BASE_FAULT		= SLOT_BASE_COMPLETED + FAULT_PRODUCT * KIND_MAX,
	SLOT_BASE_INSTALL	= SLOT_BASE_FAULT + FAULT_PRODUCT,
	SLOT_BASE_ATTEMPT	= SLOT_BASE_INSTALL + FAULT_PRODUCT,
	SLOT_BASE_REFUSED	= SLOT_BASE_ATTEMPT + BACKING_MAX * TRIGGER_MAX,
	SLOT_BASE_REASON	= SLOT_BASE_REFUSED + BACKING_MAX * REASON_MAX,
	SLOT_BASE_OUTCOME	= SLOT_BASE_REASON + REASON_MAX,
	SLOT_BASE_BACKING	= SLOT_BASE_OUTCOME + BACKING_MAX * OUTCOME_MAX,
	SLOT_BASE_LOCK		= SLOT_BASE_BACKING + BACKING_MAX,
	SLOT_BASE_CLASS		= SLOT_BASE_LOCK + CLASS_MAX * MODE_MAX * SPACE_MAX,
	SLOT_BASE_MODE		= SLOT_BASE_CLASS + CLASS_MAX,
	SLOT_BASE_PART		= SLOT_BASE_MODE + MODE_MAX,
	SLOT_BASE_NONE		= SLOT_BASE_PART + PART_MAX,
	SLOT_TOTAL		= SLOT_BASE_NONE + 1,
};

#define SLOT_NONE	0xffff	/* a combination that cannot occur */

#endif
