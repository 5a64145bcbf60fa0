import sys
from pictor import Pictor, signer

NAMES = {"w": ("width", float), "h": ("height", float), "scale": ("scale", float), "fit": ("fit", str),
         "position": ("position", str), "format": ("format", str), "quality": ("quality", int),
         "preset": ("preset", str), "exp": ("expires", int)}

for line in sys.stdin:
    base, key, secret, path, typed, source, *rest = line.rstrip("\n").split("\t")
    options = [item.split("=", 1) for item in rest]
    arguments = {NAMES[name][0]: NAMES[name][1](value) for name, value in options} if typed == "1" else {}
    more = dict(options) if typed == "0" else {}
    print(Pictor(base, signer(key, secret) if key else None).url(source, path=path, more=more, **arguments))
