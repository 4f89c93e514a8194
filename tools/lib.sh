# lib.sh: shared by the build tools: paths, messages, locks, the plain user.
# Sourced by the bash scripts in this folder, never run.

sweep_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
sweep_build=$sweep_root/build

# Warnings are errors in continuous integration, not for users, who have compilers
# that we have not seen.
if [ "${CI:-}" = true ]; then export SWEEP_WERROR=yes; fi

say() { printf '==> %s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
	printf '%s: error: %s\n' "${0##*/}" "$1" >&2
	shift
	local hint
	for hint in "$@"; do printf '  hint: %s\n' "$hint" >&2; done
	exit 1
}

# The major version of PostgreSQL; "make MAJOR=NN" sets SWEEP_MAJOR.
export SWEEP_MAJOR=${SWEEP_MAJOR:-18}
sweep_major=$SWEEP_MAJOR
sweep_base=$sweep_build/$sweep_major
series_dir=$sweep_root/core-hooks/$sweep_major

check_major() {
	[ -f "$series_dir/series" ] ||
		die "there are no patches for PostgreSQL $sweep_major" \
			"there are patches for: $(cd "$sweep_root/core-hooks" && echo [0-9]*)"
}

check_variant() {
	case $1 in
		release | cassert | stock | trace | cassert-without-* | cassert-with-* | release-with-*) ;;
		*) die "unknown variant \"$1\"" "the variants are release, cassert, stock and trace; also cassert-without-PATCH, cassert-with-PATCH and release-with-PATCH" ;;
	esac
}

# make and PostgreSQL's own scripts split paths at white space.  Fail now instead
# of deep in the build.
check_root_path() {
	case $sweep_root in
		*[[:space:]\'\"\$\`\\:\;\&\(\)\|\<\>\*\?#%]*)
			die "the path of this clone has a character that make cannot handle: $sweep_root" \
				"move the clone to a path of letters, digits, '/', '.', '_' and '-'"
			;;
	esac
}

# PostgreSQL refuses to run as root: restart the calling script as the plain user
# that owns build/.  Call this first, with the script's arguments.
as_plain_user() {
	if [ "$(id -u)" = 0 ]; then
		exec "$sweep_root/tools/as-user" "$sweep_root/tools/${0##*/}" "$@"
	fi
	[ "${SWEEP_AS_USER:-}" = "$sweep_root" ] ||
		exec "$sweep_root/tools/as-user" "$sweep_root/tools/${0##*/}" "$@"
}

# Hold lock NAME until the script ends: two makes (or make -j) in one clone wait
# for each other.
take_lock() {
	mkdir -p "$sweep_build/locks"
	exec {sweep_lock_fd}>"$sweep_build/locks/$1"
	if ! flock -n "$sweep_lock_fd"; then
		say "waiting for another build ($1) in this clone"
		flock "$sweep_lock_fd"
	fi
}

# Run a command without the lock.  A server that it leaves behind would otherwise
# hold the lock until it ends.
unlocked() (
	exec {sweep_lock_fd}>&-
	"$@"
)

# Run make without the flags, overrides and job server of an outer make.
inner_make() { env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL -u MAKEFILES make "$@"; }

jobs_wanted() { printf '%s\n' "${JOBS:-$(nproc 2>/dev/null || echo 2)}"; }

# Print one hash over the names and contents of the files on standard input.
hash_files() { LC_ALL=C sort | xargs -r -d '\n' sha256sum | sha256sum | cut -d' ' -f1; }

hash_text() { sha256sum | cut -d' ' -f1; }

read_stamp() { if [ -f "$1" ]; then cat "$1"; fi; }

write_stamp() {
	printf '%s\n' "$2" >"$1.new"
	mv "$1.new" "$1"
}

# Print the version of a PostgreSQL source tree, or nothing.
tree_version() {
	local v=
	if [ -f "$1/configure" ]; then
		v=$(sed -n "s/^PACKAGE_VERSION='\(.*\)'$/\1/p" "$1/configure" | head -n 1)
	fi
	if [ -z "$v" ] && [ -f "$1/meson.build" ]; then
		v=$(sed -n "/^project('postgresql'/,/^)/s/^ *version: '\(.*\)',$/\1/p" "$1/meson.build" | head -n 1)
	fi
	printf '%s\n' "$v"
}

# PostgreSQL 18.6 -> 18, 19devel -> 19
version_major() { printf '%s\n' "${1%%[!0-9]*}"; }

# Print the patch names of a series, without comments and empty lines.
series_names() { sed -e 's/[[:space:]]*#.*$//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1/series"; }
