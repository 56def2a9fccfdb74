"""A page as a browser shows it."""

import html
import json
import re
import subprocess

# Frames are narrower than a browser's own window can be; a page's folds are opened in them.
MEASURE = """<pre id="found"></pre><script>
addEventListener("load", () => {
  const pages = [...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument);
  for (const page of pages) for (const fold of page.querySelectorAll("details")) fold.open = true;
  setTimeout(() => {
    const found = pages.map((page) => page.documentElement.scrollWidth);
    document.getElementById("found").textContent = JSON.stringify(found);
  }, 8000);
});
</script>"""


def reaches(pages, widths, chromium, folder):
    """Return how far each page reaches, in pixels, in frames of each width, with its folds open."""
    frames = (
        f'<iframe width="{width}" height="4000" srcdoc="{html.escape(page)}"></iframe>'
        for page in pages
        for width in widths
    )
    path = folder / "frames.html"
    start = '<!doctype html><meta charset="utf-8"><style>iframe { border: 0; display: block }'
    path.write_text(f"{start}</style>{MEASURE}{''.join(frames)}", encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               f"--window-size={max(widths) + 100},4000", "--virtual-time-budget=20000",
               "--dump-dom", f"--user-data-dir={folder / 'profile'}")  # fmt: skip
    done = subprocess.run(
        [chromium, *options, path.as_uri()], capture_output=True, text=True, check=True, timeout=180
    )
    (found,) = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout)
    every = iter(json.loads(found))
    return [[next(every) for _ in widths] for _ in pages]
