"""Drawings, made by Pillow: flat shapes, text, line art and a screenshot."""

import math
import random

from PIL import Image, ImageDraw, ImageFont

SIZE = (1600, 1200)
WORDS = ("image cache server source variant request answer header memory disk origin flight queue worker deadline "
         "format quality effort bytes pixel colour profile").split()


def flat() -> Image.Image:
    """Shapes in few colours, as in logos and charts."""
    chance = random.Random(1)
    image = Image.new("RGB", SIZE, "#fbf7ef")
    pen = ImageDraw.Draw(image)
    colours = ["#c8553d", "#2d5d7b", "#f2b134", "#4f9d69", "#333333", "#e8e1d3"]
    for number in range(14):
        x, y, side = chance.randrange(0, 1400), chance.randrange(0, 1000), chance.randrange(120, 420)
        box = (x, y, x + side, y + side * 3 // 4)
        colour = colours[number % len(colours)]
        [pen.rectangle, pen.ellipse, lambda box, fill: pen.rounded_rectangle(box, 40, fill)][number % 3](box, fill=colour)
    for number in range(10):
        pen.rectangle((100 + number * 90, 1150 - chance.randrange(80, 420), 160 + number * 90, 1150), fill=colours[number % 4])
    return image


def text() -> Image.Image:
    """A page of text in several sizes."""
    chance = random.Random(2)
    image = Image.new("RGB", SIZE, "white")
    pen = ImageDraw.Draw(image)
    y = 40
    while y < 1140:
        size = chance.choice([22, 22, 22, 28, 28, 48])
        line = " ".join(chance.choice(WORDS) for _ in range(1600 // (size * 4)))
        pen.text((60, y), line, fill="#b3261e" if size == 48 else "#1b1b1b", font=ImageFont.load_default(size))
        y += size * 3 // 2
    return image


def lines() -> Image.Image:
    """Thin curves on white, drawn at twice the size."""
    chance = random.Random(3)
    image = Image.new("RGB", (SIZE[0] * 2, SIZE[1] * 2), "white")
    pen = ImageDraw.Draw(image)
    for number in range(70):
        wide, high, turn = chance.uniform(300, 1500), chance.uniform(200, 1100), chance.uniform(0, math.pi)
        points = [(1600 + wide * math.sin(3 * t / 100 + turn), 1200 + high * math.sin(2 * t / 100)) for t in range(700)]
        pen.line(points, fill="#10243e" if number % 5 else "#d1495b", width=chance.choice([4, 6, 10]))
    return image.resize(SIZE, Image.Resampling.BOX)


def screenshot() -> Image.Image:
    """A window with a gradient, a list, buttons and small text."""
    chance = random.Random(4)
    image = Image.linear_gradient("L").resize(SIZE).point(lambda level: 90 + level // 3)
    image = Image.merge("RGB", (image.point(lambda level: level // 3), image.point(lambda level: level // 2), image))
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((100, 80, 1500, 1120), 16, fill="#f6f6f7")
    pen.rounded_rectangle((100, 80, 1500, 140), 16, fill="#dddde0")
    for number, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        pen.ellipse((125 + number * 36, 100, 147 + number * 36, 122), fill=colour)
    pen.rectangle((100, 140, 420, 1104), fill="#e9e9ec")
    font = ImageFont.load_default(20)
    for row in range(22):
        y = 160 + row * 42
        if row == 4:
            pen.rounded_rectangle((110, y - 8, 410, y + 30), 8, fill="#0a66d8")
        pen.text((130, y), " ".join(chance.choice(WORDS) for _ in range(3)), fill="white" if row == 4 else "#333333", font=font)
        pen.text((460, y), " ".join(chance.choice(WORDS) for _ in range(12)), fill="#444444", font=font)
        pen.line((440, y + 33, 1480, y + 33), fill="#dedee2", width=2)
    for number, label in enumerate(["Cancel", "Save"]):
        pen.rounded_rectangle((1180 + number * 150, 1040, 1310 + number * 150, 1090), 10, fill=["#d4d4d8", "#0a66d8"][number])
        pen.text((1205 + number * 150, 1052), label, fill=["#222222", "white"][number], font=font)
    return image


DRAWINGS = {"flat": flat, "text": text, "lines": lines, "screenshot": screenshot}
