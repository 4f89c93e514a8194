# vpath.mk: read after an extension's Makefile (make -f Makefile -f vpath.mk) when
# it is built outside its folder.  PGXS sets VPATH there, by which make would also
# take objects and libraries that somebody's build for another server left in
# the source folder for ours.  Only sources are to be found there.
VPATH =
vpath %.c $(srcdir)
vpath %.h $(srcdir)
vpath %.control $(srcdir)
