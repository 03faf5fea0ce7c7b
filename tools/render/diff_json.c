// SPDX-License-Identifier: GPL-2.0-only
/* A comparison as one JSON object: every number, whatever a table has room for. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "data/utf8.h"
#include "render/diff.h"

static void key(yajl_gen g, const char *name)
{
	yajl_gen_string(g, (const unsigned char *)name, strlen(name));
}

/* Bytes that are not UTF-8 become U+FFFD, controls \u00NN, which yajl leaves as they are. */
static void put_text(yajl_gen g, const char *text)
{
	char *buf = malloc(6 * strlen(text) + 3), *to = buf;
	int n;

	if (!buf) {
		yajl_gen_null(g);
		return;
	}
	*to++ = '"';
	for (; *text; text += n ? n : 1) {
		n = utf8_length(text);
		if (!n) {
			to += sprintf(to, "\xef\xbf\xbd");
		} else if (utf8_is_control(text, n)) {
			to += sprintf(to, "\\u%04x", (unsigned char)text[n - 1]);
		} else {
			if (*text == '"' || *text == '\\')
				*to++ = '\\';
			memcpy(to, text, n);
			to += n;
		}
	}
	*to++ = '"';
	yajl_gen_number(g, buf, to - buf);
	free(buf);
}

static void put_double(yajl_gen g, double v)
{
	char text[40];
	int digits;

	if (!isfinite(v)) {
		yajl_gen_null(g);
		return;
	}
	for (digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	yajl_gen_number(g, text, strlen(text));
}

static void key_text(yajl_gen g, const char *name, const char *text)
{
	key(g, name);
	put_text(g, text);
}

static void key_number(yajl_gen g, const char *name, uint64_t v)
{
	key(g, name);
	yajl_gen_integer(g, v > HIST_VALUE_MAX ? HIST_VALUE_MAX : (long long)v);
}

static void key_double(yajl_gen g, const char *name, double v, bool known)
{
	key(g, name);
	if (known)
		put_double(g, v);
	else
		yajl_gen_null(g);
}

static void key_bool(yajl_gen g, const char *name, bool on)
{
	key(g, name);
	yajl_gen_bool(g, on);
}

static void put_evidence(yajl_gen g, const char *name, const struct evidence *e)
{
	size_t i;

	key(g, name);
	yajl_gen_map_open(g);
	if (*e->unavailable) {
		key_text(g, "unavailable", e->unavailable);
		yajl_gen_map_close(g);
		return;
	}
	key_double(g, "median", e->median, true);
	key(g, "boots");
	yajl_gen_array_open(g);
	for (i = 0; i < e->boots; i++)
		put_double(g, e->low[i]);
	yajl_gen_array_close(g);
	if (!e->certain) {
		key(g, "max");
		yajl_gen_array_open(g);
		for (i = 0; i < e->boots; i++)
			put_double(g, e->high[i]);
		yajl_gen_array_close(g);
	}
	if (e->floor < e->ceiling) {
		key(g, "alignment");
		yajl_gen_array_open(g);
		put_double(g, e->floor);
		put_double(g, e->ceiling);
		yajl_gen_array_close(g);
	}
	if (e->flags & SAMPLE_INFERRED)
		key_bool(g, "inferred", true);
	if (e->flags & SAMPLE_LOWER_BOUND)
		key_bool(g, "lower_bound", true);
	yajl_gen_map_close(g);
}

static void put_item(yajl_gen g, const struct comparison_item *it)
{
	static const char *const better[] = { "lower", "higher", "neither" };

	yajl_gen_map_open(g);
	key_text(g, "name", it->name);
	if (*it->labels)
		key_text(g, "labels", it->labels);
	key_text(g, "unit", it->unit);
	key_text(g, "better", better[it->better]);
	key_bool(g, "primary", it->primary);
	key_text(g, "verdict", verdict_name(it->verdict));
	key_bool(g, "look_at", it->look);
	if (*it->reason)
		key_text(g, "reason", it->reason);
	key_text(g, "evidence", evidence_name(it->kind));
	key_double(g, "margin", it->margin, true);
	/* Fractions of the base: 0.05 is 5 % more. */
	key_double(g, "change", it->change, it->has_change && it->verdict != VERDICT_UNAVAILABLE);
	key(g, "interval");
	if (it->has_interval) {
		yajl_gen_array_open(g);
		put_double(g, it->low);
		put_double(g, it->high);
		yajl_gen_array_close(g);
		key_double(g, "level", it->level, true);
	} else {
		yajl_gen_null(g);
	}
	if (it->has_p) {
		key_double(g, "p", it->p, true);
		key_bool(g, "p_approximate", it->approximate);
	}
	put_evidence(g, "base", &it->base);
	put_evidence(g, "new", &it->new);
	yajl_gen_map_close(g);
}

static void put_side(yajl_gen g, const struct diff_view *d, size_t i,
		     const struct comparison_side *s)
{
	key(g, i ? "new" : "base");
	yajl_gen_map_open(g);
	key_text(g, "file", d->name[i]);
	key_text(g, "release", d->machine[i]->release);
	key_text(g, "virt", d->machine[i]->virt);
	key_number(g, "boots", s->boots);
	key_number(g, "runs", s->runs);
	key_number(g, "failed_runs", s->failed_runs);
	key_number(g, "probes_missing", s->missing);
	key(g, "lost_runs");
	if (s->lost_runs == UINT64_MAX)
		yajl_gen_null(g);
	else
		yajl_gen_integer(g, (long long)s->lost_runs);
	key_number(g, "unmatched", s->unmatched);
	key_number(g, "map_full", s->map_full);
	key_number(g, "events_lost", s->events_lost);
	yajl_gen_map_close(g);
}

static void put_states(yajl_gen g, const struct comparison *c)
{
	size_t i;

	key(g, "states");
	yajl_gen_array_open(g);
	for (i = 0; i < c->states; i++) {
		yajl_gen_map_open(g);
		key_text(g, "name", c->state[i].name);
		key_text(g, "base", c->state[i].base);
		key_text(g, "new", c->state[i].new);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	key_bool(g, "states_ignored", c->states_ignored);
}

static void put_comparison(yajl_gen g, const struct diff_view *d)
{
	const struct comparison *c = d->comparison;
	char power[400];
	size_t i;

	yajl_gen_map_open(g);
	key_number(g, "schema", DIFF_SCHEMA);
	key_text(g, "mmscope", MMSCOPE_VERSION);
	key_text(g, "result", diff_result(c));
	key_number(g, "status", c->status);
	key_text(g, "reason", c->reason);
	put_states(g, c);
	key_bool(g, "commands_differ", c->commands_differ);
	key_bool(g, "emulated", c->emulated);
	key_bool(g, "icount", c->icount);
	key_text(g, "evidence", evidence_name(c->kind));
	key_number(g, "decidable_primaries", c->decidable);
	diff_power(c, power, sizeof(power));
	key_text(g, "sample", power);
	put_side(g, d, 0, &c->base);
	put_side(g, d, 1, &c->new);
	key(g, "metrics");
	yajl_gen_array_open(g);
	for (i = 0; i < c->items; i++)
		if (diff_wanted(d, &c->item[i]))
			put_item(g, &c->item[i]);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

int diff_json(FILE *f, const struct diff_view *d)
{
	yajl_gen g = yajl_gen_alloc(NULL);
	const unsigned char *text;
	size_t len;
	int ret = -ENOMEM;

	if (!g)
		return ret;
	yajl_gen_config(g, yajl_gen_beautify, 1);
	yajl_gen_config(g, yajl_gen_indent_string, "  ");
	put_comparison(g, d);
	if (yajl_gen_get_buf(g, &text, &len) == yajl_gen_status_ok) {
		errno = 0;
		ret = fwrite(text, 1, len, f) == len && !fflush(f) ? 0 : -(errno ? errno : EIO);
	}
	yajl_gen_free(g);
	return ret;
}
