"""What scripts/docs-site adds to mkdocs: the navigation; README, CONTRIBUTING and CHANGELOG as pages; a page for each file
and folder outside docs/ to which a document links; and no script within a page, for a strict content security policy.
"""

import hashlib
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.structure.files import File
from pygments.lexers import find_lexer_class_for_filename

ROOT = Path(__file__).resolve().parents[1]
OUTER = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
#: Pages and folders by what a reader wants. Those that are not named here follow at the end.
NAVIGATION = {
    "Start": ["index.md", "gallery.md", "http-api.md", "glossary.md"],
    "Use": ["recipes.md", "clients/README.md", "signing.md", "sdwebimage.md", "moving.md", "moving/"],
    "Run": ["production.md", "configuration.md", "deployments.md", "operations.md", "metrics.md", "security.md",
            "object-stores.md", "performance.md", "libraries.md"],
    "Understand": ["architecture.md", "internals/", "decisions/", "contributing.md", "changelog.md"],
}
IMAGES = (".png", ".jpg", ".gif", ".webp", ".svg", ".avif", ".jxl", ".tif")
LINK = re.compile(r"`[^`\n]*`|(?P<before>\]\(|\b(?:src|href)=\")(?P<path>[^)\s\"#]*)(?P<anchor>#[^)\s\"]*)?(?P<after>[)\"])")


def place(path):
    """The source of a page or an image on the site, from its path in the tree."""
    if path in OUTER:
        return OUTER[path]
    if path.startswith("docs/") and path.endswith((".md", *IMAGES)):
        return path[5:]
    if (ROOT / path).is_dir():
        readme = f"{path}/README.md"
        return place(readme) if (ROOT / readme).is_file() and path.startswith("docs/") else f"tree/{path}/index.md"
    return f"tree/{path}" + ("" if path.endswith(IMAGES) else ".md")


def convert(path, wanted):
    """The text of a document for the site, with its links. Adds to `wanted` the files outside that it links to."""
    def link(match):
        target = unquote(match["path"] or "")
        if not target or re.match(r"[a-z]+:|//|/", target):
            return match[0]
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        wanted.add(found)
        result = posixpath.relpath(place(found), posixpath.dirname(place(path)) or ".")
        if match["after"] == '"':  # mkdocs rewrites links in Markdown only
            result = re.sub(r"\.md$", ".html", re.sub(r"README\.md$", "index.md", result))
        return match["before"] + result.replace(" ", "%20") + (match["anchor"] or "") + match["after"]

    parts = re.split(r"(^```.*?^```$)", (ROOT / path).read_text(encoding="utf-8"), flags=re.M | re.S)
    for number in range(0, len(parts), 2):
        # Markdown of Python wants an empty line before lists and tables, and around blocks.
        text = LINK.sub(link, parts[number])
        parts[number] = re.sub(r"^(?![-*] |\| |\d+\. | )(.+)\n(?=[-*] |\| |\d+\. )", r"\1\n\n", text, flags=re.M)
    return "\n".join(parts)


def outside(path):
    """A page that shows a file or a folder."""
    head = f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n"
    if (ROOT / path).is_dir():
        return head + "".join(f"- [{one.name}]({posixpath.basename(place(f'{path}/{one.name}'))})\n"
                              for one in sorted((ROOT / path).iterdir()) if one.is_file())
    lexer = find_lexer_class_for_filename(path)
    text = (ROOT / path).read_text(encoding="utf-8")
    return head + f"~~~~ {lexer.aliases[0] if lexer else 'text'}\n{text}\n~~~~\n"


def on_files(files, config):
    pages = [*OUTER, *("docs/" + file.src_uri for file in files if file.src_uri.endswith(".md"))]
    wanted = set()
    for file in list(files):
        if not file.src_uri.endswith(IMAGES) and not file.src_uri.startswith("assets/"):
            files.remove(file)
    for path in pages:
        files.append(File.generated(config, place(path), content=convert(path, wanted)))
    folders = [path for path in wanted if (ROOT / path).is_dir() and place(path).startswith("tree/")]
    wanted |= {f"{folder}/{one.name}" for folder in folders for one in (ROOT / folder).iterdir() if one.is_file()}
    for path in sorted(wanted):
        if place(path).startswith("tree/") and (ROOT / path).exists():
            image = {"abs_src_path": str(ROOT / path)} if path.endswith(IMAGES) else {"content": outside(path)}
            files.append(File.generated(config, place(path), **image))
    left = {place(path) for path in pages}
    config.nav = []
    for name, entries in NAVIGATION.items():
        group = []
        for entry in entries:
            found = sorted(one for one in left if one == entry or entry.endswith("/") and one.startswith(entry))
            left -= set(found)
            group += [{entry[:-1].capitalize(): found}] if entry.endswith("/") else found
        config.nav.append({name: group})
    config.nav[-1]["Understand"] += sorted(left)
    return files


def move_scripts(output, config, depth):
    def move(match):
        name = f"assets/inline-{hashlib.sha256(match[1].encode()).hexdigest()[:12]}.js"
        path = Path(config.site_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(match[1], encoding="utf-8")
        return f'<script src="{"../" * depth}{name}"></script>'
    return re.sub(r"<script>(.*?)</script>", move, output, flags=re.S)


def on_post_page(output, page, config):
    return move_scripts(output, config, page.file.dest_uri.count("/"))


def on_post_template(output, template_name, config):
    return move_scripts(output, config, 0) if template_name.endswith(".html") else output
