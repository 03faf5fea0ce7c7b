// SPDX-License-Identifier: GPL-2.0-only
/*
 * An account of the vm_operations_structs of the running kernel that owes
 * nothing to mmscope: candidates by their names (an argument: endings, and
 * names after "="), their contents from /proc/kcore, without BPF.
 *
 * vm_ops WORDS ENDING,=NAME,...: lines "symbol module word,word,...", each word
 * the name of a function, 0, or ? for what is neither.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX	64

struct sym {
	unsigned long long address;
	char type, name[192], module[64];
};

static struct sym *sym;
static size_t syms;

static void read_symbols(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512];
	size_t room = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (syms == room) {
			room = 2 * room + 4096;
			sym = realloc(sym, room * sizeof(*sym));
			if (!sym)
				exit(2);
		}
		sym[syms].module[0] = 0;
		if (sscanf(line, "%llx %c %191s [%63[^]]", &sym[syms].address, &sym[syms].type,
			   sym[syms].name, sym[syms].module) >= 3)
			syms++;
	}
	if (!syms)
		exit(3);
}

static int wanted(const struct sym *s, const char *list)
{
	char copy[1024], *save, *word;
	size_t len = strcspn(s->name, "."), n;

	if (strchr("tTwW", s->type))
		return 0;
	snprintf(copy, sizeof(copy), "%s", list);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		n = strlen(word);
		if (*word == '=' ? !strcmp(s->name, word + 1) :
		    len >= n && !strncmp(s->name + len - n, word, n))
			return 1;
	}
	return 0;
}

static const char *function(unsigned long long address)
{
	size_t i;

	if (!address)
		return "0";
	for (i = 0; i < syms; i++)
		if (sym[i].address == address && strchr("tTwW", sym[i].type))
			return sym[i].name;
	return "?";
}

/* Where the file has an address: -1 where it has not. */
static long long place(int fd, unsigned long long address)
{
	Elf64_Ehdr header;
	Elf64_Phdr part;
	int i;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return -1;
	for (i = 0; i < header.e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), header.e_phoff + i * sizeof(part)) !=
		    sizeof(part))
			return -1;
		if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
		    address < part.p_vaddr + part.p_memsz)
			return part.p_offset + (address - part.p_vaddr);
	}
	return -1;
}

int main(int argc, char **argv)
{
	unsigned long long word[WORDS_MAX];
	size_t i, j, words = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	int fd = open("/proc/kcore", O_RDONLY);

	if (fd < 0 || !words || words > WORDS_MAX)
		return 2;
	read_symbols();
	for (i = 0; i < syms; i++) {
		long long at;

		if (!wanted(&sym[i], argv[2]))
			continue;
		at = place(fd, sym[i].address);
		printf("%s %s ", sym[i].name, *sym[i].module ? sym[i].module : "-");
		if (at < 0 || pread(fd, word, words * 8, at) != (ssize_t)(words * 8)) {
			puts("unreadable");
			continue;
		}
		for (j = 0; j < words; j++)
			printf("%s%s", j ? "," : "", function(word[j]));
		putchar('\n');
	}
	return 0;
}
