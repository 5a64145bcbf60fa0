# The package `images` has the recipe and the builder, as an application would.
import os
import shutil
from pathlib import Path

tags = Path("images/templatetags")
tags.mkdir(parents=True)
for folder in (tags, tags.parent):
    (folder / "__init__.py").touch()
shutil.copy("recipe.py", tags / "pictor_tags.py")
shutil.move("pictor.py", "images/pictor.py")

import django  # noqa: E402
from django.conf import settings  # noqa: E402
from django.template import engines  # noqa: E402

settings.configure(
    INSTALLED_APPS=["images"], PICTOR_BASE="https://images.example.com", PICTOR_SECRET=os.environ["PICTOR_SECRET"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()
print(engines["django"].from_string("""{% load pictor_tags %}
{% pictor_image source width=800 widths="400 800 1600" alt="A hill & more" %}
{% pictor_image source width=320 height=180 widths="320 640" sizes="50vw" alt="" %}
{% pictor_image source width=96 height=96 alt="" %}""").render({"source": os.environ["ORIGIN"] + "/hills.jpg"}))
