"""Uses the page as an instrument: the divider, zoom and pan, the strip, recipes, files, undo, snippets and charts, by
pointer and by keyboard; and measures what it weighs and how soon it shows an image."""

import base64
import gzip
import statistics

from support import ROOT
from page.browser import ENTER, IS_SHOWN, PLAIN_HOST, RIGHT, TOKEN, look_for_barriers, require

CONTROL, SHIFT, LEFT, HOME, END, PAGE_UP = "\ue009", "\ue008", "\ue012", "\ue011", "\ue010", "\ue00e"
SCREENS = [(390, 844), (768, 1024), (1280, 900), (1920, 1080)]
STRIP_IS_FULL = "[...document.querySelectorAll('.card .size')].every((one) => /B$/.test(one.textContent))"
SPLIT = "Number(document.getElementById('divider').getAttribute('aria-valuenow'))"
ZOOM = "parseFloat(document.getElementById('zoom').textContent)"
PLACE = "document.getElementById('viewport').style.getPropertyValue('--x')"
#: When the first large image was drawn (Largest Contentful Paint). In ms.
FIRST_IMAGE = "new PerformanceObserver((list) => arguments[0](list.getEntries().find(({ url }) => url)?.startTime))" \
              ".observe({ type: 'largest-contentful-paint', buffered: true })"
#: A file like those that people drop, made in the page.
FILE = """const bytes = Uint8Array.from(atob(arguments[0]), (one) => one.charCodeAt(0));
    const data = new DataTransfer(); data.items.add(new File([bytes], "a 'photo'.png", { type: "image/png" }));"""


def chord(browser, *keys):
    """Presses keys together."""
    actions = [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
    browser.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})


def show(browser, base, query, check="true"):
    browser.open(f"{base}#{query}")
    browser.until(f"{query} is shown", f"{IS_SHOWN} && !document.getElementById('result-image').hidden && {check}")


def use_instrument(browser, base):
    browser.show_as(1280, 900, "light")
    divide(browser, base)
    zoom(browser, base)
    compare_formats(browser, base)
    start_from_recipes(browser, base)
    undo(browser, base)
    copy_snippets(browser, base)
    read_charts(browser, base)
    stay_in_sight(browser, base)
    browser.show_as(1280, 900, "light")


def divide(browser, base):
    """Drags the divider over the image, and moves it by keyboard."""
    show(browser, base, "url=local:///hills.jpg&w=600", "document.getElementById('source-image').naturalWidth === 1800")
    own = browser.value("performance.getEntriesByType('resource').find(({ name }) => name.includes('pass=all')).decodedBodySize")
    require("the source has its own bytes", own == (ROOT / "samples/hills.jpg").stat().st_size, own)
    require("it is shown at 100 %", browser.value(ZOOM) == 100 and browser.box("#result-image")[2] == 600, browser.box("#result-image"))
    x, y, width, height = browser.box("#result-image")
    middle = y + height / 2
    browser.point((x + width / 2, middle, "pointerDown"), (x + width / 4, middle, None), (x + width / 5, middle + 60, "pointerUp"))
    require("the pointer drags the divider", abs(browser.value(SPLIT) - 20) <= 1, browser.value(SPLIT))
    clip = browser.value("getComputedStyle(document.querySelector('.layer.left')).clipPath")
    require("the source ends at the divider", clip.startswith("inset("), clip)
    browser.point((x + width * 0.8, middle, "pointerDown"), (x + width * 0.8, middle, "pointerUp"))
    require("a click on the image takes it there", abs(browser.value(SPLIT) - 80) <= 1, browser.value(SPLIT))
    require("the keyboard goes on there", browser.value("document.activeElement.id") == "divider")
    for keys, expected in ((HOME, 0), (RIGHT, 1), (PAGE_UP, 11), (LEFT, 10), (END, 100)):
        browser.keys(keys)
        require("the divider follows the keys", browser.value(SPLIT) == expected, (expected, browser.value(SPLIT)))
    require("the divider is a slider", browser.value("document.getElementById('divider').role") == "slider")
    text = browser.value("document.getElementById('divider').getAttribute('aria-valuetext')")
    require("it says both shares", text == "100 % Source, 0 % Result", text)
    browser.focus("#view-split")
    browser.keys(RIGHT)
    browser.until("side by side", "document.getElementById('source-image').getBoundingClientRect().right <= "
                                  "document.getElementById('result-image').getBoundingClientRect().left")
    browser.capture("beside", whole=False)
    browser.keys(RIGHT)
    require("differences are shown", browser.value("getComputedStyle(document.querySelector('.layer.left')).mixBlendMode") == "difference")


def zoom(browser, base):
    """Zooms by button, key, wheel and double click, and moves the enlarged image."""
    show(browser, base, "url=local:///hills.jpg&w=600")
    browser.click("#zoom-in")
    require("the button zooms", browser.value(ZOOM) == 200, browser.value(ZOOM))
    x, y, width, height = browser.box("#viewport")
    before = browser.value(PLACE)
    # Beside the divider, which is in the middle.
    browser.point((x + 200, y + 150, "pointerDown"), (x + 120, y + 150, None), (x + 80, y + 130, "pointerUp"))
    moved = float(before[:-2]) - float(browser.value(PLACE)[:-2])
    require("the pointer moves the image", 100 <= moved <= 130, (before, browser.value(PLACE)))
    before = browser.value(PLACE)
    browser.focus("#viewport")
    browser.keys(LEFT)
    require("the keys move the image", browser.value(PLACE) != before, before)
    for key, expected in (("+", 400), ("-", 200), ("1", 100), ("0", 100)):
        browser.keys(key)
        require(f"the key {key} zooms", browser.value(ZOOM) == expected, browser.value(ZOOM))
    browser.run("document.getElementById('viewport').dispatchEvent(new WheelEvent('wheel', { deltaY: -100, ctrlKey: true, "
                "clientX: arguments[0], clientY: arguments[1], bubbles: true, cancelable: true }))", x + width / 2, y + height / 2)
    require("a pinch zooms", 150 < browser.value(ZOOM) < 180, browser.value(ZOOM))
    browser.click("#fit")
    show(browser, base, "url=local:///hills.jpg")
    require("what is too large shrinks", browser.value(ZOOM) < 100 and browser.box("#result-image")[3] <= height, browser.value(ZOOM))
    require("its ratio stays", abs(browser.box("#result-image")[2] / browser.box("#result-image")[3] - 1.5) < 0.01)


def compare_formats(browser, base):
    """Waits for the strip, and makes another format the compared one."""
    browser.open("about:blank")
    show(browser, base, "url=local:///hills.jpg&w=431")
    browser.run("window.notes = []; new MutationObserver(() => notes.push(document.getElementById('note').textContent))"
                ".observe(document.getElementById('note'), { childList: true }); notes.push(document.getElementById('note').textContent)")
    browser.until("the strip is full", STRIP_IS_FULL)
    cards = browser.value("[...document.querySelectorAll('.card')].map((one) => one.innerText)")
    require("each has its bytes and its time", len(cards) == 5 and all("B" in card and "ms" in card for card in cards), cards)
    browser.until("the AVIF follows", "document.getElementById('readout').innerText.includes('avif')")
    notes = browser.value("notes")
    require("the page says so before and after", "AVIF follows in a moment" in notes and notes[-1].startswith("AVIF is here"), notes)
    for name, label in (("jpeg", "JPEG"), ("avif", "AVIF")):
        browser.click(f"[data-format={name}]")
        browser.until(f"{name} is the compared one", f"document.getElementById('result-tag').textContent === '{label}' && "
                                                     f"document.getElementById('readout').innerText.startsWith('{name}')")
    require("and its facts are shown", browser.text("#compared") == "AVIF" and "avif" in browser.text("#facts"), browser.text("#facts"))
    require("the address stays", browser.value("location.hash") == "#url=local:///hills.jpg&w=431")
    browser.run("const one = document.getElementById('against'); one.value = 'jpeg'; one.dispatchEvent(new Event('change'))")
    browser.until("two formats are compared", "document.getElementById('source-tag').textContent === 'JPEG' && "
                                              "document.getElementById('source-image').naturalWidth === 431")


def start_from_recipes(browser, base):
    show(browser, base, "url=local:///hills.jpg")
    names = browser.value("[...document.querySelectorAll('#recipes button')].map((one) => one.textContent)")
    require("there are recipes", names == ["Thumbnail", "Avatar", "Card", "Hero", "Face", "Watermark", "Placeholder"], names)
    shown = {"Thumbnail": "160 × 160", "Avatar": "96 × 96", "Card": "400 × 300", "Hero": "1,280 × 549", "Face": "320 × 320",
             "Watermark": "800 × 533", "Placeholder": "32 × 23"}
    for place, name in enumerate(names):
        browser.focus(f"#recipes button:nth-child({place + 1})")
        browser.keys(ENTER)
        browser.until(f"{name} is shown", f"document.getElementById('readout').innerText.includes({shown.get(name)!r}) && {IS_SHOWN}")
        pressed = browser.value("document.querySelector('#recipes [aria-pressed=true]')?.textContent")
        require("its chip is marked", pressed == name, (name, pressed))
        require("it is no mistake", browser.value("document.getElementById('problem').hidden"), browser.text("#problem"))


def undo(browser, base):
    show(browser, base, "url=local:///hills.jpg&w=300")
    browser.run("const one = document.querySelector('[aria-label=\"w, slider\"]'); one.value = 500; one.dispatchEvent(new Event('input', { bubbles: true }))")
    browser.until("the slider sets the width", "document.getElementById('result-image').naturalWidth === 500")
    require("it ends at the source's", browser.value("document.querySelector('[aria-label=\"w, slider\"]').max") == "1800")
    browser.run("const one = document.getElementById('p-fit'); one.value = 'fill'; one.dispatchEvent(new Event('change', { bubbles: true }))")
    browser.until("another change", "location.hash.endsWith('&fit=fill')")
    browser.focus("#p-w")
    for keys, expected in (((CONTROL, "z"), "&w=500"), ((CONTROL, "z"), "&w=300"), ((CONTROL, SHIFT, "z"), "&w=500"),
                           ((CONTROL, "y"), "&fit=fill")):
        chord(browser, *keys)
        browser.until(f"undo and redo reach {expected}", f"location.hash.endsWith('{expected}')")
    require("nothing is left to redo", browser.value("document.getElementById('redo').disabled"))
    browser.click("#undo")
    browser.until("the button undoes", "location.hash.endsWith('&w=500') && document.getElementById('p-fit').value === ''")


def copy_snippets(browser, base):
    """Goes through the tabs by keyboard, and copies each, also where the page has no clipboard."""
    for origin in (base, base.replace("127.0.0.1", PLAIN_HOST)):
        show(browser, origin, "url=local:///hills.jpg&w=401&quality=50")
        require("only one is a secure context", browser.value("isSecureContext") == (origin == base))
        # What is said of a result may follow at once.
        browser.run("window.said = []; const one = document.getElementById('announcement');"
                    "new MutationObserver(() => said.push(one.textContent)).observe(one, { childList: true })")
        browser.focus("#snippets [aria-selected=true]")
        for name, sign in (("URL", "w=401"), ("srcset", "802w"), ("picture", "image/avif"), ("Next.js", "pictorLoader"),
                           ("Swift", "AsyncImage(url: "), ("Kotlin", "model = "), ("curl", "curl -sS")):
            require("the tab is selected", browser.text("#snippets [aria-selected=true]") == name, browser.text("#snippets [aria-selected=true]"))
            text = browser.value("document.querySelector('#snippet').textContent")
            require(f"the snippet {name} has the request", sign in text and origin in text and "quality=50" in text, text)
            browser.focus("#copy")
            browser.keys(ENTER)
            browser.until(f"copying {name} is announced", f"said.includes('{name} copied')")
            require("the focus stays", browser.value("document.activeElement.id") == "copy", browser.value("document.activeElement.id"))
            browser.run("const one = document.createElement('textarea'); one.id = 'pasted'; document.body.append(one); one.focus()")
            chord(browser, CONTROL, "v")
            pasted = browser.value("document.getElementById('pasted').value")
            require(f"the clipboard has {name}", pasted == text, pasted)
            browser.run("document.getElementById('pasted').remove()")
            browser.focus("#snippets [aria-selected=true]")
            browser.keys(RIGHT)
        require("the tabs go round", browser.text("#snippets [aria-selected=true]") == "URL")
    # No candidate has more pixels than the source, and one has the shown width.
    show(browser, base, "url=local:///hills.jpg&w=900")
    browser.click("#tab-1")
    text = browser.value("document.querySelector('#snippet').textContent")
    require("srcset fits", "900w" in text and "1800w" in text and "2700w" not in text and "900px" in text, text)


def read_charts(browser, base):
    browser.open(base)
    browser.until("the charts have values", "document.querySelectorAll('.chart path[d*=L]').length >= 3", 30)
    axis = browser.value("[...document.querySelectorAll('.chart')].map((one) => one.querySelector('.axis').innerText)")
    require("each axis has units", "%" in axis[1] and " s" in axis[2].replace("ms", " s") and "MB" in axis[3], axis)
    times = browser.value("document.querySelector('.chart .times').innerText")
    require("the time has an axis", "−2 min" in times and "now" in times, times)
    browser.run("document.querySelector('.chart').scrollIntoView({ block: 'center' })")
    x, y, width, height = browser.box(".chart svg")
    browser.point((x + width - 3 * width / 59, y + height / 2, None))
    require("the pointer reads a moment", browser.text(".chart .moment").endswith(" s ago"), browser.text(".chart .moment"))
    require("a line marks it", browser.value("document.querySelectorAll('.chart .reader').length") == 1)
    browser.point((5, 5, None))
    require("without it the chart is of now", browser.text(".chart .moment") == "now")
    browser.focus(".chart:nth-child(2) svg")
    browser.keys(LEFT)
    spoken = browser.value("document.getElementById('announcement').textContent")
    require("the keys read it aloud", spoken.startswith("2 s ago: memory"), spoken)


def stay_in_sight(browser, base):
    """On each screen, the image and the control in use are seen together."""
    for width, height in SCREENS:
        browser.show_as(width, height, "light")
        show(browser, base, "url=local:///hills.jpg&w=640")
        for control in ("#p-w", "#p-fit", "#p-quality", "#p-progressive", "#p-maxage"):
            browser.run("document.activeElement?.blur(); scrollTo(0, 0)")
            browser.run("const one = document.querySelector(arguments[0]); one.closest('details').open = true;"
                        "one.scrollIntoView({ block: 'nearest' }); one.focus()", control)
            x, y, across, down = browser.box("#viewport")
            require(f"the image is in sight at {width}, {control}", y >= -1 and y + down <= height, (y, down))
            isReached = browser.run("const one = document.querySelector(arguments[0]); const { x, y, width, height } = one.getBoundingClientRect();"
                                    "return document.elementFromPoint(x + width / 2, y + height / 2) === one", control)
            require(f"and so is {control} at {width}", isReached, browser.box(control))
        require(f"the image is large at {width}", across * down > 0.2 * width * height, (across, down))
        browser.capture(f"in-sight-{width}", whole=False)


def take_files(browser, base, trusted):
    """Drops, pastes and chooses a file, where the server takes none, and where it wants a token."""
    image = base64.b64encode((ROOT / "samples/logo@2x.png").read_bytes()).decode()
    drop = FILE + "dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))"
    paste = FILE + "document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))"
    note = "document.getElementById('file-note').textContent"
    show(browser, base, "url=local:///hills.jpg&w=300")
    require("a server without bodies offers none", browser.value("document.getElementById('choose').hidden"))
    browser.run(drop, image)
    require("and says so", "sources.bodies is off" in browser.value(note), browser.value(note))
    require("the image stays", browser.value("document.getElementById('url').value") == "local:///hills.jpg")
    browser.open(f"{trusted}#url=local:///hills.jpg&w=60")
    browser.until("the image is shown", IS_SHOWN)
    browser.run(paste, image)
    require("a token is asked for", "operator's token" in browser.value(note), browser.value(note))
    browser.type("#token", TOKEN + ENTER)
    browser.until("the panel is shown", "!document.getElementById('operators-panel').hidden")
    browser.focus("#token-for-images")
    browser.keys(" ")
    for how, script in (("dropped", drop), ("pasted", paste)):
        browser.run("document.getElementById('file-remove').click()")
        browser.run(script, image)
        browser.until(f"the {how} file is shown", f"{IS_SHOWN} && document.getElementById('facts').innerText.includes('png') && "
                                                  "document.getElementById('result-image').naturalWidth === 60")
        require("its name is shown", "a 'photo'.png" in browser.text("#file-chip"), browser.text("#file-chip"))
    text = browser.value("document.querySelector('#snippet').textContent")
    require("its snippet sends it", "--data-binary @'a '\\''photo'\\''.png'" in text and "$TOKEN" in text, text)
    browser.until("the strip is full", STRIP_IS_FULL)
    document = browser.command("DOM.getDocument")["root"]["nodeId"]
    chooser = browser.command("DOM.querySelector", nodeId=document, selector="#file")["nodeId"]
    browser.command("DOM.setFileInputFiles", files=[str(ROOT / "samples/spinner.gif")], nodeId=chooser)
    browser.until("the chosen file is shown", f"{IS_SHOWN} && document.getElementById('facts').innerText.includes('gif')")
    chord(browser, CONTROL, "z")
    browser.until("undo brings the file before", "document.getElementById('file-name').textContent.includes('photo')")


def teach(browser, base, source):
    """Without samples, the page says how to begin."""
    browser.open(base)
    browser.until("the page teaches", "!document.getElementById('empty').hidden")
    require("it names the key", "samples" in browser.text("#empty") and browser.value("document.getElementById('samples-row').hidden"))
    browser.capture("empty", whole=False)
    look_for_barriers(browser, source, "empty")
    browser.type("#url", "local:///hills.jpg" + ENTER)
    browser.until("and gives way to an image", f"{IS_SHOWN} && document.getElementById('empty').hidden")


def weigh():
    files = sorted((ROOT / "Sources/C/CPage/files").iterdir())
    # The document of the parameters is loaded once it is asked for.
    weight = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)
    print(f"check-page: {len(files)} files, {weight} bytes compressed")
    require("the page is light", weight <= 60_000, weight)


def measure_first_sight(browser, base):
    """Measures the time until an image is seen, from an empty cache of the browser; each width is rendered anew."""
    times = []
    for width in (1270, 1240, 1210, 1180, 1150):
        browser.show_as(width, 860, "light")
        browser.command("Network.clearBrowserCache")
        browser.open(base)
        browser.until("the sample is shown", IS_SHOWN)
        times.append(browser.ask("POST", "/execute/async", {"script": FIRST_IMAGE, "args": []}) or 0)
        wanted, seen = browser.value("[document.getElementById('p-w').value, document.getElementById('result-image').getBoundingClientRect().width]")
        require("the sample has the width that is shown", float(wanted) == seen, (wanted, seen))
    require("the first image is drawn", all(times), times)
    print(f"check-page: first sight after {statistics.median(times):.0f} ms, the median of {', '.join(f'{time:.0f}' for time in times)}")
    browser.show_as(1280, 900, "light")
