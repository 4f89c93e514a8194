"""Which parameters of the server may be switched while it works for others."""

from ab.errors import UserError

# Values of pg_settings.category whose parameters decide how fast something is
# done, not what is done, with which privileges, or what is left after a crash.
CATEGORIES = (
    "Customized Options", "Lock Management", "Query Tuning /",
    "Reporting and Logging / What to Log",
    "Reporting and Logging / When to Log",
    "Reporting and Logging / Process Title", "Resource Usage /",
    "Statistics /", "Vacuuming /", "Write-Ahead Log / Checkpoints",
    "Write-Ahead Log / Recovery", "Write-Ahead Log / Settings",
)
# In other categories, but of that kind
ALSO = ("debug_parallel_query", "gin_fuzzy_search_limit",
        "gin_pending_list_limit", "jit_expressions", "jit_tuple_deforming",
        "synchronize_seqscans")
# In these categories, but not of that kind
NOT = {
    "fsync": "a crash meanwhile would leave a corrupt cluster",
    "full_page_writes": "a crash meanwhile would leave a corrupt cluster",
    "synchronous_commit": "a crash meanwhile could lose what was committed",
    "default_statistics_target": "statistics that are taken meanwhile would"
                                 " stay",
    "temp_file_limit": "it cancels the work of others",
    "max_stack_depth": "it cancels the work of others, or crashes it",
    "track_counts": "nothing could be measured meanwhile",
    "track_activities": "nothing could be measured meanwhile",
    "application_name": "pg_sweep_ab sets it",
    "pg_sweep.numa_affinity": "processes read it when they start",
    "pg_sweep.numa_local_memory": "processes read it when they start",
    "pg_sweep.numa_debug_node": "it is for tests",
}
CONTEXTS = {
    "internal": "cannot be changed",
    "postmaster": "can be changed by a restart only",
    "backend": "is read when a session begins: running ones would not see it",
    "superuser-backend": "is read when a session begins: running ones would"
                         " not see it",
}
# pg_settings.source of a value that ALTER SYSTEM cannot change
OVERRIDDEN = {
    "command line": "on the server's command line",
    "override": "by the server itself",
    "client": "by the options of this connection (PGOPTIONS?)",
    "session": "in this session",
    "global": "by ALTER ROLE ALL",
    "database": "by ALTER DATABASE",
    "user": "by ALTER ROLE",
    "database user": "by ALTER ROLE IN DATABASE",
}
# What the planner reads: a plan that a prepared statement keeps does not
# change with one of these.
PLANNING = ("Query Tuning /", "Resource Usage / Worker Processes")
PLANNING_ALSO = ("debug_parallel_query", "effective_io_concurrency",
                 "hash_mem_multiplier", "jit_expressions", "work_mem")


def check(name, category, context, source):
    """Refuse what is unfit for an experiment, or would have no effect."""
    if context in CONTEXTS:
        raise UserError(f"{name} {CONTEXTS[context]}")
    if name in NOT:
        raise UserError(f"{name} is not for an experiment: {NOT[name]}")
    if not category.startswith(CATEGORIES) and name not in ALSO:
        raise UserError(f"{name} is not for an experiment: category"
                        f" \"{category}\" may change what is done, or what"
                        " is left, not just how fast it is done")
    if source in OVERRIDDEN:
        raise UserError(f"{name} is set {OVERRIDDEN[source]}: ALTER SYSTEM"
                        " would have no effect on the load")


def is_planning(name, category):
    return category.startswith(PLANNING) or name in PLANNING_ALSO
