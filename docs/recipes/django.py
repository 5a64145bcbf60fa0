# images/templatetags/pictor_tags.py, with pictor.py in images/. Settings: PICTOR_BASE, PICTOR_SECRET.
#
#   {% load pictor_tags %}
#   {% pictor_image post.cover_url width=800 widths="400 800 1600" alt="A hill" %}
#   {% pictor_image user.avatar_url width=96 height=96 alt=user.name %}
from django import template
from django.conf import settings
from django.forms.utils import flatatt
from django.utils.html import format_html

from ..pictor import Pictor, signer

register = template.Library()


@register.simple_tag
def pictor_image(source, width, height=None, widths="", sizes="100vw", **attributes):
    """With widths, the image follows the layout, and the browser picks one; without, it has a fixed size, in points."""
    pictor = Pictor(settings.PICTOR_BASE, signer("main", settings.PICTOR_SECRET))

    def url(side, scale=None):
        return pictor.url(source, width=side, height=height and side * height / width, scale=scale,
                          fit="cover" if height else None)

    if widths:
        candidates = [f"{url(int(side))} {side}w" for side in widths.split()]
    else:
        candidates = [f"{url(width, scale)} {scale}x" for scale in (1, 2, 3)]
    image = {"src": url(width), "srcset": ", ".join(candidates), "sizes": sizes if widths else None,
             "width": width, "height": height, "loading": "lazy", **attributes}
    return format_html("<img{}>", flatatt({name: value for name, value in image.items() if value is not None}))
