# module.mk: the common part of the test modules' Makefiles, which include it at
# their end.  A module is named as its folder.  Its Makefile sets PGFILEDESC, and
# MODULE_big and OBJS, or MODULES; what is here follows from the files.

# A pg_config found in the PATH is most likely another version's, and a module
# builds against the internals of exactly one server.
ifndef PG_CONFIG
$(error Set PG_CONFIG to the pg_config of the server to build for, e.g. make PG_CONFIG=/path/to/bin/pg_config)
endif

module_dir := $(dir $(abspath $(firstword $(MAKEFILE_LIST))))
module_name := $(notdir $(patsubst %/,%,$(module_dir)))

EXTENSION = $(module_name)
DATA = $(module_name)--1.0.sql
REGRESS := $(sort $(basename $(notdir $(wildcard $(module_dir)sql/*.sql))))

PG_CPPFLAGS += -I$(module_dir)../../lib

# Headers of patches that the server may lack: tools/build-extension has the
# extension write them here, above the folder that a module is built in.
PG_CPPFLAGS += -I../../include

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Some compile parts of the extension in.
$(OBJS) $(addsuffix .o,$(MODULES)): $(wildcard $(addprefix $(module_dir), \
	*.h ../../lib/*.h ../../../extension/*.h ../../../extension/*/*.[ch]))
