// SPDX-License-Identifier: GPL-2.0-only
/* Label values, and which combinations of them can occur. */
#include <string.h>

#include "data/run.h"

#define NAME(id, name)	name,

static const char *const backings[] = { BACKINGS(NAME) NULL };
static const char *const methods[] = { METHODS(NAME) NULL };
static const char *const triggers[] = { TRIGGERS(NAME) NULL };
static const char *const kinds[] = { KINDS(NAME) NULL };
static const char *const reasons[] = { REASONS(NAME) NULL };
static const char *const outcomes[] = { OUTCOMES(NAME) NULL };
static const char *const classes[] = { CLASSES(NAME) NULL };
static const char *const modes[] = { MODES(NAME) NULL };
static const char *const parts[] = { PARTS(NAME) NULL };
static const char *const spaces[] = { SPACES(NAME) NULL };

static const struct {
	const char *name;
	const char *const *values;
	unsigned int count;
	unsigned int domains;	/* of an open label: those that have rows of it */
} labels[LABEL_MAX] = {
	[LABEL_BACKING] = { "backing", backings, BACKING_MAX },
	[LABEL_METHOD]	= { "method", methods, METHOD_MAX },
	[LABEL_TRIGGER] = { "trigger", triggers, TRIGGER_MAX },
	[LABEL_KIND]	= { "kind", kinds, KIND_MAX },
	[LABEL_REASON]	= { "reason", reasons, REASON_MAX },
	[LABEL_OUTCOME] = { "outcome", outcomes, OUTCOME_MAX },
	[LABEL_CLASS]	= { "class", classes, CLASS_MAX },
	[LABEL_MODE]	= { "mode", modes, MODE_MAX },
	[LABEL_SPACE]	= { "mm", spaces, SPACE_MAX },
	[LABEL_PART]	= { "part", parts, PART_MAX },
	[LABEL_VM_OPS]	= { "vm_ops", NULL, 0, DOMAIN_FAULT },
	[LABEL_PID]	= { "pid", NULL, 0, DOMAIN_ALL },
	[LABEL_COMM]	= { "comm", NULL, 0, DOMAIN_ALL },
	[LABEL_FILE]	= { "file", NULL, 0, DOMAIN_FAULT },
	[LABEL_MAP]	= { "map", NULL, 0, DOMAIN_FAULT },
	[LABEL_ORDER]	= { "order", NULL, 0, DOMAIN_FAULT },
	[LABEL_LOCK]	= { "lock", NULL, 0, DOMAIN_LOCK },
	[LABEL_OWNER]	= { "owner", NULL, 0, DOMAIN_LOCK },
	[LABEL_STACK]	= { "stack", NULL, 0, DOMAIN_LOCK },
	[LABEL_HOLDER]	= { "holder", NULL, 0, DOMAIN_LOCK },
};

static const struct {
	enum slot_base base;
	size_t n;
	enum label label[SHAPE_LABELS_MAX];
} shapes[SHAPE_MAX] = {
	[SHAPE_COMPLETED] = { SLOT_BASE_COMPLETED, 4,
			      { LABEL_BACKING, LABEL_METHOD, LABEL_TRIGGER, LABEL_KIND } },
	[SHAPE_FAULT]	  = { SLOT_BASE_FAULT, 3,
			      { LABEL_BACKING, LABEL_METHOD, LABEL_TRIGGER } },
	[SHAPE_INSTALL]	  = { SLOT_BASE_INSTALL, 3,
			      { LABEL_BACKING, LABEL_METHOD, LABEL_TRIGGER } },
	[SHAPE_ATTEMPT]	  = { SLOT_BASE_ATTEMPT, 2, { LABEL_BACKING, LABEL_TRIGGER } },
	[SHAPE_REFUSED]	  = { SLOT_BASE_REFUSED, 2, { LABEL_BACKING, LABEL_REASON } },
	[SHAPE_REASON]	  = { SLOT_BASE_REASON, 1, { LABEL_REASON } },
	[SHAPE_OUTCOME]	  = { SLOT_BASE_OUTCOME, 2, { LABEL_BACKING, LABEL_OUTCOME } },
	[SHAPE_BACKING]	  = { SLOT_BASE_BACKING, 1, { LABEL_BACKING } },
	[SHAPE_LOCK]	  = { SLOT_BASE_LOCK, 3, { LABEL_CLASS, LABEL_MODE, LABEL_SPACE } },
	[SHAPE_CLASS]	  = { SLOT_BASE_CLASS, 1, { LABEL_CLASS } },
	[SHAPE_MODE]	  = { SLOT_BASE_MODE, 1, { LABEL_MODE } },
	[SHAPE_PART]	  = { SLOT_BASE_PART, 1, { LABEL_PART } },
	[SHAPE_NONE]	  = { SLOT_BASE_NONE, 0 },
};

#define M(x)	(1u << METHOD_##x)

/*
 * The methods that can populate each backing. What is not here costs no
 * storage; a kernel that does it nevertheless shows up as `map full` in the
 * trust line, never as another method.
 */
static const unsigned int populates[BACKING_MAX] = {
	[BACKING_ANON]	      = M(PER_PAGE) | M(LARGE_FOLIO) | M(PMD) | M(COW) | M(ZERO_PAGE) |
				M(SWAP_IN) | M(REUSE) | M(NUMA_HINT) | M(UFFD) | M(NONE),
	[BACKING_FILE]	      = M(FAULT_AROUND) | M(PER_PAGE) | M(LARGE_FOLIO) | M(PMD) | M(COW) |
				M(REUSE) | M(NUMA_HINT) | M(NONE),
	[BACKING_SHMEM]	      = M(FAULT_AROUND) | M(PER_PAGE) | M(LARGE_FOLIO) | M(PMD) | M(COW) |
				M(REUSE) | M(NUMA_HINT) | M(UFFD) | M(NONE),
	/* shm_vm_ops has no map_pages: no fault-around; and shmat() maps it shared: no copy. */
	[BACKING_SYSV_SHM]    = M(PER_PAGE) | M(LARGE_FOLIO) | M(PMD) | M(REUSE) | M(NUMA_HINT) |
				M(UFFD) | M(NONE),
	[BACKING_HUGETLB]     = M(PMD) | M(COW) | M(REUSE) | M(UFFD) | M(NONE),
	[BACKING_BPF_ARRAY]   = M(FAULT_AROUND) | M(PER_PAGE) | M(EAGER) | M(NONE),
	[BACKING_BPF_RINGBUF] = M(EAGER) | M(PER_PAGE) | M(NONE),
	[BACKING_BPF_ARENA]   = M(PER_PAGE) | M(NONE),
	[BACKING_GUEST_MEMFD] = M(PER_PAGE) | M(NONE),
	[BACKING_DEVICE]      = M(PER_PAGE) | M(EAGER) | M(COW) | M(REUSE) | M(NONE),
	[BACKING_OTHER]	      = M(FAULT_AROUND) | M(PER_PAGE) | M(LARGE_FOLIO) | M(PMD) | M(COW) |
				M(EAGER) | M(REUSE) | M(NUMA_HINT) | M(NONE),
};

#undef M
#define M(x)	(1u << MODE_##x)
#define M_RWSEM	(M(READ) | M(WRITE) | M(SPIN))	/* spin: for the lock of its queue */

static const unsigned int waits[CLASS_MAX] = {
	[CLASS_MMAP_LOCK]	= M_RWSEM,
	[CLASS_VMA_LOCK]	= M_RWSEM,
	[CLASS_PAGE_TABLE]	= M(SPIN),
	[CLASS_PAGE_TABLE_PMD]	= M(SPIN),
	[CLASS_I_PAGES]		= M(SPIN),
	[CLASS_FOLIO]		= M(WAIT),
	[CLASS_I_MMAP_RWSEM]	= M_RWSEM,
	[CLASS_INVALIDATE_LOCK]	= M_RWSEM,
	[CLASS_INODE]		= M_RWSEM,
	[CLASS_ANON_VMA]	= M_RWSEM,
	[CLASS_LRU]		= M(SPIN),
	[CLASS_ZONE]		= M(SPIN),
	[CLASS_MEMCG]		= M(SPIN) | M(MUTEX),
	[CLASS_OTHER]		= M_RWSEM | M(MUTEX) | M(RT),
};

static bool lock_can_occur(unsigned int class, unsigned int mode, unsigned int space)
{
	bool of_space = class == CLASS_MMAP_LOCK || class == CLASS_VMA_LOCK;

	return waits[class] & (1u << mode) && of_space == (space != SPACE_NONE);
}

const char *label_name(enum label label)
{
	return labels[label].name;
}

enum label label_by_name(const char *name)
{
	enum label l;

	for (l = 0; l < LABEL_MAX && strcmp(labels[l].name, name); l++)
		;
	return l;
}

unsigned int label_domains(enum label label)
{
	return label < LABEL_MAX ? labels[label].domains : 0;
}

const char *const *label_values(enum label label)
{
	return labels[label].values;
}

size_t shape_labels(enum shape shape, const enum label **list)
{
	*list = shapes[shape].label;
	return shapes[shape].n;
}

static bool install_can_occur(unsigned int backing, unsigned int method, unsigned int trigger)
{
	if (!(populates[backing] & (1u << method)))
		return false;
	/* What mmap() itself installs is eager, and nothing else is. */
	return (method == METHOD_EAGER) == (trigger == TRIGGER_MMAP);
}

bool shape_can_occur(enum shape shape, const unsigned int *value)
{
	size_t i;

	for (i = 0; i < shapes[shape].n; i++)
		if (value[i] >= labels[shapes[shape].label[i]].count)
			return false;

	switch (shape) {
	case SHAPE_COMPLETED:
	case SHAPE_FAULT:
		/* Populating at mmap time is no fault. */
		return value[1] != METHOD_EAGER &&
		       install_can_occur(value[0], value[1], value[2]);
	case SHAPE_INSTALL:
		/* A huge page's entry is no PTE. */
		return value[1] != METHOD_PMD && value[1] < METHOD_EMPTY &&
		       value[0] != BACKING_HUGETLB &&
		       install_can_occur(value[0], value[1], value[2]);
	case SHAPE_ATTEMPT:
		return value[1] != TRIGGER_MMAP;
	case SHAPE_REFUSED:
		/* Without a VMA there is no backing to name. */
		return value[1] != REASON_RETRIED &&
		       (value[1] != REASON_NO_VMA || value[0] == BACKING_OTHER);
	case SHAPE_REASON:
		return value[0] != REASON_OTHER;
	case SHAPE_LOCK:
		return lock_can_occur(value[0], value[1], value[2]);
	case SHAPE_OUTCOME:
	case SHAPE_CLASS:
	case SHAPE_MODE:
	case SHAPE_PART:
	case SHAPE_BACKING:
	case SHAPE_NONE:
		return true;
	case SHAPE_MAX:
		break;
	}
	return false;
}

/* Size of the whole product, and the combination at a raw index of it. */
static size_t product(enum shape shape)
{
	size_t i, n = 1;

	for (i = 0; i < shapes[shape].n; i++)
		n *= labels[shapes[shape].label[i]].count;
	return n;
}

static void combination(enum shape shape, size_t index, unsigned int *value)
{
	size_t i;

	for (i = shapes[shape].n; i--;) {
		unsigned int count = labels[shapes[shape].label[i]].count;

		value[i] = index % count;
		index /= count;
	}
}

size_t shape_slots(enum shape shape)
{
	unsigned int value[SHAPE_LABELS_MAX] = { 0 };
	size_t i, n = 0;

	for (i = 0; i < product(shape); i++) {
		combination(shape, i, value);
		n += shape_can_occur(shape, value);
	}
	return n;
}

void shape_combination(enum shape shape, size_t slot, unsigned int *value)
{
	size_t i;

	for (i = 0; i < product(shape); i++) {
		combination(shape, i, value);
		if (shape_can_occur(shape, value) && !slot--)
			return;
	}
	memset(value, 0, shapes[shape].n * sizeof(*value));
}

void shape_fill_slots(uint16_t *slot_of)
{
	unsigned int value[SHAPE_LABELS_MAX] = { 0 };
	enum shape shape;
	size_t i;

	for (shape = 0; shape < SHAPE_MAX; shape++) {
		uint16_t slot = 0;

		for (i = 0; i < product(shape); i++) {
			combination(shape, i, value);
			slot_of[shapes[shape].base + i] =
				shape_can_occur(shape, value) ? slot++ : SLOT_NONE;
		}
	}
}
