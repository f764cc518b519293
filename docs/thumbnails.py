"""Small pictures of all figures for the gallery's index: `python docs/thumbnails.py [FOLDER]`.

Each is made from the picture of the full run in docs/images if there is one, otherwise from the last picture on the
figure's page: FOLDER contains the executed pages, docs/_build/jupyter_execute/gallery after `make docs`. They are
written to docs/images/thumbnails, about 10 kB each.
"""

import base64
import io
import json
import sys
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent
SIZE = (440, 300)  # at most; cards show them at half this size
COLOURS = 64


def drawn(page: Path) -> bytes:
    """The last picture on an executed page."""
    outputs = [out for cell in json.loads(page.read_text())["cells"] for out in cell.get("outputs", [])]
    pictures = [out["data"]["image/png"] for out in outputs if "image/png" in out.get("data", {})]
    return base64.b64decode(pictures[-1])


def shrunk(picture: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail(SIZE, Image.Resampling.LANCZOS)
    return image.quantize(COLOURS)


def main(executed: Path) -> None:
    for page in sorted((DOCS / "gallery").glob("*.md")):
        full, notebook = DOCS / f"images/{page.stem}.png", executed / f"{page.stem}.ipynb"
        if page.stem != "index" and (full.is_file() or notebook.is_file()):
            picture = full.read_bytes() if full.is_file() else drawn(notebook)
            shrunk(picture).save(DOCS / f"images/thumbnails/{page.stem}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "_build/jupyter_execute/gallery")
