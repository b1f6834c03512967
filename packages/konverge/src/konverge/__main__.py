"""Run the command line with `python -m konverge`; without arguments it prints the CRD of the sample kind."""

import sys

from konverge.cli import main

main(sys.argv[1:] or ["sample"], prog_name="konverge")
