"""Write tables of docs/calibration: metrics and audits where the bias is known.

    python -m tools.calibration

Takes an hour or so, needs no data, and writes the same bytes each time.
"""

from tools.calibration import audits, rows
from tools.calibration.runner import calibrate

if __name__ == "__main__":
    rows.write_tables(calibrate())
    audits.write_tables(400)
