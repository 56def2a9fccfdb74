"""Write the pages of calibration: what metrics and audits find where the bias is known.

    python -m tools.calibration

Takes an hour or so, needs no data, and writes the same bytes each time.
"""

from tools.calibration import audits
from tools.calibration.page import page
from tools.calibration.runner import calibrate

if __name__ == "__main__":
    folder = audits.ROOT / "docs"
    for name, text in (("families", page(calibrate())), ("audits", audits.page(400))):
        (folder / f"calibration-{name}.md").write_text(text, encoding="utf-8", newline="\n")
