# vpath.mk: read after an extension's Makefile (make -f Makefile -f vpath.mk) to
# build outside its folder.  PGXS sets VPATH, with which make would also use
# objects and libraries in the source folder, from a build for another server.
# This restricts the search to sources.
VPATH =
vpath %.c $(srcdir)
vpath %.h $(srcdir)
vpath %.control $(srcdir)
