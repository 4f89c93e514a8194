# Makefile for pg_sweep
#
# With PG_CONFIG this is a PGXS extension like any other:
#     make PG_CONFIG=/path/to/bin/pg_config install installcheck
# Without it, the server that this project builds is meant, never a pg_config
# that happens to be in the PATH; see "make help" and tools/project.mk.

sweep_makefile := $(realpath $(firstword $(MAKEFILE_LIST)))
ifneq ($(words $(sweep_makefile)),1)
$(error The path of this folder has white space in it, which make cannot handle; move the clone)
endif
sweep_srcdir := $(patsubst %/,%,$(dir $(sweep_makefile)))

# Targets that are the project's own even if a PG_CONFIG is given
project_goals = server servers demo check check-core check-numa check-arch check-extensions check-long bench help

sweep_mode := $(if $(filter $(project_goals),$(MAKECMDGOALS)),project,$(if $(PG_CONFIG),pgxs,project))
ifeq ($(sweep_mode),project)
include $(sweep_srcdir)/tools/project.mk
else

# ---- PGXS ----

all:

sweep_version := $(shell $(PG_CONFIG) --version)
ifeq ($(sweep_version),)
$(error PG_CONFIG=$(PG_CONFIG) cannot be run)
endif
sweep_majors := $(sort $(patsubst $(sweep_srcdir)/core-hooks/%/series,%,$(wildcard $(sweep_srcdir)/core-hooks/*/series)))
sweep_major := $(strip $(foreach m,$(sweep_majors),$(if $(filter $(m)%,$(word 2,$(sweep_version))),$(m))))
ifeq ($(sweep_major),)
$(error PG_CONFIG=$(PG_CONFIG) is of $(sweep_version); pg_sweep is for PostgreSQL $(sweep_majors))
endif

MODULE_big = pg_sweep
EXTENSION = pg_sweep
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" $(sweep_srcdir)/pg_sweep.control)
PGFILEDESC = "pg_sweep - switchable buffer replacement"

sweep_find = $(patsubst $(sweep_srcdir)/%,%,$(foreach d,extension extension/*,$(wildcard $(sweep_srcdir)/$(d)/$(1))))
OBJS = $(patsubst %.c,%.o,$(call sweep_find,*.c))
DATA = $(call sweep_find,pg_sweep--*.sql)
ifeq ($(filter %/pg_sweep--$(EXTVERSION).sql,$(DATA)),)
$(error There is no extension/pg_sweep--$(EXTVERSION).sql, which pg_sweep.control names)
endif

PG_CPPFLAGS = -I$(sweep_srcdir)/extension -DPGSWEEP_VERSION='"$(EXTVERSION)"'
PG_CFLAGS = -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

# If the server has it.  PGXS, which says so, is included below: the right side
# is looked at when it is used.
SHLIB_LINK += $(if $(filter yes,$(with_libnuma)),-lnuma)

# What the tests leave behind, and the headers below
sweep_out := $(if $(filter $(sweep_srcdir),$(CURDIR)),build/pgxs,.)

# The headers of the hooks are always those of this folder's patches, never the
# server's: there, any of the patches may have been left out, and the library can
# be built for it all the same (it then says so when it is asked).  That server
# and library mean the same is what the number of the contract is for, which is
# compared at start.
sweep_hooks_h := $(sweep_out)/include/storage/sweep_hooks.h
PG_CPPFLAGS += -I$(sweep_out)/include
EXTRA_CLEAN += $(sweep_out)/include

sweep_names = $(sort $(basename $(notdir $(wildcard $(sweep_srcdir)/$(1)))))
REGRESS := $(call sweep_names,sql/*.sql)
REGRESS_OPTS = --outputdir=$(sweep_out)/regress
ISOLATION := $(call sweep_names,specs/*.spec)
ISOLATION_OPTS = --outputdir=$(sweep_out)/isolation
TAP_TESTS := $(if $(wildcard $(sweep_srcdir)/t/*/*.pl),1)
REGRESS_PREP = sweep-output-folders
EXTRA_CLEAN += .deps $(sweep_out)/regress $(sweep_out)/isolation $(sweep_out)/tap

# pg_sweep_ab is the Python package ab/, with the control file for its version, as
# one file.
sweep_ab := $(sweep_out)/pg_sweep_ab
sweep_ab_parts := $(filter-out %/test_%,$(wildcard $(sweep_srcdir)/ab/*.py)) $(sweep_srcdir)/pg_sweep.control
ifneq ($(shell command -v python3),)
SCRIPTS_built = $(sweep_ab)
else
$(warning There is no python3: pg_sweep_ab is left out)
endif

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(call sweep_find,*.h) $(sweep_hooks_h) | sweep-object-folders

# It stands for all of them: they are written at once.
$(sweep_hooks_h): $(wildcard $(sweep_srcdir)/core-hooks/$(sweep_major)/* $(sweep_srcdir)/core-hooks/$(sweep_major)/*/*) $(sweep_srcdir)/tools/hooks-header
	$(sweep_srcdir)/tools/hooks-header $(sweep_major) $(sweep_out)/include

$(sweep_ab): $(sweep_ab_parts)
	rm -rf $@.parts && $(MKDIR_P) $@.parts/ab
	cp $(sweep_ab_parts) $@.parts/ab && mv $@.parts/ab/__main__.py $@.parts
	python3 -m zipapp --compress --python='/usr/bin/env python3' --output=$@ $@.parts
	rm -rf $@.parts

# PGXS removes a script by the path that it was built under.
uninstall: sweep-uninstall-ab
sweep-uninstall-ab:
	rm -f '$(DESTDIR)$(bindir)/$(notdir $(sweep_ab))'

.PHONY: sweep-uninstall-ab sweep-object-folders sweep-output-folders
sweep-object-folders:
	@mkdir -p $(sort $(dir $(OBJS)))
sweep-output-folders:
	@mkdir -p $(sweep_out)/regress $(sweep_out)/isolation

# PGXS only says so, and succeeds, if the server was built without TAP.
ifeq ($(enable_tap_tests),yes)
define prove_installcheck
$(sweep_srcdir)/tools/tap --pg-config '$(shell command -v $(PG_CONFIG))' --output '$(abspath $(sweep_out)/tap)' $(PROVE_TESTS)
endef
else
define prove_installcheck
@echo 'installcheck: error: the TAP tests did not run: this server was built without --enable-tap-tests' >&2; exit 1
endef
endif

endif
