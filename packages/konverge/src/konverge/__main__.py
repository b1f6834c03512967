"""`python -m konverge`: the command line; without arguments it prints the sample type's CRD."""

import sys

from konverge.cli import main

main(sys.argv[1:] or ["sample"], prog_name="konverge")
