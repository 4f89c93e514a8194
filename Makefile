# Makefile for pg_sweep

SHELL = /bin/bash

VARIANT ?= release

.PHONY: server servers
server:
	@tools/server $(VARIANT)
servers:
	@tools/server release cassert stock
