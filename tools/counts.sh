# counts.sh: adds up the counts of test runners.  Sourced, never run.
# A counts file has one line per part: NAME PASSED FAILED [SKIPPED].

# Count the tests in the output of a pg_regress or pg_isolation_regress (file
# $2) as part $1 into the counts file $SWEEP_COUNTS.
count_regress() {
	awk -v name="$1" '
		/^ok [0-9]/ { passed++ }
		/^not ok [0-9]/ { failed++ }
		END { print name, passed + 0, failed + 0, 0 }' "$2" >>"$SWEEP_COUNTS"
}

# Add a failure that no runner counted, and say which.
count_failure() {
	printf '%s 0 1 0\n' "$1" >>"$SWEEP_COUNTS"
	shift
	warn "$@"
}

print_counts() {
	awk '{ printf "  %-40s %5d passed, %d failed%s\n", $1, $2, $3, ($4 ? ", " $4 " skipped" : "") }' "$SWEEP_COUNTS"
}

# The closing line; fails if anything failed, or ran nothing.
print_total() {
	awk '
		{ passed += $2; failed += $3; skipped += $4; if ($2 + $3 == 0) empty = empty " " $1 }
		END {
			if (empty != "") { print "error: ran no test:" empty; bad = 1 }
			if (NR == 0) { print "error: no tests were run at all"; bad = 1 }
			if (bad && !failed) failed = 1
			printf "%d passed, %d failed%s\n", passed, failed, (skipped ? ", " skipped " skipped" : "")
			exit failed ? 1 : 0
		}' "$SWEEP_COUNTS"
}
