/*-------------------------------------------------------------------------
 *
 * sim/engine/config.c
 *	  The keys of the configuration, and the machine.
 *
 * A line is "key value".  An unknown key, one that comes twice and a value out of
 * range end the run: a figure must not come from a mistyped setting.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define MAX_KEYS	512
#define MAX_LINE	512

typedef struct Setting
{
	char	   *key;
	char	   *value;
	bool		asked;
} Setting;

static Setting settings[MAX_KEYS];
static int	nsettings;

int64_t		sim_seed;
int64_t		sim_jitter;

/* ---- keys ---- */

static Setting *
find(const char *key)
{
	for (int i = 0; i < nsettings; i++)
		if (strcmp(settings[i].key, key) == 0)
			return &settings[i];
	return NULL;
}

static void
add_line(char *line)
{
	char	   *key = line + strspn(line, " \t");
	char	   *value;
	size_t		length;

	key[strcspn(key, "\r\n")] = '\0';
	if (*key == '\0' || *key == '#')
		return;
	value = key + strcspn(key, " \t");
	if (*value != '\0')
		*value++ = '\0';
	value += strspn(value, " \t");
	length = strlen(value);
	while (length > 0 && strchr(" \t", value[length - 1]) != NULL)
		value[--length] = '\0';
	if (*value == '\0')
		sim_fail("key \"%s\" has no value", key);
	if (find(key) != NULL)
		sim_fail("key \"%s\" comes twice", key);
	if (nsettings == MAX_KEYS)
		sim_fail("more than %d keys", MAX_KEYS);
	settings[nsettings].key = strdup(key);
	settings[nsettings].value = strdup(value);
	if (settings[nsettings].key == NULL || settings[nsettings].value == NULL)
		sim_fail("out of memory");
	nsettings++;
}

void
sim_config_read(void)
{
	char		line[MAX_LINE];

	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		if (strchr(line, '\n') == NULL && !feof(stdin))
			sim_fail("a line of the configuration is longer than %d characters", MAX_LINE - 2);
		add_line(line);
	}
	if (ferror(stdin))
		sim_fail("cannot read the configuration: %s", strerror(errno));
}

void
sim_config_check(void)
{
	for (int i = 0; i < nsettings; i++)
		if (!settings[i].asked)
			sim_fail("unknown key \"%s\" (or not one of this load, strategy or machine)",
					 settings[i].key);
}

const char *
sim_config_text(const char *key, const char *dflt)
{
	Setting    *setting = find(key);

	if (setting == NULL)
	{
		if (dflt == NULL)
			sim_fail("key \"%s\" is missing", key);
		return dflt;
	}
	setting->asked = true;
	return setting->value;
}

/*
 * A default less than min: the key must be there.
 */
int64_t
sim_config_int(const char *key, int64_t min, int64_t max, int64_t dflt)
{
	Setting    *setting = find(key);
	long long	value;
	char	   *end;

	if (setting == NULL)
	{
		if (dflt < min)
			sim_fail("key \"%s\" is missing", key);
		return dflt;
	}
	setting->asked = true;
	errno = 0;
	value = strtoll(setting->value, &end, 10);
	if (errno != 0 || end == setting->value || *end != '\0')
		sim_fail("%s must be a whole number, not \"%s\"", key, setting->value);
	if (value < min || value > max)
		sim_fail("%s must be %lld .. %lld, not %lld", key,
				 (long long) min, (long long) max, value);
	return value;
}

int
sim_backends(void)
{
	return (int) sim_config_int("backends", 1, SIM_MAX_FIBERS - 64, 1);
}

/* ---- the machine ---- */

typedef enum KeyKind
{
	SHAPE,						/* a number of things: int */
	LATENCY,					/* of a transfer: scaled by latency_percent */
	COST,						/* any other time */
	RATE,						/* bytes, or bytes a second; 0 = no limit */
} KeyKind;

typedef struct MachineKey
{
	const char *key;
	KeyKind		kind;
	size_t		offset;
} MachineKey;

#define KEY(kind, name) {"machine." #name, kind, offsetof(SimMachine, name)}

static const MachineKey machine_keys[] = {
	KEY(SHAPE, cores), KEY(SHAPE, threads_per_core), KEY(SHAPE, cores_per_group),
	KEY(SHAPE, groups_per_node), KEY(SHAPE, nodes_per_socket), KEY(SHAPE, sockets),
	KEY(LATENCY, latency_same_core), KEY(LATENCY, latency_group),
	KEY(LATENCY, latency_node), KEY(LATENCY, latency_socket),
	KEY(LATENCY, latency_other_socket), KEY(LATENCY, memory_local),
	KEY(LATENCY, memory_socket), KEY(LATENCY, memory_other), KEY(COST, load_hit),
	KEY(COST, store_hit), KEY(COST, rmw_hit), KEY(COST, cas_hit), KEY(COST, pause),
	KEY(COST, keep_ps), KEY(COST, instruction_ps), KEY(COST, wakeup_ps),
	KEY(COST, wake_call_ps), KEY(COST, sleep_call_ps), KEY(COST, switch_ps),
	KEY(COST, timeslice_ps), KEY(RATE, copy_bytes_per_s),
	KEY(RATE, bandwidth_bytes_per_s), KEY(RATE, llc_bytes),
};

static SimMachine machine;

const SimMachine *
sim_machine(void)
{
	return &machine;
}

int
sim_nodes(void)
{
	return machine.sockets * machine.nodes_per_socket;
}

int
sim_cpus(void)
{
	return machine.cores * machine.threads_per_core;
}

void
sim_machine_setup(void)
{
	int64_t		percent = sim_config_int("latency_percent", 1, 10000, 100);

	for (size_t i = 0; i < lengthof(machine_keys); i++)
	{
		const MachineKey *key = &machine_keys[i];
		char	   *field = (char *) &machine + key->offset;

		switch (key->kind)
		{
			case SHAPE:
				*(int *) field = (int) sim_config_int(key->key, 1, SIM_MAX_CPUS - 8, 0);
				break;
			case LATENCY:
				*(SimTime *) field = sim_config_int(key->key, 0, SIM_MS, -1) * percent / 100;
				break;
			case COST:
				*(SimTime *) field = sim_config_int(key->key, 0, SIM_S, -1);
				break;
			case RATE:
				*(int64_t *) field = sim_config_int(key->key, 0, INT64_C(1) << 50, -1);
				break;
		}
	}
	if ((int64_t) machine.cores_per_group * machine.groups_per_node *
		machine.nodes_per_socket * machine.sockets != machine.cores)
		sim_fail("machine: %d cores a group x %d groups a node x %d nodes a socket x %d sockets"
				 " are not %d cores", machine.cores_per_group, machine.groups_per_node,
				 machine.nodes_per_socket, machine.sockets, machine.cores);
	if ((int64_t) machine.cores * machine.threads_per_core > SIM_MAX_CPUS - 8)
		sim_fail("machine: more than %d CPUs", SIM_MAX_CPUS - 8);
	if (machine.timeslice_ps < SIM_US)
		sim_fail("machine.timeslice_ps must be at least %lld", (long long) SIM_US);
	sim_seed = sim_config_int("seed", 0, INT64_MAX, 1);
	sim_jitter = sim_config_int("jitter_percent", 0, 50, 5) * 1024 / 100;
}
