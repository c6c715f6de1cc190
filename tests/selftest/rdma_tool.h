/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What rdma(8) says, as text, and the words in it. */
#ifndef SELFTEST_RDMA_TOOL_H
#define SELFTEST_RDMA_TOOL_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define SAID_BYTES	(1 << 20)

/* The command as a user that may nothing. */
#define AS_NOBODY	"setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "

/* Run a command: what it prints, to be freed; NULL if it fails, and then it is printed. */
static inline char *said_by(const char *format, ...)
{
	char command[300], *text = malloc(SAID_BYTES);
	va_list args;
	size_t n;
	FILE *f;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	f = text ? popen(command, "r") : NULL;
	if (!f) {
		free(text);
		return NULL;
	}
	n = fread(text, 1, SAID_BYTES - 1, f);
	text[n] = 0;
	if (!pclose(f))
		return text;
	printf("# failed: %s\n# %s\n", command, text);
	free(text);
	return NULL;
}

/* How many objects of a device a process has, of those that rdma(8) lists; -1 if that fails. */
static inline int resources_of(const char *device, pid_t pid)
{
	static const char * const lists[] = {
		"qp link %s/1", "cq dev %s", "mr dev %s", "pd dev %s", "srq dev %s",
	};
	char what[100], needle[32], *text, *at;
	int n = 0;

	snprintf(needle, sizeof(needle), "pid %d ", pid);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(what, sizeof(what), lists[i], device);
		text = said_by("rdma resource show %s", what);
		if (!text)
			return -1;
		for (at = text; (at = strstr(at, needle)); at++)
			n++;
		free(text);
	}
	return n;
}

/*
 * Cut @text down to the entry that has @words. An entry begins with a word, and its further lines
 * with blanks. Return: false if there is none.
 */
static inline bool cut_words(char *text, const char *words)
{
	char *entry, *end;

	for (entry = text; *entry; entry = end) {
		end = entry;
		do
			end += strcspn(end, "\n") + 1;
		while (end[-1] && (*end == ' ' || *end == '\t'));
		if (!end[-1])
			end--;
		if (memmem(entry, end - entry, words, strlen(words))) {
			memmove(text, entry, end - entry);
			text[end - entry] = 0;
			return true;
		}
	}
	return false;
}

/* The same for a name and its value. */
static inline bool cut_entry(char *text, const char *name, unsigned long long value)
{
	char words[80];

	snprintf(words, sizeof(words), " %s %llu ", name, value);
	return cut_words(text, words);
}

/* The word after @name, in a buffer that the next call uses again; "" if there is none. */
static inline const char *word_after(const char *text, const char *name)
{
	static char word[80];
	size_t len = strlen(name);
	const char *at;

	word[0] = 0;
	for (at = text; (at = strstr(at, name)); at += len) {
		if ((at > text && !strchr(" \t\n", at[-1])) || at[len] != ' ')
			continue;
		if (sscanf(at + len, "%79s", word) != 1)
			word[0] = 0;
		break;
	}
	return word;
}

/* The number after @name, or -1. */
static inline long long number_after(const char *text, const char *name)
{
	const char *word = word_after(text, name);
	long long value;
	char *end;

	value = strtoll(word, &end, 0);
	return *word && !*end ? value : -1;
}

#endif /* SELFTEST_RDMA_TOOL_H */
