/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/clock2q_model.h
 *	  What "clock2q" does with one process, from its description in
 *	  docs/design/0020: a list of loads instead of a ring, counts instead of
 *	  tickets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLOCK2Q_MODEL_H
#define CLOCK2Q_MODEL_H

static struct
{
	uint32		n;
	uint32		batch;
	uint32		length;
	int64		change;			/* not applied yet */
	uint64		loads;
	uint64		judged;			/* loads, in their order */
	uint32		left;			/* loads until the change is applied */
	int64		owed;			/* may be judged until then */
	uint64		hand;			/* of the main part */
	uint8		usage[MAX_POOL];
	bool		new[MAX_POOL];	/* buffers on probation */
	uint32		load[MOST_LOADS];	/* buffer of each load on probation */
	bool		burst_over[MOST_LOADS];
} model;

static void
make_model(uint32 n, uint32 batch)
{
	memset(&model, 0, sizeof(model));
	model.n = n;
	model.batch = batch;
	model.length = least_length();
}

static void
model_used(uint32 buf)
{
	model.usage[buf] = Min(model.usage[buf] + 1, 5);
}

static void
model_lease(void)
{
	model.length = Min(Max(model.length + model.change, least_length()), most_length());
	model.change = 0;
	model.left = model.batch;
	model.owed = (int64) (model.loads + model.batch - model.judged) - model.length;
	model.owed = Min(Max(model.owed, 0), 4 * (int64) model.batch);
}

/* The oldest load that has not been judged; whether its buffer is the victim */
static bool
model_judge(uint32 *buf)
{
	uint64		load = model.judged++;

	*buf = model.load[load];
	if (*buf == NOTHING)
		return false;
	model.new[*buf] = false;
	model.load[load] = NOTHING;
	if (model.hand >= model.n && model.usage[*buf] <= (model.burst_over[load] ? 0 : 1))
		return true;
	model.usage[*buf] = Min(model.usage[*buf], 2);
	return false;
}

static uint32
model_victim(void)
{
	uint64		burst = model.loads - window_length();
	uint32		buf;

	if (model.left == 0)
		model_lease();
	if (window_length() > 0 && model.loads >= window_length() && model.load[burst] != NOTHING)
	{
		model.usage[model.load[burst]] = 0;
		model.burst_over[burst] = true;
	}
	while (model.owed >= model.left)
	{
		model.owed--;
		if (model_judge(&buf))
			return buf;
	}
	for (;;)
	{
		buf = (uint32) (model.hand++ % model.n);
		if (model.new[buf])
			continue;
		if (model.usage[buf] == 0)
			return buf;
		model.usage[buf]--;
	}
}

static void
model_loaded(uint32 buf, PgSweepC2qSide side, int32 change)
{
	if (sim.mode != ALONE)
		return;
	model.new[buf] = side == STRANGER;
	model.load[model.loads++] = side == STRANGER ? buf : NOTHING;
	model.usage[buf] = side == PGSWEEP_C2Q_MAIN ? 2 : 1;
	model.change += change;
	model.left--;
}

#endif							/* CLOCK2Q_MODEL_H */
