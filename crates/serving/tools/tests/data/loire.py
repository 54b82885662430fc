"""Makes loire.png: `python3 loire.py` with Pillow 13 (its own font, so the same everywhere)."""

from PIL import Image, ImageDraw, ImageFont

picture = Image.new("1", (460, 110), 1)
ImageDraw.Draw(picture).text((30, 25), "LOIRE 1006", font=ImageFont.load_default(60), fill=0)
picture.save("loire.png", optimize=True)
