# project.mk: the targets of the project itself; included by Makefile.

# For tools and tests: a major version that core-hooks has patches for
export SWEEP_MAJOR := $(or $(MAJOR),18)

VARIANT ?= $(default_variant)
default_variant = release
sweep_tools := $(sweep_srcdir)/tools

.PHONY: all server servers install uninstall installcheck demo check check-core \
	check-numa check-arch check-extensions check-long bench clean distclean help

ifeq ($(PG_CONFIG),)

# The extension for one of our own servers; that is built first if needed.
all install:
	@$(sweep_tools)/server $(VARIANT)

uninstall installcheck: all
	@$(MAKE) -C $(sweep_srcdir) --no-print-directory PG_CONFIG=$(sweep_srcdir)/build/$(SWEEP_MAJOR)/$(VARIANT)/bin/pg_config $@

clean:
	@$(sweep_tools)/clean
distclean:
	@$(sweep_tools)/clean --all

else

# A PG_CONFIG and one of our own targets in the same command
all install uninstall installcheck clean distclean:
	@$(MAKE) -C $(sweep_srcdir) --no-print-directory $@

endif

server:
	@$(sweep_tools)/server $(VARIANT)

servers:
	@$(sweep_tools)/server release cassert stock

demo:
	@$(sweep_tools)/server release
	@$(sweep_tools)/as-user $(sweep_tools)/demo $(DEMO)

check: default_variant = cassert
check:
	@$(sweep_tools)/check $(if $(AREA),--area '$(AREA)') $(if $(PG_CONFIG),--pg-config '$(PG_CONFIG)',$(VARIANT))

check-core:
	@$(sweep_tools)/check-core $(if $(STRATEGIES),--strategies '$(STRATEGIES)') \
		$(if $(POLICIES),--policies '$(POLICIES)') $(if $(SUITES),--suites '$(SUITES)')

check-numa:
	@$(sweep_tools)/check-numa $(if $(NODES),--nodes '$(NODES)') $(if $(PAGES),--pages '$(PAGES)') $(TESTS)

check-arch:
	@$(sweep_tools)/check-arch $(ARCH)

check-extensions:
	@CITUS_SOURCE='$(CITUS_SOURCE)' $(sweep_tools)/check-extensions $(EXTENSIONS)

check-long:
	@$(sweep_tools)/check-long

bench:
	@$(sweep_tools)/bench $(if $(QUICK),--quick) $(BENCH)

help:
	@$(sweep_tools)/help
