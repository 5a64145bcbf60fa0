"""The images of the benchmarks, made by libvips's own program and Pillow: sky and hills with a camera's noise on them."""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

from .processes import output_of
from .servers import ROOT


def make(folder: Path) -> None:
    """Makes all of them in `folder`."""
    scratch = folder / ".scratch"
    scratch.mkdir(exist_ok=True)
    at = lambda name: scratch / f"{name}.v"

    def vips(operation, *arguments):
        output_of("vips", operation, *arguments)

    def photo(width, height, sigma):
        """A photo of that size; the noise makes its file as large as a camera's."""
        vips("thumbnail", ROOT / "samples" / "hills.jpg", at("big"), width, "--height", height, "--size", "force")
        vips("gaussnoise", at("noise"), width, height, "--sigma", sigma, "--mean", 0)
        vips("add", at("big"), at("noise"), at("sum"))
        vips("cast", at("sum"), at("photo"), "uchar")

    photo(12000, 9000, 3)
    vips("jpegsave", at("photo"), folder / "12000x9000.jpg", "--Q", 85)
    photo(3000, 2000, 4)
    vips("jpegsave", at("photo"), folder / "3000x2000.jpg", "--Q", 85)
    vips("crop", at("photo"), at("square"), 800, 600, 1000, 1000)
    vips("pngsave", at("square"), scratch / "square.png")
    # What has an alpha is mostly cut out: opaque within, nothing without, an edge of a few pixels.
    mask = Image.new("L", (1000, 1000), 0)
    ImageDraw.Draw(mask).ellipse((40, 40, 960, 960), fill=255)
    with Image.open(scratch / "square.png") as square:
        square.putalpha(mask.filter(ImageFilter.GaussianBlur(2)))
        square.save(folder / "1000x1000.png")
    photo(800, 600, 4)
    vips("jpegsave", at("photo"), folder / "800x600.jpg", "--Q", 85)
    vips("thumbnail", at("photo"), at("small"), 320)
    vips("jpegsave", at("small"), folder / "320x240.jpg", "--Q", 85)
    # A window that wanders over a photo: every pixel of every frame changes, as in a film.
    photo(640, 480, 2)
    vips("pngsave", at("photo"), scratch / "film.png")
    with Image.open(scratch / "film.png") as film:
        frames = [film.crop((8 * i, 5 * i, 8 * i + 480, 5 * i + 360)) for i in range(20)]
    first, rest = frames[0], frames[1:]
    first.save(folder / "480x360.gif", save_all=True, append_images=rest, duration=80, loop=0)
    first.save(folder / "480x360.webp", save_all=True, append_images=rest, duration=80, loop=0, quality=80)
    for file in scratch.iterdir():
        file.unlink()
    scratch.rmdir()


def make_formats(folder: Path) -> None:
    """Makes the photo of 3000×2000 in every format that is decoded."""
    photo = folder / "3000x2000.jpg"
    at = lambda ending: folder / f"3000x2000.{ending}"
    output_of("vips", "jpegsave", photo, at("progressive.jpg"), "--Q", 85, "--interlace")
    for saver, ending, *options in [
        ("pngsave", "png"), ("webpsave", "webp", "--Q", 80), ("tiffsave", "tif", "--compression", "lzw"),
        ("heifsave", "heic", "--Q", 60, "--compression", "hevc"),
        ("heifsave", "avif", "--Q", 60, "--compression", "av1", "--effort", 1), ("jxlsave", "jxl", "--Q", 80),
        ("jp2ksave", "jp2", "--Q", 60),
    ]:
        output_of("vips", saver, photo, at(ending), *options)
    with Image.open(photo) as image:
        image.save(at("bmp"))
        image.quantize(256).save(at("gif"))
    at("svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="2000">'
        + "".join(f'<circle cx="{x}" cy="{y}" r="90" fill="hsl({(x + y) % 360},60%,50%)"/>'
                  for x in range(100, 3000, 200) for y in range(100, 2000, 200))
        + "</svg>")


#: Photographs of Debian's package mate-backgrounds, at least 2400×1600.
NATURE = Path("/usr/share/backgrounds/mate/nature")
NAMES = ["Aqua", "Garden", "LadyBird", "TwoWings", "Wood", "YellowFlower"]
PHOTOS = len(NAMES)


def make_photos(folder: Path) -> None:
    """Makes each photograph in the sizes and formats of pages."""
    for number, name in enumerate(NAMES):
        at = lambda ending: folder / f"photo{number}-{ending}"

        def save(operation, ending, width, height, *options):
            scratch = folder / "scratch.v"
            output_of("vips", "thumbnail", NATURE / f"{name}.jpg", scratch, width, "--height", height, "--crop", "centre")
            output_of("vips", operation, scratch, at(ending), *options)
            scratch.unlink()

        save("jpegsave", "800.jpg", 800, 600, "--Q", 85)
        save("jpegsave", "2400.jpg", 2400, 1600, "--Q", 85)
        save("jpegsave", "progressive.jpg", 2400, 1600, "--Q", 85, "--interlace")
        save("webpsave", "1800.webp", 1800, 1200, "--Q", 80)
        save("heifsave", "1800.avif", 1800, 1200, "--Q", 60, "--compression", "av1", "--effort", 1)


def make_other_photos(folder: Path) -> None:
    """Makes each photograph as a PNG with a transparent edge, with a palette and with 16 bits, and as HEIC."""
    for number in range(PHOTOS):
        at = lambda ending: folder / f"photo{number}-{ending}"
        with Image.open(at("800.jpg")) as photo:
            mask = Image.radial_gradient("L").resize(photo.size).point(lambda value: 255 - max(value - 128, 0) * 2)
            alpha = photo.convert("RGBA")
            alpha.putalpha(mask)
            alpha.save(at("alpha.png"))
            photo.quantize(256).save(at("palette.png"))
        scratch = folder / "scratch.v"
        output_of("vips", "colourspace", at("800.jpg"), scratch, "rgb16")
        output_of("vips", "pngsave", scratch, at("deep.png"))
        output_of("vips", "thumbnail", at("2400.jpg"), scratch, 1800)
        output_of("vips", "heifsave", scratch, at("1800.heic"), "--Q", 60, "--compression", "hevc")
        scratch.unlink()


#: Twelve photographs for curves: skies, foliage, stone, fur, flowers. Debian's packages lomiri-wallpapers and
#: mate-backgrounds.
BACKGROUNDS = Path("/usr/share/backgrounds")
VARIED = [BACKGROUNDS / f"{name}.jpg" for name in (
    "Bridge_by_Sander_Klootwijk", "Dragonfly_by_Bolly", "Kleiber_by_Lukas_Baubkus", "Picture_0B_by_freespace",
    "aitzgorri_by_Aitzol_Berasategi", "friends_by_Aitzol_Berasategi", "life_by_Aitzol_Berasategi",
    "picosdeeuropa_by_Aitzol_Berasategi", "sunset_by_Aitzol_Berasategi", "mate/nature/LadyBird", "mate/nature/Storm",
    "mate/nature/TwoWings")]
