"""The README's pictures of the app, taken with the shipped sample results.

    python -m tests.bench.make_pictures [FOLDER]

Writes one small PNG a page into FOLDER (data/pictures). Take them anew when the sample or a page has
changed.
"""

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

from liob_core.config import PROJECT_DIR
from tests.browser.conftest import CHROMIUM, QUIET, serve

# page -> appearance, and the height that shows what the page is for
PAGES = {
    "results": ("light", 1000),
    "tradeoffs": ("dark", 1000),
    "quality": ("light", 1000),
    "answers": ("dark", 1000),
    "resources": ("light", 1000),
    "new": ("dark", 1000),
}
WIDTH = 1400


def take(browser: Browser, url: str, theme: str, height: int) -> bytes:
    """A PNG of the page once it has settled."""
    context = browser.new_context(viewport={"width": WIDTH, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.goto(url)
    expect(page.locator("h1").first).to_be_visible(timeout=120_000)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=120_000)
    expect(page.locator("[data-stale='true'], [data-testid='stSkeleton']")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(2_500)  # pictures are drawn after the script has ended
    picture = page.screenshot()
    context.close()
    return picture


def main() -> None:
    """Write the pictures and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=PROJECT_DIR / "data" / "pictures")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        with serve(Path(home)) as app:
            for name, (theme, height) in PAGES.items():
                path = folder / f"{name}.png"
                image = Image.open(io.BytesIO(take(browser, f"{app.url}/{name}", theme, height)))
                # Few marks have a variant's colour, so the rarest colours must be kept too.
                few = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
                few.save(path, optimize=True)
                print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main()
