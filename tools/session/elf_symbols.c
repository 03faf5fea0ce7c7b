// SPDX-License-Identifier: GPL-2.0-only
/*
 * libelf, which is linked already: libdw's archive needs four more libraries and opens a
 * fifth at run time, and it knows processes only while they live.
 */
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/elf_symbols.h"

#define BUILD_ID_MAX	64

struct segment {
	uint64_t offset, size, address;
};

struct function {
	uint64_t address, size;
	const char *name;
	int rank;		/* of several names for the same the lowest */
};

struct elf_symbols {
	int fd, debug_fd;
	Elf *elf, *debug;	/* debug: NULL where the symbols are in the file itself */
	uint64_t changed;	/* nanoseconds, CLOCK_REALTIME */
	struct segment *segment;
	size_t segments;
	struct function *function;	/* by address, one of each */
	size_t n;
};

/* Is it the file that was mapped? A mapping of it is told in the same words. */
static bool is_file(int fd, const struct file_id *id)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	FILE *maps = fopen("/proc/self/maps", "re");
	struct file_id own;
	char *line = NULL;
	uint64_t start;
	size_t size = 0;
	bool same = false;

	while (maps && page != MAP_FAILED && getline(&line, &size, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%*x %*s %*x %x:%x %" SCNu64, &start, &own.major,
			   &own.minor, &own.inode) == 4 && start == (uintptr_t)page)
			same = own.major == id->major && own.minor == id->minor &&
			       own.inode == id->inode;
	free(line);
	if (maps)
		fclose(maps);
	if (page != MAP_FAILED)
		munmap(page, 1);
	return same;
}

static bool read_segments(struct elf_symbols *s)
{
	size_t n, i;
	GElf_Phdr p;

	if (elf_getphdrnum(s->elf, &n) || !n)
		return false;
	s->segment = calloc(n, sizeof(*s->segment));
	for (i = 0; s->segment && i < n; i++)
		if (gelf_getphdr(s->elf, i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X)
			s->segment[s->segments++] = (struct segment){ p.p_offset, p.p_filesz,
								      p.p_vaddr };
	return s->segments;
}

static Elf_Scn *section_of(Elf *elf, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_entsize)
			return section;
	return NULL;
}

/* Who wrote it calls it by the name that is global and has no underscores. */
static int rank_of(const GElf_Sym *sym, const char *name)
{
	int bind = GELF_ST_BIND(sym->st_info);

	return (bind == STB_LOCAL ? 200 : bind == STB_WEAK ? 100 : 0) + (int)strspn(name, "_");
}

static int by_address(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->rank != b->rank ? a->rank - b->rank : strcmp(a->name, b->name);
}

/* Of one of the tables, in *elf; false: it is not there, or has none. */
static bool read_functions(struct elf_symbols *s, Elf *elf, uint32_t table)
{
	size_t n, i, kept;
	GElf_Shdr header;
	Elf_Scn *section = section_of(elf, table, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	const char *name;
	GElf_Sym sym;

	if (!data)
		return false;
	n = data->d_size / header.sh_entsize;
	free(s->function);
	s->function = calloc(n ?: 1, sizeof(*s->function));
	for (i = 0; s->function && i < n; i++) {
		if (!gelf_getsym(data, i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    !sym.st_shndx || !sym.st_size)
			continue;
		name = elf_strptr(elf, header.sh_link, sym.st_name);
		if (name && *name)
			s->function[s->n++] = (struct function){ sym.st_value, sym.st_size, name,
								 rank_of(&sym, name) };
	}
	if (!s->n)
		return false;
	qsort(s->function, s->n, sizeof(*s->function), by_address);
	for (i = kept = 1; i < s->n; i++)
		if (s->function[i].address != s->function[kept - 1].address)
			s->function[kept++] = s->function[i];
	s->n = kept;
	return true;
}

static const uint8_t *note_build_id(Elf_Data *data, size_t *size)
{
	size_t at = 0, name, id;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &id))) {
		*size = note.n_descsz;
		if (note.n_type == NT_GNU_BUILD_ID && *size >= 2 && *size <= BUILD_ID_MAX &&
		    note.n_namesz == sizeof("GNU") &&
		    !memcmp((const char *)data->d_buf + name, "GNU", sizeof("GNU")))
			return (const uint8_t *)data->d_buf + id;
	}
	return NULL;
}

static const uint8_t *build_id(Elf *elf, size_t *size)
{
	Elf_Scn *section = NULL;
	const uint8_t *id = NULL;
	GElf_Shdr h;

	while (!id && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &h) && h.sh_type == SHT_NOTE)
			id = note_build_id(elf_getdata(section, NULL), size);
	return id;
}

/* Where packages with symbols have those of a file, by its build ID. */
static bool read_debug(struct elf_symbols *s)
{
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + 2 * BUILD_ID_MAX];
	size_t size, len, i;
	const uint8_t *id = build_id(s->elf, &size);

	if (!id)
		return false;
	len = sprintf(path, "/usr/lib/debug/.build-id/%02x/", id[0]);
	for (i = 1; i < size; i++)
		len += sprintf(path + len, "%02x", id[i]);
	strcpy(path + len, ".debug");
	s->debug_fd = open(path, O_RDONLY | O_CLOEXEC);
	s->debug = s->debug_fd < 0 ? NULL : elf_begin(s->debug_fd, ELF_C_READ, NULL);
	return s->debug && read_functions(s, s->debug, SHT_SYMTAB);
}

static uint64_t changed(const struct stat *st)
{
	return st->st_ctim.tv_sec * 1000000000ULL + st->st_ctim.tv_nsec;
}

struct elf_symbols *elf_symbols_read(const char *path, const struct file_id *id)
{
	struct elf_symbols *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	s->debug_fd = -1;
	/* Whatever lies there by now: a device or FIFO must not be opened, or waited for. */
	s->fd = stat(path, &st) || !S_ISREG(st.st_mode) ? -1 :
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s->fd < 0 || fstat(s->fd, &st) || !S_ISREG(st.st_mode) || !is_file(s->fd, id))
		goto fail;
	s->changed = changed(&st);
	elf_version(EV_CURRENT);
	/* Not mapped: who truncates it meanwhile must not end us. */
	s->elf = elf_begin(s->fd, ELF_C_READ, NULL);
	if (s->elf && elf_kind(s->elf) == ELF_K_ELF && read_segments(s) &&
	    (read_functions(s, s->elf, SHT_SYMTAB) || read_debug(s) ||
	     read_functions(s, s->elf, SHT_DYNSYM)))
		return s;
fail:
	elf_symbols_free(s);
	return NULL;
}

void elf_symbols_free(struct elf_symbols *s)
{
	if (!s)
		return;
	elf_end(s->debug);
	elf_end(s->elf);
	if (s->debug_fd >= 0)
		close(s->debug_fd);
	if (s->fd >= 0)
		close(s->fd);
	free(s->segment);
	free(s->function);
	free(s);
}

#define INNER_MAX	16	/* functions within another one */

const char *elf_symbols_name(const struct elf_symbols *s, uint64_t offset, uint64_t time)
{
	size_t low = 0, high = s->n, middle, i;
	uint64_t address;
	struct stat st;

	for (i = 0; i < s->segments; i++)
		if (offset - s->segment[i].offset < s->segment[i].size)
			break;
	if (i == s->segments || s->changed > time || fstat(s->fd, &st) ||
	    changed(&st) != s->changed)
		return NULL;
	address = offset - s->segment[i].offset + s->segment[i].address;
	while (low < high) {
		middle = (low + high) / 2;
		if (s->function[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < INNER_MAX && low--; i++)
		if (address - s->function[low].address < s->function[low].size)
			return s->function[low].name;
	return NULL;
}
