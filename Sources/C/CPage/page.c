// The compiler reads the files in files/ and the document of the parameters (C23's #embed), and
// rebuilds this one when they change.
#include "page.h"

static const unsigned char index_html[] = {
#embed "files/index.html"
};
static const unsigned char page_css[] = {
#embed "files/page.css"
};
static const unsigned char page_js[] = {
#embed "files/page.js"
};
static const unsigned char bench_js[] = {
#embed "files/bench.js"
};
static const unsigned char controls_js[] = {
#embed "files/controls.js"
};
static const unsigned char documents_js[] = {
#embed "files/documents.js"
};
static const unsigned char dom_js[] = {
#embed "files/dom.js"
};
static const unsigned char figures_js[] = {
#embed "files/figures.js"
};
static const unsigned char history_js[] = {
#embed "files/history.js"
};
static const unsigned char loader_js[] = {
#embed "files/loader.js"
};
static const unsigned char operators_js[] = {
#embed "files/operators.js"
};
static const unsigned char result_js[] = {
#embed "files/result.js"
};
static const unsigned char snippets_js[] = {
#embed "files/snippets.js"
};
static const unsigned char starts_js[] = {
#embed "files/starts.js"
};
static const unsigned char strip_js[] = {
#embed "files/strip.js"
};
static const unsigned char viewer_js[] = {
#embed "files/viewer.js"
};

static const unsigned char http_api_md[] = {
#embed "../../../docs/http-api.md"
};

#define FILE(name, bytes) {name, bytes, sizeof bytes}

static const struct pictor_page_file files[] = {
    FILE("index.html", index_html),
    FILE("page.css", page_css),
    FILE("page.js", page_js),
    FILE("bench.js", bench_js),
    FILE("controls.js", controls_js),
    FILE("documents.js", documents_js),
    FILE("dom.js", dom_js),
    FILE("figures.js", figures_js),
    FILE("history.js", history_js),
    FILE("loader.js", loader_js),
    FILE("operators.js", operators_js),
    FILE("result.js", result_js),
    FILE("snippets.js", snippets_js),
    FILE("starts.js", starts_js),
    FILE("strip.js", strip_js),
    FILE("viewer.js", viewer_js),
    FILE("http-api.md", http_api_md),
};

struct pictor_page_file pictor_page_file(size_t index) {
  struct pictor_page_file none = {NULL, NULL, 0};
  return index < sizeof files / sizeof files[0] ? files[index] : none;
}
