/*-------------------------------------------------------------------------
 *
 * test/lib/test_module.h
 *	  What the SQL functions of several test modules need.
 *
 * It uses nothing but core's exported functions: modules that measure an
 * unpatched server include it, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_MODULE_H
#define TEST_MODULE_H

#include "access/htup_details.h"
#include "access/relation.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

/*
 * The index of a name in an array; "what" says in the error what it names.
 */
static inline int
test_find_name(const char *const *names, int n, const text *name_text, const char *what)
{
	char	   *name = text_to_cstring(name_text);

	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	elog(ERROR, "there is no %s \"%s\"", what, name);
}

/*
 * The result of a function with OUT parameters.  A text is null if it is 0.
 */
static inline Datum
test_return_row(FunctionCallInfo fcinfo, const Datum *values)
{
	TupleDesc	desc;
	bool		nulls[FUNC_MAX_ARGS] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (int i = 0; i < desc->natts; i++)
		nulls[i] = values[i] == 0 && !TupleDescAttr(desc, i)->attbyval;
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

static inline Relation
test_open_relation(Oid relid, LOCKMODE lockmode)
{
	Relation	rel = relation_open(relid, lockmode);

	if (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) || RelationUsesLocalBuffers(rel))
		elog(ERROR, "\"%s\" has no shared buffers", RelationGetRelationName(rel));
	return rel;
}

/*
 * The SQL functions that add pages of zeros to a table: (rel, blocks).
 */
static inline Datum
test_extend_relation(FunctionCallInfo fcinfo)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	int32		blocks = PG_GETARG_INT32(1);
	Buffer		buffers[64];

	while (blocks > 0)
	{
		uint32		got;

		CHECK_FOR_INTERRUPTS();
		ExtendBufferedRelBy(BMR_REL(rel), MAIN_FORKNUM, NULL, 0,
							Min(blocks, lengthof(buffers)), buffers, &got);
		for (uint32 i = 0; i < got; i++)
			ReleaseBuffer(buffers[i]);
		blocks -= got;
	}
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

#endif							/* TEST_MODULE_H */
