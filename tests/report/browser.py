"""A page as a browser shows it: Chromium, driven over the WebDriver protocol."""

import base64
import json
import re
import subprocess
import urllib.request
from contextlib import contextmanager

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip

# Fulfilled once no chart in view is without its drawing.
DRAWN = """return new Promise((done) => {
  const near = (one) => one.checkVisibility() && one.getBoundingClientRect().top < innerHeight;
  const wait = () => [...document.querySelectorAll("[data-chart]")].some(
    (one) => near(one) && !one.querySelector("svg")) ? setTimeout(wait, 20) : done();
  wait();
});"""


class Browser:
    """One window of Chromium."""

    def __init__(self, address, chromium):
        self.address = address
        options = {"binary": chromium, "args": [*OPTIONS]}
        # After a redirect the page may not be there yet when the visit ends.
        capabilities = {"browserName": "chrome", "timeouts": {"implicit": 10_000},
                  "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}  # fmt: skip
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{session['sessionId']}"

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def close(self):
        """Close the window."""
        self._ask("DELETE", self.session)

    def command(self, name, **values):
        """Send a command of the DevTools protocol."""
        body = {"cmd": name, "params": values}
        return self._ask("POST", f"{self.session}/goog/cdp/execute", body)

    def open(self, path, *, width=1400, height=900, dark=False, query=""):
        """Open a file in a window of a size, and wait until the charts in view are drawn."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media="", features=[scheme])
        self._ask("POST", f"{self.session}/url", {"url": path.absolute().as_uri() + query})
        self.run(DRAWN)

    def visit(self, address):
        """Open an address."""
        self._ask("POST", f"{self.session}/url", {"url": address})

    @property
    def address_now(self):
        """Address of the page that is shown."""
        return self._ask("GET", f"{self.session}/url")

    def click(self, selector, place=0):
        """Click one of the elements of a selector, and wait for the page that it opens."""
        body = {"using": "css selector", "value": selector}
        response = self._ask("POST", f"{self.session}/elements", body)[place]
        element = next(iter(response.values()))
        self._ask("POST", f"{self.session}/element/{element}/click", {})

    def run(self, script, *values):
        """Return the result of a script; a promise is awaited."""
        body = {"script": script, "args": [*values]}
        return self._ask("POST", f"{self.session}/execute/sync", body)

    def press(self, *keys):
        """Press keys, as a keyboard does."""
        for key in keys:
            actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
            source = {"type": "key", "id": "keyboard", "actions": actions}
            self._ask("POST", f"{self.session}/actions", {"actions": [source]})

    def logged(self):
        """Return what the console got since the last call."""
        lines = self._ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [line["message"] for line in lines]

    def picture(self, *, full_page=False):
        """Return a PNG of the window, or of the whole page."""
        response = self.command("Page.captureScreenshot", captureBeyondViewport=full_page)
        return base64.b64decode(response["data"])

    def printed(self):
        """Return the page as a PDF on A4."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69}
        response = self.command("Page.printToPDF", printBackground=True, **size)
        return base64.b64decode(response["data"])


def sheets(pdf):
    """Return how many pages a PDF of Chromium has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@contextmanager
def started(chromium, chromedriver):
    """Start a browser, and end it."""
    command = [chromedriver, "--port=0"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **quiet) as driver:
        ready = (re.search(r"started.* on port (\d+)", line) for line in driver.stdout)
        port = next(match[1] for match in ready if match)
        try:
            browser = Browser(f"http://127.0.0.1:{port}", chromium)
            yield browser
            browser.close()
        finally:
            driver.terminate()
